"""Reports: interactive pages made from the results of studies."""
