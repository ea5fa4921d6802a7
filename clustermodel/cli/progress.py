"""Progress bars of commands, on terminals only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from clustermodel.experiment.scenario import Scenario
from clustermodel.figures.terminal import literal
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    from clustermodel.experiment.executor import Progress as SweepProgress


@contextmanager
def progress_of_run(scenario: Scenario, notes: Console) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar of the jobs of ``scenario``; yield its callback, ``None`` without a terminal."""
    if not notes.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    sized = [len(source) for source in scenario.sources if isinstance(source, Workload)]
    total = sum(sized) if len(sized) == len(scenario.sources) else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True) as bar:
        task = bar.add_task(literal(scenario.label), total=total)
        yield lambda jobs: bar.advance(task, jobs)


@contextmanager
def progress_of_sweep(notes: Console) -> Iterator[Callable[[SweepProgress], None]]:
    """Show a progress bar of the runs of a study; yield its callback."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} done, {task.fields[running]} running, {task.fields[failed]} failed"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bar:
        task = bar.add_task("runs", total=None, running=0, failed=0)

        def advance(state: SweepProgress) -> None:
            bar.update(task, total=state.total, completed=state.done, running=state.running, failed=state.failed)

        yield advance
