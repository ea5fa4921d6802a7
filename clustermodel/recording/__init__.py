"""What the mechanism writes while it runs: job records, ledger, slices and states of the matrix.  No pandas."""
