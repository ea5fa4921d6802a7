"""Experiments: scenarios, their results, studies and their stores, and the rules that policies must keep."""
