"""Cache of the workloads made last, so that the trials of an experiment do not generate the same jobs for every policy.

A workload is immutable and follows from the arguments of the function that makes it.  The cache is of this process, and bounded
by the number of jobs.
"""

from __future__ import annotations

import copy
import functools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from time import perf_counter
from typing import Final, ParamSpec

from clustermodel.workload.table import Workload

MOST_JOBS: Final = 1_000_000
"""Number of jobs of all remembered workloads together; a job takes 72 bytes."""

_log = logging.getLogger(__name__)
_Arguments = ParamSpec("_Arguments")
_remembered: OrderedDict[Hashable, Workload] = OrderedDict()
"""Workloads by function and arguments; the one used last comes last."""
_lock: Final = threading.Lock()


def remembered(make: Callable[_Arguments, Workload]) -> Callable[_Arguments, Workload]:
    """Return a function or a method of an immutable object with a cache: the same arguments give the same jobs.

    1, 1.0 and ``True`` are different arguments; arguments that cannot be hashed are passed on.
    """

    @functools.wraps(make)
    def made(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Workload:
        values = (*args, *(kwargs[name] for name in sorted(kwargs)))
        key = (make, len(args), tuple(sorted(kwargs)), values, tuple(map(type, values)))
        try:
            with _lock:
                workload = _remembered.get(key)
                if workload is not None:
                    _remembered.move_to_end(key)
        except TypeError:  # an argument has no hash
            return make(*args, **kwargs)
        if workload is None:
            began = perf_counter()
            workload = make(*args, **kwargs)
            _log.info("made %s: %s jobs in %.2f s", workload.name, f"{len(workload):,}", perf_counter() - began)
            _remember(key, workload)
        return copy.copy(workload)  # with a name and provenance of its own; the table is shared

    return made


def _remember(key: Hashable, workload: Workload) -> None:
    if len(workload) > MOST_JOBS:
        return
    with _lock:
        _remembered[key] = workload
        _remembered.move_to_end(key)
        jobs = sum(map(len, _remembered.values()))
        while jobs > MOST_JOBS:
            _, oldest = _remembered.popitem(last=False)
            jobs -= len(oldest)
