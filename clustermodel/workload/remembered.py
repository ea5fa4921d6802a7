"""Workloads that were made last, which are not made again."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from functools import wraps
from time import perf_counter
from typing import Final, ParamSpec

from clustermodel.workload.table import Workload

_log = logging.getLogger(__name__)
_Arguments = ParamSpec("_Arguments")
MOST_KEPT: Final = 1_000_000  # jobs together; a job takes 80 bytes
MOST_KEPT_WORKLOADS: Final = 1_000  # however small; looking through more would take longer than making them
_kept: dict[object, Workload] = {}  # by function and arguments; the one used last comes last


def remembered(make: Callable[_Arguments, Workload]) -> Callable[_Arguments, Workload]:
    """Return a function, or a method of an immutable object, that keeps the workloads made last.

    So the trials of an experiment do not make the same jobs for every policy.  1, 1.0 and ``True`` are different arguments.
    """

    @wraps(make)
    def made(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Workload:
        values = (*args, *(kwargs[name] for name in sorted(kwargs)))
        key = (make, len(args), *sorted(kwargs), values, *map(type, values))
        try:
            workload = _kept.get(key)
        except TypeError:  # an argument has no hash
            return make(*args, **kwargs)
        is_new = workload is None
        if workload is None:
            began = perf_counter()
            workload = make(*args, **kwargs)
            _log.info("made %s: %s jobs in %.2f s", workload.name, f"{len(workload):,}", perf_counter() - began)
        _kept.pop(key, None)
        _kept[key] = workload
        while is_new and (len(_kept) > MOST_KEPT_WORKLOADS or sum(map(len, list(_kept.values()))) > MOST_KEPT):
            _kept.pop(next(iter(_kept)), None)
        return copy.copy(workload)  # with a name and provenance of its own; the table is shared

    return made
