"""Scheduling policies: what waits, what starts, what is preempted; none of them knows SimPy."""
