"""Logs of other schedulers and tables of jobs, read as workloads: Slurm, PBS, LSF, CSV; which format a file has."""
