"""Selecting, scaling and resampling jobs.

Weeks of a log, or its users, are drawn with replacement, so that one log gives many sample paths.  Weeks are the blocks of a
block bootstrap (Künsch 1989), which do not overlap here, since submissions depend on the day and the hour.  Zakay & Feitelson
2014 resample logs for the evaluation of schedulers by recombining the jobs of their users.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from numbers import Integral, Real
from typing import Final, Literal, NamedTuple
from zlib import crc32
from zoneinfo import ZoneInfo

import numpy as np

from clustermodel.arrays import BoolArray, IntArray
from clustermodel.errors import SpecificationError, counted, quoted
from clustermodel.job import UNSET, JobRow
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND, to_ticks
from clustermodel.validation import require_seconds, require_whole
from clustermodel.workload.distributions import Checked, positive


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFilter:
    """Which jobs of a workload to keep; everything by default."""

    window_s: tuple[float, float] | None = None
    """Keep jobs submitted in [low, high) seconds."""
    nodes: tuple[int, int] | None = None
    """Keep jobs of low to high nodes, both included."""
    statuses: Collection[int] | None = None
    """Keep jobs with one of these SWF statuses."""
    users: Collection[int] | None = None
    """Keep jobs of these users."""

    def __post_init__(self) -> None:
        for fields, is_allowed, allowed, kind in (
            (("window_s", "nodes"), _is_interval, "(low, high), low <= high", tuple),
            (("statuses", "users"), _are_numbers, "a set of whole numbers", frozenset),
        ):
            for field in fields:
                value = getattr(self, field)
                if value is not None and not is_allowed(value):
                    raise SpecificationError(f"JobFilter.{field}: {quoted(value)} is not allowed; it must be {allowed}")
                if value is not None:
                    object.__setattr__(self, field, kind(value))


def _are_numbers(value: object) -> bool:
    if not isinstance(value, Collection) or isinstance(value, bytes | bytearray):
        return False
    return all(isinstance(number, Integral) for number in value)


def _is_interval(value: object) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2 or not all(isinstance(end, Real) for end in value):
        return False
    return bool(value[0] <= value[1])


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadScale(Checked, interarrival=positive, run_time=positive, size=positive):
    """Factors above zero that change a workload's load."""

    interarrival: float = 1.0
    """Multiplies the time between submissions: 0.5 doubles the load."""
    run_time: float = 1.0
    """Multiplies run times and estimates (Zhang et al. 2003, section 2.2)."""
    size: float = 1.0
    """Multiplies the number of nodes, rounded to the nearest whole number of at least one."""


_SUBMIT, _ID, _NODES, _RUN, _ESTIMATE, _USER, _STATUS = map(
    JobRow._fields.index, ("submit", "id", "nodes", "run", "estimate", "user", "status")
)


def filtered(table: IntArray, keep: JobFilter | None, dropped: Counter[str]) -> BoolArray:
    """Return which jobs of a table of rows are kept, shape ``(jobs,)``; the others are counted by the first reason."""
    kept = np.ones(len(table), dtype=bool)
    if keep is None:
        return kept

    def require(reason: str, passed: Iterable[bool]) -> None:
        nonlocal kept
        passed = np.fromiter(passed, dtype=bool, count=len(table))
        if wrong := int((kept & ~passed).sum()):
            dropped[reason] += wrong
        kept = kept & passed

    if keep.window_s is not None:
        low, high = (end * TICKS_PER_SECOND for end in keep.window_s)
        require("outside the time window", (low <= submit < high for submit in table[:, _SUBMIT].tolist()))
    if keep.nodes is not None:
        fewest, most = keep.nodes
        require("outside the size range", (fewest <= nodes <= most for nodes in table[:, _NODES].tolist()))
    if keep.statuses is not None:
        require("status not selected", map(keep.statuses.__contains__, table[:, _STATUS].tolist()))
    if keep.users is not None:
        require("user not selected", map(keep.users.__contains__, table[:, _USER].tolist()))
    return kept


def scaled(table: IntArray, scale: LoadScale, first: int) -> IntArray:
    """Return a table of rows scaled; the submission at ``first``, ticks, does not move."""
    changed = table.copy()
    for column, factor, least in (
        (_SUBMIT, scale.interarrival, 0), (_RUN, scale.run_time, 1), (_ESTIMATE, scale.run_time, 1), (_NODES, scale.size, 1),
    ):  # fmt: skip
        origin = first if column == _SUBMIT else 0
        amount = table[:, column] - origin
        with np.errstate(over="ignore"):  # infinity is too large, too
            values = np.where(amount > 0, np.maximum(least, np.rint(amount * float(factor))), amount)
        if (large := np.flatnonzero(origin + values >= float(LAST_TICK))).size:
            raise SpecificationError(
                f"LoadScale: job {table[large[0], _ID]}: a time or size is too large for 64-bit ticks; "
                "scale it by smaller factors"
            )
        changed[:, column] = origin + values.astype(np.int64)
    return changed


Unit = Literal["weeks", "users"] | float
"""What is drawn: calendar weeks, blocks of so many seconds, or users."""
WEEK_S: Final = 7 * 86_400
RESAMPLE: Final = "resample"
"""The option by which the provenance of a workload says that it is resampled."""
FEW_BLOCKS: Final = 8
"""The number of blocks below which a note says that they are few."""
_PURPOSE: Final = (crc32(b"resampling"),)
"""Separates the random stream of resampling from all others of the same seed."""


class Draws(NamedTuple):
    """The jobs that were drawn."""

    place: IntArray
    """Places in the log, shape ``(jobs,)``."""
    shift: IntArray
    """Ticks by which each is submitted later than in the log, shape ``(jobs,)``."""
    draw: IntArray
    """Number of the draw, from 0, shape ``(jobs,)``; of users: how often the user was drawn before."""
    note: str
    """What was drawn."""


