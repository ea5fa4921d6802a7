"""Studies: scenarios and their results, and the checks that a policy must pass."""
