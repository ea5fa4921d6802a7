"""Reports: interactive pages, and tables beside published values, made from the results of studies."""
