"""The rules of a site, and what its log shows of them."""
