"""Workloads: traces, models and generators of jobs, and their selection and scaling."""
