"""Measurement: the capacity ledger, job records, metrics and fairness.  No SimPy."""
