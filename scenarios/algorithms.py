"""The algorithms of 003 (003_96c4631de6a07f8a.txt, table 4): their names, and which of them a study runs."""

from __future__ import annotations

import argparse
from typing import Final

from clustermodel.policies.queue_order import CRITERIA

ALGORITHMS: Final = tuple(f"{criterion}{suffix}" for suffix in ("", "-NG") for criterion in CRITERIA)
CONSERVATIVE: Final = "D"
"""What the others are compared with."""


def draws(algorithm: str) -> bool:
    """Return whether an algorithm draws random numbers."""
    return algorithm[0] in "PR"


def add_algorithms(parser: argparse.ArgumentParser) -> None:
    """Add the option that says which algorithms to run, beside conservative backfilling."""
    default = "1/L-NG, R/L-NG; with --full 1/L too"
    parser.add_argument("--algorithms", nargs="+", choices=ALGORITHMS, metavar="NAME", help=f"beside D (default: {default})")


def chosen(options: argparse.Namespace) -> list[str]:
    """Return the algorithms to run, conservative backfilling first."""
    named = options.algorithms or (("1/L", "1/L-NG", "R/L-NG") if options.full else ("1/L-NG", "R/L-NG"))
    return list(dict.fromkeys([CONSERVATIVE, *named]))
