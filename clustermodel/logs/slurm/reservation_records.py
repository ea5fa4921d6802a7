"""Reservations of Slurm: when they begin and recur, and which nodes they keep free."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from clustermodel.errors import TraceError, quoted
from clustermodel.logs import values as log_values
from clustermodel.logs.slurm.configuration import NOTHING, Configuration, Record, reasons
from clustermodel.logs.slurm.node_records import _MOST_UNITS, members_of
from clustermodel.machine.reservation import Reservation
from clustermodel.validation import LONGEST_S

_DAY_S: Final = 86_400
_WEEK_S: Final = 7 * _DAY_S
_EVERY_S: Final = {"HOURLY": 3600, "DAILY": _DAY_S, "WEEKLY": _WEEK_S}
"""Flags of reservations that recur."""
_DAYS: Final = {"WEEKDAY": range(5), "WEEKEND": range(5, 7)}
"""Flags of reservations that recur on some days of each week, from Monday on."""
_RESERVATION: Final = reasons(
    (None, "reservationname starttime endtime duration nodes nodecnt corecnt tres state users accounts groups flags coreids"),
    (None, "maxstartdelay burstbuffer watts comment nodename"),
    ("jobs of other partitions that have the nodes may use it too", "partitionname"),
    ("its nodes are those named", "features"),
    ("licenses are no rule of the model", "licenses"),
)


def reservations_of(slurm: Configuration, of_nodes: Mapping[str, range]) -> list[Reservation]:
    """Return the reservations of which it is known when and where they are."""
    made = []
    for name, record in slurm.records["reservation"].items():
        fields, whose = record.fields, f"reservation {name}"
        slurm.leave_fields(record, _RESERVATION, (), whose)
        people = {
            kind: [each for who in fields.get(kind, "").split(",") if (each := who.strip()).lower() not in NOTHING]
            for kind in ("accounts", "users", "groups")
        }
        mixed = [kind for kind, names in people.items() if len({who.startswith("-") for who in names}) > 1]
        flags = {flag.strip().upper() for flag in fields.get("flags", "").split(",")}
        members = members_of(slurm, record, {})
        nodes = _reserved_nodes(slurm, record, members, of_nodes, whose)
        recurs = not flags.isdisjoint((*_EVERY_S, *_DAYS))
        start_s, end_s = (_since_begin(slurm, record, field, recurs) for field in ("starttime", "endtime"))
        times = _times_of(slurm, flags, start_s, end_s)
        problem = next(
            words
            for wrong, words in (
                (slurm.begin is None, "say when the log begins (--start)"),
                (people["groups"], "reservations are for accounts and users, not for groups"),
                (mixed, "some of its names have a minus and some have none"),
                ("TIME_FLOAT" in flags, "its begin moves on as time passes, so that it never comes"),
                (not members, "it has no nodes"),
                (not any(name in of_nodes for name in members), "no file describes its nodes"),
                (not nodes, f"its nodes have no {slurm.unit}"),
                (end_s <= start_s, "it ends before it begins"),
                (any(every_s is not None and end_s - start_s >= every_s for _, _, every_s in times),
                 "it begins again before or as it ends"),
                (not times, "it is over when the log begins"),
                (True, ""),
            )
            if wrong
        )  # fmt: skip
        if problem:
            slurm.leave("StartTime", problem, whose)
            continue
        made += [
            Reservation(
                nodes=nodes, start_s=begin_s, end_s=until_s, every_s=every_s, name=name,
                accounts=people["accounts"], users=people["users"],
            )
            for begin_s, until_s, every_s in times
        ]  # fmt: skip
    return made


def _times_of(
    slurm: Configuration, flags: Collection[str], start_s: float, end_s: float
) -> list[tuple[float, float, float | None]]:
    """Return when a reservation begins, ends and recurs after the log begins: once, or on several days of each week."""
    every_s = next((float(_EVERY_S[flag]) for flag in sorted(_EVERY_S) if flag in flags), None)
    days = next((days for flag, days in _DAYS.items() if flag in flags), None)
    first = [(start_s, end_s, every_s)]
    if days is not None:
        weekday = int((slurm.begin_on_wall + start_s) // _DAY_S + 3) % 7  # 1 January 1970 was a Thursday
        shifts = [(day - weekday) % 7 * _DAY_S for day in days]
        first = [(start_s + shift, end_s + shift, float(_WEEK_S)) for shift in sorted(shifts)]
    times: list[tuple[float, float, float | None]] = []
    for begin_s, until_s, period_s in first:
        shift = 0.0 if period_s is None or begin_s >= 0 else -(begin_s // period_s) * period_s
        if period_s is not None and shift and until_s + shift - period_s > 0:  # the one that has begun
            times.append((0.0, until_s + shift - period_s, None))
        if until_s + shift > 0:
            times.append((max(begin_s + shift, 0.0), until_s + shift, period_s))
    return times


def _reserved_nodes(
    slurm: Configuration, record: Record, members: Sequence[str], of_nodes: Mapping[str, range], whose: str
) -> list[int]:
    """Return the nodes of a reservation, in the unit that was asked for; if it has some cores of nodes, those."""
    cores: dict[str, list[int]] = {}
    for part in filter(None, record.fields.get("coreids", "").split(";")):
        names, _, text = part.partition(":")
        try:
            for name in slurm.names(record.where, names):
                cores.setdefault(name, []).extend(_numbers(text))
        except ValueError:
            raise TraceError(f"{record.where}: CoreIDs: {quoted(text)} are no numbers of cores") from None
    nodes: list[int] = []
    unknown = [name for name in members if name not in of_nodes]
    if 0 < len(unknown) < len(members):
        more = f" and {len(unknown) - 1} more" * (len(unknown) > 1)
        slurm.leave("Nodes", f"no file describes {unknown[0]}{more}", whose)
    for name in members:
        numbers = of_nodes.get(name, range(0))
        if name not in cores or slurm.unit != "cores":
            nodes += numbers
            continue
        node = slurm.records["node"].get(name)
        threads = 1 if node is None else _threads(node, len(numbers))
        cpus = {cpu for core in cores[name] for cpu in range(core * threads, (core + 1) * threads)}
        nodes += [number for cpu, number in enumerate(numbers) if cpu in cpus]
    if nodes and cores and slurm.unit != "cores":
        hint = "; --unit cores reserves these cores"
        slurm.leave("CoreIDs", f"the model counts {slurm.unit}: the whole nodes are reserved{hint}", whose)
    return nodes


def _threads(node: Record, cpus: int) -> int:
    """Return how many of the CPUs of a node are threads of one core."""
    threads = log_values.whole(node.fields.get("threadspercore", "")) or 1
    return threads if cpus % threads == 0 else 1


def _since_begin(slurm: Configuration, record: Record, field: str, recurs: bool) -> float:
    """Return a time in seconds on the clock of the jobs; if it recurs, with the clock on the wall as the log begins."""
    clock, begin = (log_values.Clock(), slurm.begin_on_wall) if recurs else (slurm.clock, slurm.begin or 0)
    try:
        seconds = clock.seconds(record.fields.get(field, ""))
    except ValueError as problem:
        raise TraceError(f"{record.where}: {slurm.spelled(field)}: {problem}") from None
    return LONGEST_S if seconds is None else float(seconds - begin)


def _numbers(text: str) -> Iterator[int]:
    """Yield the numbers of a list as ``0-3,8``; a ValueError if it is none."""
    for part in text.split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), min(int(high or low), int(low) + _MOST_UNITS) + 1)
