"""Time sharing: the rows of the Ousterhout matrix, and the process that gives the nodes to one row after the other."""
