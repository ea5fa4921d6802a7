"""Job streams as tables of TOML files: arrival processes, distributions, models of estimates.

A distribution is a number, a list of numbers, a table of weights by value (``{"1" = 0.3, "8" = 0.7}``), a table with the
``type`` of this package and its fields (``{type = "Lognormal", mean = 600, cv = 2}``), or a table with a distribution of
``scipy.stats`` and its arguments (``{scipy = "geom", args = [0.2]}``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from clustermodel.errors import did_you_mean, quoted
from clustermodel.tables import Place, made, placed, plain
from clustermodel.workload.arrivals import Bursts, Cycle, MarkovModulated, Poisson, Renewal, TraceArrivals
from clustermodel.workload.distributions import BySize, Exponential, Lognormal, LogUniform, TwoStageUniform, Zipf
from clustermodel.workload.estimates import FactorEstimates, PhiEstimates, RoundedEstimates
from clustermodel.workload.hyper_erlang import HyperErlang
from clustermodel.workload.job_stream import JobStream
from clustermodel.workload.sessions import ClosedUsers, Sessions
from clustermodel.workload.table import Workload

TYPES: Final[dict[str, type]] = {
    kind.__name__: kind
    for kind in (
        Exponential, Lognormal, LogUniform, TwoStageUniform, Zipf, BySize, HyperErlang,
        Poisson, MarkovModulated, Renewal, Bursts, Cycle, Sessions, ClosedUsers,
        FactorEstimates, PhiEstimates, RoundedEstimates,
    )
}  # fmt: skip
"""What ``type`` may be."""
_TYPE: Final = "type"
_SCIPY: Final = "scipy"
_ARGUMENTS: Final = "args"
_WORKLOAD: Final = "workload"

WorkloadFrom = Callable[[object, Place], Workload]
TableOf = Callable[[Workload, Place], dict[str, Any]]


def job_stream_from(value: object, place: Place, workload_from: WorkloadFrom) -> JobStream:
    """Return the job stream that a table describes.

    Args:
        value: the table.
        place: of the table.
        workload_from: makes the workload whose submission times are an arrival process.

    Raises:
        SpecificationError: a key is unknown or missing, or a value is not allowed.
    """
    if not isinstance(value, Mapping):
        raise place.refused(value, "a table with the fields of a JobStream")
    return made(JobStream, {key: _from(one, place.at(key), workload_from) for key, one in value.items()}, place)


def _from(value: object, place: Place, workload_from: WorkloadFrom) -> Any:
    """Return an ingredient; numbers and texts are what they are, and the class that gets them refuses wrong ones."""
    if isinstance(value, list):
        return [_from(one, place.at(number), workload_from) for number, one in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    if _WORKLOAD in value:
        if len(value) > 1:
            raise place.error(f"{_WORKLOAD} stands alone, for the submission times of its jobs")
        return TraceArrivals(workload_from(value[_WORKLOAD], place.at(_WORKLOAD)))
    if _SCIPY in value:
        return _of_scipy(value, place)
    if _TYPE in value:
        kind = value[_TYPE]
        if not isinstance(kind, str) or kind not in TYPES:
            hint = did_you_mean(str(kind), TYPES)
            raise place.at(_TYPE).error(f"{quoted(kind)} is unknown{hint}; known are {', '.join(TYPES)}")
        return made(
            TYPES[kind],
            {key: _from(one, place.at(key), workload_from) for key, one in value.items() if key != _TYPE},
            place,
        )
    return {_number(key, place): weight for key, weight in value.items()}


def _of_scipy(value: Mapping[str, Any], place: Place) -> object:
    import scipy.stats

    name = value[_SCIPY]
    kind = getattr(scipy.stats, name, None) if isinstance(name, str) else None
    if not isinstance(kind, scipy.stats.rv_continuous | scipy.stats.rv_discrete):
        raise place.at(_SCIPY).refused(name, "the name of a distribution of scipy.stats, as 'geom'")
    positional = value.get(_ARGUMENTS, [])
    if not isinstance(positional, list):
        raise place.at(_ARGUMENTS).refused(positional, "a list of numbers")
    named = {key: one for key, one in value.items() if key not in (_SCIPY, _ARGUMENTS)}
    return placed(lambda: kind(*positional, **named), place, ())


def _number(key: str, place: Place) -> float:
    for convert in (int, float):
        try:
            return convert(key)
        except ValueError:
            continue
    raise place.at(key).error(f"unknown key; a distribution has {_TYPE}, {_SCIPY}, or numbers with their weights")


def table_of_job_stream(stream: JobStream, place: Place, table_of: TableOf) -> dict[str, Any]:
    """Return the table that describes a job stream.

    Args:
        stream: the job stream.
        place: of the table, in the file that is written.
        table_of: describes a workload.

    Raises:
        SpecificationError: the stream has an object of the user, which a file cannot describe.
    """
    return _fields(stream, place, table_of)


def _fields(thing: Any, place: Place, table_of: TableOf) -> dict[str, Any]:
    values = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {key: _described(value, place.at(key), table_of) for key, value in values.items() if value is not None}


def _described(value: Any, place: Place, table_of: TableOf) -> object:
    if type(value) is TraceArrivals:
        return {_WORKLOAD: table_of(value.trace, place.at(_WORKLOAD))}
    if TYPES.get(type(value).__name__) is type(value):
        return {_TYPE: type(value).__name__, **_fields(value, place, table_of)}
    if type(value).__module__.startswith("scipy.stats") and hasattr(value, "dist"):
        positional = {_ARGUMENTS: plain(value.args, place)} if value.args else {}
        return {_SCIPY: value.dist.name, **positional, **plain(value.kwds, place)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_described(one, place.at(number), table_of) for number, one in enumerate(value)]
    return plain(value, place)
