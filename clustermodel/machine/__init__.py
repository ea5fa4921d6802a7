"""The machine as a specification: nodes, partitions, node types, reservations, costs, power, price, failures and outages."""
