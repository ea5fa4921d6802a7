"""Policies with a parameter that is measured before a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable


class Waits(NamedTuple):
    """How long the jobs of a run have waited, in order of submission; jobs that never started are left out."""

    nodes: tuple[int, ...]
    """Number of nodes of each job."""
    wait: tuple[int, ...]
    """Wait of each job, ticks."""


MeasureWaits = Callable[[str], Waits]
"""Runs the named policy on the same jobs and the same machine."""


@runtime_checkable
class Calibrated(Protocol):
    """A policy with a parameter that is measured."""

    def calibrate(self, measure: MeasureWaits) -> None:
        """Set parameters by what another policy does; called before each run, and before ``begin``."""
