"""What figures read of a run, as Protocols: figures need no scenario and no simulator."""

from __future__ import annotations

from typing import Protocol

import pandas as pd

from clustermodel.errors import SpecificationError
from clustermodel.figures.style import plain
from clustermodel.machine import Machine
from clustermodel.measure.event_log import EventLog
from clustermodel.measure.metrics import Summary
from clustermodel.policies.interface import Policy
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.matrix_history import History
from clustermodel.recording.slice_log import SliceLog
from clustermodel.speedup import Speedup


class ComparedScenario(Protocol):
    """The names of a compared run."""

    @property
    def label(self) -> str:
        """The policy, or another name of the run."""

    @property
    def workload_name(self) -> str:
        """The workload."""

    @property
    def policy(self) -> str | Policy:
        """The policy: a name or an object."""

    @property
    def speedup(self) -> Speedup:
        """The speedup model."""

    @property
    def unit(self) -> str:
        """What a node of the machine stands for, in the singular."""


class ComparedRun(Protocol):
    """A run that can be compared with others, such as :class:`~clustermodel.experiment.result.Result`."""

    @property
    def scenario(self) -> ComparedScenario:
        """The names of the run."""

    @property
    def machine(self) -> Machine:
        """The simulated machine."""

    @property
    def records(self) -> JobRecords:
        """Job records, ticks."""

    @property
    def ledger(self) -> Ledger:
        """The capacity ledger."""

    @property
    def slices(self) -> SliceLog | None:
        """The slice log; ``None`` without time sharing."""

    def summary(self) -> Summary:
        """Return the metrics of the run."""


class DrawnScenario(ComparedScenario, Protocol):
    """The names that a run has in titles, legends and tables."""

    @property
    def seed(self) -> int:
        """The root seed, which identifies the replication."""


class DrawnRun(ComparedRun, Protocol):
    """A run that can be drawn, such as :class:`~clustermodel.experiment.result.Result`."""

    @property
    def scenario(self) -> DrawnScenario:
        """The names of the run."""

    @property
    def jobs(self) -> pd.DataFrame:
        """The job table, seconds."""

    @property
    def events(self) -> EventLog:
        """Idle nodes and queue length after each scheduling event."""

    @property
    def history(self) -> History:
        """Every state of the Ousterhout matrix and of the ledger.

        Raises:
            SpecificationError: the run has no history.
        """

    def by_class(self) -> pd.DataFrame:
        """Return statistics of waits, responses and slowdowns for all, small and large jobs."""


def title_of(run: DrawnRun) -> str:
    """Return policy and workload of a run for a title."""
    return f"{plain(run.scenario.label)} on {plain(run.scenario.workload_name)}"


def require_drawable(run: DrawnRun, figure: str) -> None:
    """Refuse a run in which no job ran.

    Raises:
        SpecificationError: no job ran.
    """
    if not run.records.finished.any():
        raise SpecificationError(f"{figure}: no job ran; there is nothing to draw")
