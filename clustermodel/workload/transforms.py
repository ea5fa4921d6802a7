"""Selecting, scaling and resampling jobs.

Weeks of a log, or its users, are drawn with replacement, so that one log gives many sample paths.  Weeks are the blocks of a
block bootstrap (Künsch 1989), which do not overlap here, since submissions depend on the day and the hour.  Zakay & Feitelson
2014 resample logs for the evaluation of schedulers by recombining the jobs of their users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from numbers import Integral, Real
from operator import contains
from typing import Any, Final, Literal

import numpy as np

from clustermodel.arrays import BoolArray, IntArray
from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted, refused
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND, to_ticks
from clustermodel.validation import Checked, positive, require, require_seconds
from clustermodel.workload.job import NUMBERS

SUBMIT, ID, NODES, RUN, ESTIMATE, USER, STATUS = map(
    NUMBERS.index, ("submit", "id", "nodes", "run", "estimate", "user", "status")
)
"""Columns of a table of rows."""
SELECTED: Final = {
    "users": "user", "groups": "group", "accounts": "account", "partitions": "partition", "qos": "qos", "queues": "queue",
}  # fmt: skip
"""Columns whose values fields of :class:`JobFilter` select, by field."""
_MOST_NAMED: Final = 8  # names in a message


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """Which jobs of a workload to keep; everything by default."""

    window_s: tuple[float, float] | None = None
    """Keep jobs submitted in [low, high) seconds."""
    nodes: tuple[int, int] | None = None
    """Keep jobs of low to high nodes, both included."""
    statuses: Collection[int] | None = None
    """Keep jobs with one of these SWF statuses."""
    users: Collection[int | str] | None = None
    """Keep jobs of these users: names or numbers, here and below."""
    groups: Collection[int | str] | None = None
    accounts: Collection[int | str] | None = None
    partitions: Collection[int | str] | None = None
    qos: Collection[int | str] | None = None
    queues: Collection[int | str] | None = None

    def __post_init__(self) -> None:
        for field in ("window_s", "nodes", "statuses", *SELECTED):
            value: Any = getattr(self, field)
            if value is None:
                continue
            of_names = (Integral, str) if field in SELECTED else Integral
            if is_interval := field in ("window_s", "nodes"):
                fits = isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(end, Real) for end in value)
                fits = fits and value[0] <= value[1]
            else:
                fits = isinstance(value, Collection) and not isinstance(value, str | bytes | bytearray)
                fits = fits and all(isinstance(each, of_names) for each in value)
            of = "names or whole numbers" if field in SELECTED else "whole numbers"
            allowed = "(low, high), low <= high" if is_interval else f"a set of {of}"
            require(fits, f"{type(self).__name__}.{field}", value, f"it must be {allowed}")
            object.__setattr__(self, field, tuple(value) if is_interval else frozenset(value))


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadScale(Checked, interarrival=positive, run_time=positive, size=positive):
    """Factors above zero that change a workload's load."""

    interarrival: float = 1.0
    """Multiplies the time between submissions: 0.5 doubles the load."""
    run_time: float = 1.0
    """Multiplies run times and estimates (Zhang et al. 2003, section 2.2)."""
    size: float = 1.0
    """Multiplies the number of nodes, and the least and the largest number of a malleable job, rounded to the nearest whole
    number of at least one."""


def chosen_numbers(
    keep: JobFilter | None, names: Mapping[str, Mapping[str, Iterable[int]]], source: str, *, by_number: Collection[str]
) -> dict[str, list[int]]:
    """Return the numbers of the users, queues and so on that are kept, by column.

    ``names`` has the columns of the source with the numbers of each name; in those of ``by_number`` other numbers are allowed.
    """
    chosen: dict[str, list[int]] = {}
    require_selectable(keep, names, source)
    for field, column in SELECTED.items():
        if keep is None or (wanted := getattr(keep, field)) is None:
            continue
        known, numbers = names[column], chosen.setdefault(column, [])
        for text in map(str, wanted):
            if text in known:
                numbers += known[text]
            elif column in by_number and text.removeprefix("-").isdecimal():
                numbers.append(int(text))
            else:
                some = ", ".join([*sorted(known)[:_MOST_NAMED], *["..."] * (len(known) > _MOST_NAMED)])
                there_are = f"there are {some}" if known else "only numbers are known"
                raise SpecificationError(
                    f"{column}: {quoted(text)} has no jobs in {source}{did_you_mean(text, known)}; {there_are}"
                )
    return chosen


