"""Workloads: where jobs come from (traces, generators) and how they are selected and rescaled."""
