"""Standard output and standard error while a command runs: guarded streams, JSON, messages of loggers, progress bars.

A failing stream causes one line of error at most.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from io import UnsupportedOperation
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeVar, cast

import click

from clustermodel.errors import OutputError, visible
from clustermodel.text.formatting import encodable

if TYPE_CHECKING:
    from rich.console import Console

    from clustermodel.experiment.executor import Progress as SweepProgress
    from clustermodel.experiment.scenario import Scenario

_Command = TypeVar("_Command", bound=Callable[..., Any])
_APART: Final = "clustermodel.output_of_users"


def json_option(text: str) -> Callable[[_Command], _Command]:
    """Return the option ``--json``: whatever code of users prints goes to standard error until :func:`print_json`."""

    def keep_apart(context: click.Context, _option: click.Parameter, as_json: bool) -> bool:
        if as_json and not context.resilient_parsing:
            context.meta[_APART] = context.with_resource(ExitStack())
            context.meta[_APART].enter_context(_output_to_standard_error())
        return as_json

    return click.option("--json", "as_json", is_flag=True, callback=keep_apart, help=text)


def print_json(text: str) -> None:
    """Print the JSON of a command with :func:`json_option` on standard output."""
    click.get_current_context().meta[_APART].close()
    click.echo(text)


@contextmanager
def _output_to_standard_error() -> Iterator[None]:
    """Redirect what Python, and compiled code and processes that it starts, write to standard output."""
    with ExitStack() as ends:
        redirected = ends.enter_context(redirect_stdout(sys.stderr))
        with suppress(UnsupportedOperation, ValueError, AttributeError):  # no files, as in tests
            if sys.__stdout__ is not None and sys.__stdout__.fileno() == 1 and redirected.fileno() == 2:
                own = os.dup(1)
                ends.callback(os.close, own)
                ends.callback(os.dup2, own, 1)
                os.dup2(2, 1)
        yield


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Guard standard output and standard error while a command runs.

    Characters that a stream cannot encode are written out.  A failure of standard output is an
    :class:`~clustermodel.errors.OutputError`; a failure of standard error is ignored.
    """
    # Streams that were closed before the process began (>&-) are reopened, so that no other file takes their numbers.
    while (spare := os.open(os.devnull, os.O_RDONLY)) <= 2:
        pass
    os.close(spare)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  it is open for reading: writing fails
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  for the rest of the process
    before = sys.stdout, sys.stderr
    sys.stdout = cast("TextIO", _Stream(sys.stdout, "standard output"))
    sys.stderr = cast("TextIO", _Stream(sys.stderr, None))
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):  # output of a script, after another failure
                stream.flush()
        sys.stdout, sys.stderr = before


class _Stream:
    """A guarded standard stream, without ``buffer``, so that no output bypasses it."""

    def __init__(self, stream: TextIO, name: str | None) -> None:
        self._stream = stream
        self._name = name
        self._encoding = stream.encoding or "utf-8"
        self._failure: OutputError | None = None  # raised at each use: a caller may catch it

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "buffer":
            raise AttributeError(attribute)
        return getattr(self._stream, attribute)

    def write(self, text: str | bytes) -> int:
        """Write text, or text that click has encoded already, as it does for the completion of shells."""
        decoded = text if isinstance(text, str) else text.decode("utf-8", "replace")
        with self._guarded():
            self._stream.write(encodable(decoded, self._encoding))
        return len(text)

    def flush(self) -> None:
        with self._guarded():
            self._stream.flush()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        if self._failure is not None:
            raise self._failure
        try:
            yield
        except (OSError, ValueError) as problem:  # a ValueError where user code has closed it
            with suppress(OSError, ValueError):  # to the null device: its buffered output would fail again when Python ends
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            if self._name is None:
                return
            if isinstance(problem, BrokenPipeError):  # its reader has seen enough (| head)
                raise
            self._failure = OutputError(f"{self._name} cannot be written: {getattr(problem, 'strerror', None) or problem}")
            raise self._failure from None


class _Line(logging.Formatter):
    """A message in one line, with control characters written out; without a name where a user need not know it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        text = visible(" ".join(record.getMessage().split()))
        if record.levelno >= logging.WARNING:
            return f"clustermodel: {record.levelname.lower()}: {text}"
        return f"{self.formatTime(record, '%H:%M:%S')} {record.name.removeprefix('clustermodel.')}: {text}"


@contextmanager
def log_to_standard_error(verbose: int) -> Iterator[None]:
    """Write messages of the package's loggers to standard error: 0 for warnings, 1 what is done, 2 details."""
    handler, logger = logging.StreamHandler(sys.stderr), logging.getLogger("clustermodel")
    before = logger.level
    handler.setFormatter(_Line())
    logger.addHandler(handler)
    logger.setLevel((logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)])
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@contextmanager
def progress_of_run(scenario: Scenario, notes: Console) -> Iterator[Callable[[int], None] | None]:
    """Show a progress bar of the jobs of ``scenario``; yield its callback, ``None`` without a terminal."""
    if not notes.is_terminal:
        yield None
        return
    from rich import progress  # noqa: PLC0415

    from clustermodel.figures.terminal import literal  # noqa: PLC0415  with rich, for which --help need not wait
    from clustermodel.workload.table import Workload  # noqa: PLC0415

    sized = [len(source) for source in scenario.sources if isinstance(source, Workload)]
    total = sum(sized) if len(sized) == len(scenario.sources) else None
    columns = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
    with progress.Progress("{task.description}", *columns, console=notes, transient=True) as bar:
        task = bar.add_task(literal(scenario.label), total=total)
        yield lambda jobs: bar.advance(task, jobs)


@contextmanager
def progress_of_sweep(notes: Console) -> Iterator[Callable[[SweepProgress], None]]:
    """Show a progress bar of the runs of a study, on terminals only; yield its callback."""
    from rich import progress  # noqa: PLC0415

    counts = "{task.fields[running]} running, {task.fields[failed]} failed"
    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(" of "),
        "done,",
        counts,
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    hidden = not notes.is_terminal
    with progress.Progress("{task.description}", *columns, console=notes, transient=True, disable=hidden) as bar:
        task = bar.add_task("runs", total=None, running=0, failed=0)
        yield lambda state: bar.update(
            task, total=state.total, completed=state.done, running=state.running, failed=state.failed
        )