def require_selectable(keep: JobFilter | None, columns: Collection[str], source: str) -> None:
    """Refuse a selection by users, queues and so on that no job of a source has: it has those of ``columns``."""
    for field, column in SELECTED.items():
        if keep is not None and getattr(keep, field) is not None and column not in columns:
            raise SpecificationError(f"{column}: jobs of {source} have none; they have {', '.join(columns)}")


def filtered(
    table: IntArray, keep: JobFilter | None, dropped: Counter[str], chosen: Mapping[str, tuple[IntArray, list[int]]]
) -> BoolArray:
    """Return which jobs of a table of rows are kept, shape ``(jobs,)``; the others are counted by the first reason.

    ``chosen`` has columns of users and so on, and the numbers that are kept.
    """
    kept = np.ones(len(table), dtype=bool)
    if keep is None:
        return kept
    window = keep.window_s and tuple(end * TICKS_PER_SECOND for end in keep.window_s)
    conditions: tuple[tuple[str, int, Any, Callable[[Any, int], bool]], ...] = (
        ("outside the time window", SUBMIT, window, lambda ends, submit: ends[0] <= submit < ends[1]),
        ("outside the size range", NODES, keep.nodes, lambda ends, nodes: ends[0] <= nodes <= ends[1]),
        ("status not selected", STATUS, keep.statuses, contains),
    )
    passed = {
        reason: np.array([holds(allowed, value) for value in table[:, column].tolist()], dtype=bool)
        for reason, column, allowed, holds in conditions
        if allowed is not None
    }
    passed |= {f"{name} not selected": np.isin(values, numbers) for name, (values, numbers) in chosen.items()}
    for reason, which in passed.items():
        if wrong := int((kept & ~which).sum()):
            dropped[reason] += wrong
        kept &= which
    return kept


def scaled(table: IntArray, scale: LoadScale, first: int, think: int | None = None, sizes: Collection[int] = ()) -> IntArray:
    """Return a table of rows scaled; the submission at ``first``, ticks, stays.

    ``think`` is the column of think times, ``sizes`` are those of numbers of nodes beside that of the rows.
    """
    changed = table.copy()
    for column, origin, factor, least in (
        (SUBMIT, first, scale.interarrival, 0), (RUN, 0, scale.run_time, 1), (ESTIMATE, 0, scale.run_time, 1),
        (NODES, 0, scale.size, 1), (think, 0, scale.interarrival, 0),
        *((column, 0, scale.size, 1) for column in sizes),
    ):  # fmt: skip
        if column is None:
            continue
        amount = table[:, column] - origin
        with np.errstate(over="ignore"):  # infinity is too large, too
            values = np.where(amount > 0, np.maximum(least, np.rint(amount * float(factor))), amount)
        if (large := np.flatnonzero(origin + values >= float(LAST_TICK))).size:
            wrong = f"LoadScale: job {table[large[0], ID]}: a time or size is too large for 64-bit ticks"
            raise SpecificationError(f"{wrong}; scale it by smaller factors")
        changed[:, column] = origin + values.astype(np.int64)
    return changed


Unit = Literal["weeks", "users"] | float
"""What is drawn: calendar weeks, blocks of so many seconds, or users."""
WEEK_S: Final = 7 * 86_400
RESAMPLE: Final = "resample"
"""The option by which the provenance of a workload says that it is resampled."""
Draws = tuple[IntArray, IntArray, IntArray, str]
"""Of each job drawn, its place in the log, the ticks by which it is submitted later, and the number of the draw from 0, or, of
users, how often the user was drawn before; what to note."""


def is_resampled(options: Mapping[str, object]) -> bool:
    """Return whether the options of a provenance, or those of a stream merged into it, name a resampling."""
    return RESAMPLE in options or any(isinstance(each, Mapping) and RESAMPLE in each for each in options.values())


def checked_unit(unit: Unit) -> Unit:
    """Return ``unit`` if it is ``"weeks"``, ``"users"`` or a number of seconds above zero."""
    if isinstance(unit, str):
        require(unit in ("weeks", "users"), "of", unit, "it must be 'weeks', 'users' or a number of seconds")
        return unit
    return require_seconds("of", unit, positive=True)


FEWEST_BLOCKS: Final = 8
"""Resamples of fewer different weeks, users or other blocks say little of others."""


