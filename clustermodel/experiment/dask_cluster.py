"""A Dask cluster as the workers of a study, with :mod:`dask.distributed`.

Runs are assigned only to workers with the same software as this process; other workers are refused.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from clustermodel.errors import ExecutionError, SpecificationError, missing_package
from clustermodel.experiment.run_key import software
from clustermodel.experiment.worker import Origin, Outcome, Task, execute, opened

_log = logging.getLogger(__name__)


class _Assigned(NamedTuple):
    """An assigned run."""

    task: Task
    inner: Any
    """The future of Dask."""
    allowed: frozenset[str]
    """Addresses of the workers that may execute the run."""


class Cluster:
    """The workers of a Dask cluster that have the software of this process.

    Args:
        client: connected to the scheduler.
        origin: of the study.
        address: of the scheduler, for messages.
        timeout_s: longest wall time of a run, seconds; ``None`` for no limit.

    Raises:
        SpecificationError: the cluster has no workers, or a worker has other software.
    """

    def __init__(self, client: Any, origin: Origin, address: str, timeout_s: float | None) -> None:
        require_same_software(client, address)
        self._client = client
        self._address = address
        self._timeout_s = timeout_s
        self._known: dict[str, int] = client.ncores()
        self._refused: set[str] = set()
        self._sent = client.scatter(origin.sent(), broadcast=True)
        self._tasks: dict[Future[Outcome], _Assigned] = {}
        self._starting: list[Any] = []

    def start(self) -> None:
        """Let all workers prepare the study."""
        self._starting = [  # kept: a future without references is cancelled
            self._client.submit(_prepare, self._sent, workers=[worker], pure=False) for worker in self._known
        ]

    def submit(self, task: Task) -> Future[Outcome]:
        """Assign a run."""
        outer: Future[Outcome] = Future()
        self._assign(outer, task)
        return outer

    def _assign(self, outer: Future[Outcome], task: Task) -> None:
        allowed = sorted(self._known)
        inner = self._client.submit(execute, self._sent, task, self._timeout_s, workers=allowed, pure=False)
        self._tasks[outer] = _Assigned(task, inner, frozenset(allowed))
        inner.add_done_callback(lambda done: self._complete(outer, done))

    def _complete(self, outer: Future[Outcome], inner: Any) -> None:
        assigned = self._tasks.get(outer)
        if assigned is None or assigned.inner is not inner or outer.done():
            return  # the run has been reassigned
        del self._tasks[outer]
        if inner.status == "finished":
            outer.set_result(inner.result())
        elif inner.status == "error":
            outer.set_exception(inner.exception())
        elif inner.status == "lost":  # its worker died with the outcome
            self._assign(outer, assigned.task)
        else:
            outer.set_exception(self._gone())

    def _gone(self) -> ExecutionError:
        return ExecutionError(f"--dask: {self._address}: the scheduler has gone")

    def capacity(self) -> int:
        """Return the number of runs that can be in progress at present."""
        return max(sum(self._known.values()), 1)

    def check(self) -> None:
        """Update the set of workers; runs whose workers are all gone are reassigned.

        Raises:
            ExecutionError: the scheduler is gone.
        """
        if self._client.status != "running":
            raise self._gone()
        try:
            present = self._client.ncores()
            for worker in sorted(present.keys() - self._known.keys() - self._refused):
                other = _other_software(self._client, [worker]).get(worker)
                if other is not None:
                    self._refused.add(worker)
                    _log.warning("--dask: worker %s: it has %s; it gets no runs", worker, other)
        except OSError:
            raise self._gone() from None
        known = {worker: cores for worker, cores in present.items() if worker not in self._refused}
        if known.keys() != self._known.keys():
            _log.info("--dask: %d workers: %s", len(known), ", ".join(sorted(known)))
        self._known = known
        for outer, assigned in list(self._tasks.items()):
            if self._known and not assigned.allowed & self._known.keys():
                self._assign(outer, assigned.task)
                assigned.inner.cancel()


@contextmanager
def cluster(
    origin: Origin, address: str, options: Mapping[str, Any], timeout_s: float | None, *, start: bool
) -> Iterator[Cluster]:
    """Connect to a Dask cluster for a block; with ``start`` its workers prepare the study at once.

    Raises:
        SpecificationError: no cluster is at ``address``, it has no workers, or a worker has other software.
    """
    try:
        from distributed import Client  # noqa: PLC0415  an extra
    except ImportError:
        raise SpecificationError(missing_package("--dask", "distributed", "dask")) from None
    if "security" in options and not address.startswith("tls://"):
        raise SpecificationError(f"--dask: {address}: TLS files are given, but the address does not use TLS; write tls://...")
    try:
        client: Any = Client(address, **options)
    except (OSError, ValueError, TypeError) as problem:  # a TypeError where tls:// comes without its files
        raise SpecificationError(f"--dask: {address}: {problem}") from None
    except AssertionError:  # of distributed's LoopRunner: its event loop has not begun within 10 s
        raise SpecificationError(f"--dask: {address}: Dask's client has not started; try again") from None
    try:
        made = Cluster(client, origin, address, timeout_s)
        if start:
            made.start()
        yield made
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.close(timeout=2)


def _prepare(origin: Origin) -> None:
    """Make the study; if that fails, its first run reports the error."""
    with suppress(BaseException):
        opened(origin)


def require_same_software(client: Any, address: str) -> None:
    """Refuse a cluster without workers, or with a worker that has other software.

    Raises:
        SpecificationError: the cluster is refused; the message names the first such worker and its software.
    """
    there = _other_software(client, None)
    if not there:
        raise SpecificationError(f"--dask: {address}: the scheduler has no workers; start some first")
    for worker, other in sorted(there.items()):
        if other is not None:
            raise SpecificationError(f"--dask: worker {worker}: it has {other}; install the same")


def _other_software(client: Any, workers: Sequence[str] | None) -> dict[str, str | None]:
    """Return for each worker how its software differs from this process's, ``None`` for the same software."""
    ours = version("clustermodel")
    differs: dict[str, str | None] = {}
    found = client.run(version, "clustermodel", workers=workers, on_error="return")
    for worker, theirs in found.items():
        if isinstance(theirs, PackageNotFoundError):
            differs[worker] = f"no clustermodel, and this is clustermodel {ours}"
        elif theirs != ours:
            differs[worker] = f"clustermodel {theirs}, and this is clustermodel {ours}"
    same = [worker for worker in found if worker not in differs]
    for worker, theirs in (client.run(software, workers=same, on_error="return") if same else {}).items():
        mine = software()
        if not isinstance(theirs, dict):
            differs[worker] = f"a clustermodel that cannot say what it is ({theirs})"
            continue
        name = next((name for name in mine if theirs.get(name) != mine[name]), None)
        if name == "clustermodel_sha256":
            differs[worker] = f"other source files of clustermodel {ours}"
        else:
            differs[worker] = None if name is None else f"{name} {theirs.get(name)}, and this is {name} {mine[name]}"
    return differs