def is_resampled(options: Mapping[str, object]) -> bool:
    """Return whether the options of a provenance, or those of a stream merged into it, name a resampling."""
    return RESAMPLE in options or any(isinstance(each, Mapping) and RESAMPLE in each for each in options.values())


def checked_unit(unit: Unit) -> Unit:
    """Return ``unit`` if it is ``"weeks"``, ``"users"`` or a number of seconds above zero."""
    if unit in ("weeks", "users"):
        return unit
    if isinstance(unit, str):
        raise SpecificationError(f"of: {quoted(unit)} is not allowed; it must be 'weeks', 'users' or a number of seconds")
    return require_seconds("of", unit, positive=True)


def drawn_blocks(submit: IntArray, unit: Unit, seed: int, header: Mapping[str, str]) -> Draws:
    """Return whole blocks of time drawn with replacement, laid end to end until they are as long as the log; the last is cut.

    ``submit`` are the submissions of the log in order, ticks, shape ``(jobs,)``.  Weeks begin on Monday at 0:00 if the header
    says when the log begins; blocks of other lengths, seconds, begin with the first submission.
    """
    length = to_ticks(WEEK_S if unit == "weeks" else float(unit))
    first, last = int(submit[0]), int(submit[-1])
    begin = first + (_since_monday(header, first) if unit == "weeks" else 0)
    blocks = (last + 1 - begin) // length
    what = "week" if unit == "weeks" else f"block of {unit:g} s"
    if blocks < 2:
        days = (last - first) / TICKS_PER_SECOND / 86_400
        raise SpecificationError(
            f"of: {quoted(unit)} is not allowed; the jobs span {days:.3g} days, less than two whole blocks"
        )
    count = -(-(last + 1 - first) // length)
    chosen = _random(seed).integers(blocks, size=count)
    low, high = (np.searchsorted(submit, begin + (chosen + end) * length) for end in (0, 1))
    place = np.concatenate([np.arange(*ends) for ends in zip(low, high, strict=True)])
    draw = np.repeat(np.arange(count), high - low)
    shift = (draw - chosen[draw]) * length
    kept = submit[place] + shift - begin <= last - first
    note = f"{counted(count, what)} drawn with replacement from {blocks:,}, the last one cut"
    if blocks < FEW_BLOCKS:
        note += f"; fewer than {FEW_BLOCKS} are too few for intervals"
    return Draws(place[kept], shift[kept], draw[kept], note)


def _since_monday(header: Mapping[str, str], first: int) -> int:
    """Return the ticks from a submission to the next Monday, 0:00, where the log was made; 0 where this is unknown."""
    try:
        zone = ZoneInfo(header["TimeZoneString"])
        began = datetime.fromtimestamp(int(header["UnixStartTime"]) + first // TICKS_PER_SECOND, zone)
    except (KeyError, ValueError, OSError, OverflowError):  # an unknown zone is a KeyError, a damaged name one of the others
        return 0
    since = began.weekday() * 86_400 + began.hour * 3600 + began.minute * 60 + began.second
    return -since % WEEK_S * TICKS_PER_SECOND - first % TICKS_PER_SECOND


def drawn_users(user: IntArray, seed: int) -> Draws:
    """Return all jobs of users drawn with replacement, as many users as there are, at their recorded times.

    ``user`` is the number of each job's user, shape ``(jobs,)``; jobs without one count as those of one user.
    """
    known, owner = np.unique(user, return_inverse=True)
    if len(known) < 2:
        raise SpecificationError("of: 'users' is not allowed; the jobs have fewer than two users")
    times = np.bincount(_random(seed).integers(len(known), size=len(known)), minlength=len(known))[owner]
    place = np.repeat(np.arange(len(user)), times)
    draw = np.arange(len(place)) - np.repeat(np.cumsum(times) - times, times)
    note = (
        f"{counted(len(known), 'user')} drawn with replacement: {len(place):,} jobs instead of {len(user):,}; the load varies"
    )
    return Draws(place, np.zeros_like(place), draw, note)


def distinct_users(user: IntArray, draw: IntArray, names: tuple[str, ...]) -> tuple[IntArray, tuple[str, ...]]:
    """Return numbers of users that differ between draws of a user, shape ``(jobs,)``, and the names with the new ones."""
    again = draw > 0
    pairs, which = np.unique(np.stack([draw[again], user[again]]), axis=1, return_inverse=True)
    numbers = user.copy()
    numbers[again] = max(int(user.max()), len(names)) + 1 + which.ravel()
    if names:
        names += tuple(f"{names[user - 1] if user > 0 else 'unknown'} ({before + 1})" for before, user in pairs.T.tolist())
    return numbers, names


def distinct_jobs(ids: IntArray, draw: IntArray) -> tuple[IntArray, IntArray]:
    """Return job numbers that differ between draws, and the amounts added, shape ``(jobs,)`` both.

    The last digits are the original number: with up to 28,490 jobs, job 123 of the third draw is 200,123.
    """
    highest, lowest = int(ids.max()), int(ids.min())
    step = 10 ** len(str(max(highest, highest - lowest)))
    if highest + step * int(draw.max()) > LAST_TICK:
        raise SpecificationError(f"resampled: job numbers up to {highest} are too large to tell draws apart; renumber the jobs")
    added = step * draw
    return ids + added, added


def shifted(preceding: IntArray, added: IntArray | int) -> IntArray:
    """Return the numbers of preceding jobs in the same draw, shape ``(jobs,)``."""
    return np.where(preceding == UNSET, UNSET, preceding + added)


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(require_whole("seed", seed, at_least=0), spawn_key=_PURPOSE))