def drawn_blocks(submit: IntArray, unit: Unit, rng: np.random.Generator, header: Mapping[str, str]) -> Draws:
    """Return blocks of time drawn with replacement, laid end to end until they are as long as the log; the last is cut."""
    first, last = int(submit[0]), int(submit[-1])
    begin, length, blocks = whole_blocks(submit, unit, header)
    if blocks < 2:
        days = (last - first) / TICKS_PER_SECOND / 86_400
        raise refused("of", unit, f"the jobs span {days:.3g} days, less than two whole blocks")
    count = -(-(last + 1 - first) // length)
    chosen = rng.integers(blocks, size=count)
    low, high = (np.searchsorted(submit, begin + (chosen + end) * length) for end in (0, 1))
    place = np.concatenate([np.arange(*ends) for ends in zip(low, high, strict=True)])
    draw = np.repeat(np.arange(count), high - low)
    shift = (draw - chosen[draw]) * length
    kept = submit[place] + shift - begin <= last - first
    what = "week" if unit == "weeks" else f"block of {unit:g} s"
    note = f"{counted(count, what)} drawn with replacement from {blocks:,}, the last one cut"
    few = f"; fewer than {FEWEST_BLOCKS} are too few for intervals" if blocks < FEWEST_BLOCKS else ""
    return place[kept], shift[kept], draw[kept], note + few


def whole_blocks(submit: IntArray, unit: Unit, header: Mapping[str, str]) -> tuple[int, int, int]:
    """Return when the first whole block of time begins, how long each is, ticks, and how many there are."""
    # Weeks begin on Monday at 0:00 if the header says when the log begins; other blocks with the first submission.
    length = to_ticks(WEEK_S if unit == "weeks" else float(unit))
    first, last = int(submit[0]), int(submit[-1])
    begin = first + (_since_monday(header, first) if unit == "weeks" else 0)
    return begin, length, (last + 1 - begin) // length


def moment_of(header: Mapping[str, str], since_s: int) -> datetime | None:
    """Return when something was, where the log was made, so many seconds after its begin; ``None`` where this is unknown."""
    try:
        from zoneinfo import ZoneInfo  # noqa: PLC0415  few runs need it

        return datetime.fromtimestamp(int(header["UnixStartTime"]) + since_s, ZoneInfo(header["TimeZoneString"]))
    except (KeyError, ValueError, OSError, OverflowError):  # an unknown zone is a KeyError, a damaged name one of the others
        return None


def _since_monday(header: Mapping[str, str], first: int) -> int:
    """Return the ticks from a submission to the next Monday, 0:00, where the log was made; 0 where this is unknown."""
    if (began := moment_of(header, first // TICKS_PER_SECOND)) is None:
        return 0
    since = began.weekday() * 86_400 + began.hour * 3600 + began.minute * 60 + began.second
    return -since % WEEK_S * TICKS_PER_SECOND - first % TICKS_PER_SECOND


def drawn_users(user: IntArray, rng: np.random.Generator) -> Draws:
    """Return all jobs of as many users as there are, drawn with replacement; jobs without one count as those of one user."""
    known, owner = np.unique(user, return_inverse=True)
    if len(known) < 2:
        raise SpecificationError("of: 'users' is not allowed; the jobs have fewer than two users")
    times = np.bincount(rng.integers(len(known), size=len(known)), minlength=len(known))[owner]
    place = np.repeat(np.arange(len(user)), times)
    draw = np.arange(len(place)) - np.repeat(np.cumsum(times) - times, times)
    note = f"{counted(len(known), 'user')} drawn with replacement: {len(place):,} jobs instead of {len(user):,}"
    return place, np.zeros_like(place), draw, f"{note}; the load varies"


def distinct_users(user: IntArray, draw: IntArray, names: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
    """Return numbers of users that differ between draws of a user, and the names with the new ones."""
    again = draw > 0
    pairs, which = np.unique(np.stack([draw[again], user[again]]), axis=1, return_inverse=True)
    numbers = user.copy()
    numbers[again] = max(int(user.max()), len(names)) + 1 + which.ravel()
    if names:
        names += tuple(f"{names[user - 1] if user > 0 else 'unknown'} ({before + 1})" for before, user in pairs.T.tolist())
    return numbers, names


def added_to_ids(ids: IntArray, draw: IntArray) -> IntArray:
    """Return what to add to job numbers so that they differ between draws; their last digits stay: job 123 becomes 200,123."""
    highest, lowest = int(ids.max()), int(ids.min())
    step = 10 ** len(str(max(highest, highest - lowest)))
    if highest + step * int(draw.max()) > LAST_TICK:
        raise SpecificationError(f"resampled: job numbers up to {highest} are too large to tell draws apart; renumber the jobs")
    added: IntArray = step * draw
    return added
