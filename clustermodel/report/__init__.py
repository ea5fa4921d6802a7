"""Reports: figures and tables made from results."""
