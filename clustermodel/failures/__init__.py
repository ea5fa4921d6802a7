"""Failures of nodes: drawn at random, or the outages of a real machine."""
