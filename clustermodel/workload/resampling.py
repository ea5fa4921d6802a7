"""Resampling of a log: its weeks, or its users, drawn with replacement, so that one log gives many sample paths.

Weeks are the blocks of a block bootstrap (Künsch 1989), which here do not overlap, since submissions depend on the day and the
hour.  Zakay & Feitelson 2014 resample logs for the evaluation of schedulers by recombining the jobs of their users.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple
from zlib import crc32
from zoneinfo import ZoneInfo

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.errors import SpecificationError, counted, quoted
from clustermodel.job import UNSET
from clustermodel.ticks import LAST_TICK, TICKS_PER_SECOND, to_ticks
from clustermodel.validation import require_seconds, require_whole

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
    return RESAMPLE in options or any(isinstance(one, Mapping) and RESAMPLE in one for one in options.values())


def checked_unit(unit: Unit) -> Unit:
    """Return what is to be drawn after checking it.

    Raises:
        SpecificationError: it is neither ``"weeks"``, ``"users"`` nor a number of seconds above zero.
    """
    if unit in ("weeks", "users"):
        return unit
    if isinstance(unit, str):
        raise SpecificationError(f"of: {quoted(unit)} is not allowed; it must be 'weeks', 'users' or a number of seconds")
    return require_seconds("of", unit, positive=True)


def drawn_blocks(submit: IntArray, unit: Unit, seed: int, header: Mapping[str, str]) -> Draws:
    """Return whole blocks of time drawn with replacement, laid end to end until they are as long as the log.

    Args:
        submit: submissions of the log in order, ticks, shape ``(jobs,)``.
        unit: ``"weeks"``, which begin on Monday at 0:00 if the header says when the log begins, or a length in seconds;
            other blocks begin with the first submission.  The last block drawn is cut.
        seed: of the random numbers.
        header: of the log, SWF comments.

    Raises:
        SpecificationError: the log has fewer than two whole blocks.
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
    place = np.concatenate([np.arange(one, other) for one, other in zip(low, high, strict=True)])
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

    Args:
        user: number of each job's user, shape ``(jobs,)``; jobs without one count as those of one user.
        seed: of the random numbers.

    Raises:
        SpecificationError: the log has fewer than two users.
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
    """Return numbers of users that differ between draws of one user, shape ``(jobs,)``, and the names with the new ones.

    Args:
        user: number of each drawn job's user, shape ``(jobs,)``.
        draw: how often the user was drawn before, shape ``(jobs,)``.
        names: which the numbers from 1 on stand for, perhaps none.
    """
    again = draw > 0
    pairs, which = np.unique(np.stack([draw[again], user[again]]), axis=1, return_inverse=True)
    numbers = user.copy()
    numbers[again] = max(int(user.max()), len(names)) + 1 + which.ravel()
    if names:
        names += tuple(f"{names[one - 1] if one > 0 else 'unknown'} ({before + 1})" for before, one in pairs.T.tolist())
    return numbers, names


def distinct_jobs(ids: IntArray, draw: IntArray) -> tuple[IntArray, IntArray]:
    """Return job numbers that differ between draws, and what was added to each, shape ``(jobs,)`` both.

    The last digits are the original number: with up to 28,490 jobs, job 123 of the third draw is 200,123.

    Args:
        ids: original numbers of the drawn jobs, shape ``(jobs,)``.
        draw: number of each draw from 0, shape ``(jobs,)``.

    Raises:
        SpecificationError: the numbers do not fit 64 bits.
    """
    highest, lowest = int(ids.max()), int(ids.min())
    step = 10 ** len(str(max(highest, highest - lowest)))
    if highest + step * int(draw.max()) > LAST_TICK:
        raise SpecificationError(f"resampled: job numbers up to {highest} are too large to tell draws apart; renumber the jobs")
    added = step * draw
    return ids + added, added


def shifted(preceding: IntArray, added: IntArray) -> IntArray:
    """Return the numbers of preceding jobs in the same draw, shape ``(jobs,)``."""
    return np.where(preceding == UNSET, UNSET, preceding + added)


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(require_whole("seed", seed, at_least=0), spawn_key=_PURPOSE))
