"""The data structures of the field: node sets and the availability profile (space).  No SimPy, no policy."""
