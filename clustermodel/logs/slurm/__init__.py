"""What Slurm says of a site, in its own words."""
