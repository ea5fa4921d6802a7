"""Backfilling, assembled from named parts: guarantees, orders, predictors, sizes, speculation (Perkovic & Keleher 2000)."""
