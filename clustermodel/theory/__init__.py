"""Analytic formulas, as the papers and textbooks print them.  Nothing here imports the simulator."""
