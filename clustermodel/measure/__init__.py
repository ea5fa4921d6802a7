"""Measurement: what is computed from the records of a run (tables, metrics, fairness, explanations).  No SimPy."""
