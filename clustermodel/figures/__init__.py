"""Figures and terminal tables made from results."""
