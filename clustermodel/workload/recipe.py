"""How a workload was made: the function, its arguments, and the transformations since; a scenario file names it so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

Source = Literal["trace", "model", "synthetic", "job_stream", "job_streams", "merge"]
"""What makes the jobs: a trace file, a workload model, ``synthetic_workload``, one or several ``JobStream``, or ``merge``."""
KEEP: Final = "keep"
SCALE: Final = "scale"
ESTIMATES: Final = "estimates"
MEMORY: Final = "default_memory_gib"


@dataclass(frozen=True, kw_only=True)
class PhiModel:
    """The step :meth:`Workload.with_phi_estimates <clustermodel.workload.table.Workload.with_phi_estimates>`."""

    phi: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """The step :meth:`Workload.resampled <clustermodel.workload.table.Workload.resampled>`."""

    of: str | float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a workload was made, so that it can be made again; workloads of rows have none."""

    source: Source
    arguments: Mapping[str, Any]
    """Of the function, by name."""
    name: str
    """The name that the workload got."""
    machine_nodes: int | None
    """The size of the recorded machine that the workload got."""
    steps: tuple[tuple[str, object], ...] = ()
    """Transformations, in order: ``keep`` with a filter, ``scale`` with factors, ``estimates`` with a model or ``None`` for
    the run times, ``default_memory_gib`` with an amount, ``resample`` with what is drawn."""

    def then(self, step: str, what: object) -> Recipe:
        """Return the recipe with one more step."""
        return replace(self, steps=(*self.steps, (step, what)))
