"""Values of accounting logs: time stamps, durations, amounts of memory, trackable resources (TRES), lists of nodes."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from clustermodel.errors import SpecificationError, quoted
from clustermodel.validation import LONGEST_S

NO_VALUE: Final = frozenset(
    ("", "unknown", "none", "n/a", "na", "invalid", "(null)", "null", "none assigned", "undefined", "-", "?")
)
"""What logs write, in any case, where there is no value."""
_NO_LIMIT: Final = frozenset(("unlimited", "partition_limit", "infinite", "not_set"))

_NO_NUMBER: Final = frozenset(("4294967294", "4294967295", "18446744073709551614", "18446744073709551615"))
"""Slurm's marks for no value and no limit, of 32 and of 64 bits, where an export has them as numbers."""
EARLIEST_S: Final = 86_400
"""Times of the first day of 1970 are a zero in a database, in any time zone: not set."""
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_LATEST_S: Final = 253_402_300_800  # the year 10000
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?|\d{1,12}(\.\d+)?")
_DURATION: Final = re.compile(r"(?:(\d{1,7})-)?(?:(\d{1,10}):)?(\d{1,10})(?::(\d{1,10}))?(\.\d+)?")
_AMOUNT: Final = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([kmgtpe]?)(?:i?b|w)?", re.IGNORECASE)
_KIB: Final = {"k": 1, "m": 2**10, "g": 2**20, "t": 2**30, "p": 2**40, "e": 2**50}
_PER_CPU: Final = 2**31  # the flag of Slurm's MEM_PER_CPU, in megabytes, where an old sacct printed it as part of the number


LONGEST_CHANGE_S: Final = 3600
"""Length of the hour by which clocks are changed."""
_CLOCKS: Final = ("Europe/Paris", "America/New_York", "America/Santiago", "Australia/Sydney", "Pacific/Auckland")


class Clock:
    """Reads time stamps as seconds since 1970 UTC.

    Args:
        zone: name of the time zone of stamps without an offset, as ``Europe/Paris``; by default they are taken as they are
            given, as in UTC.

    Raises:
        SpecificationError: there is no such time zone.
    """

    def __init__(self, zone: str | None = None) -> None:
        self._zone: ZoneInfo | None = None
        if zone is not None:
            try:
                self._zone = ZoneInfo(zone)
            except (KeyError, ValueError, OSError, TypeError):
                raise SpecificationError(
                    f"timezone: {quoted(zone)} is not allowed; it must be the name of a time zone, as Europe/Paris"
                ) from None

    def seconds(self, text: str) -> int | None:
        """Return a time stamp as seconds; ``None`` where the log has none.  A repeated hour is read as its first pass.

        Raises:
            ValueError: ``text`` is not a time stamp.
        """
        text = text.strip()
        if text.lower() in NO_VALUE:
            return None
        try:
            if not _TIMESTAMP.fullmatch(text):
                raise ValueError
            if "-" not in text:
                if float(text) >= _LATEST_S:
                    raise ValueError
                return _set(int(float(text)))
            leap = text[17:19] == "60"  # a leap second is read as the second after 59
            stamp = datetime.fromisoformat(f"{text[:17]}59{text[19:]}" if leap else text)
        except ValueError:
            raise ValueError(f"{quoted(text)} is not a time") from None
        if stamp.tzinfo is None:
            stamp = stamp.replace(tzinfo=self._zone or UTC)
        return _set(int(stamp.timestamp()) + leap)

    def passes(self, text: str) -> tuple[int, int]:
        """Return a time stamp as seconds, -1 where the log has none; and its second pass in an hour that is repeated.

        Raises:
            ValueError: ``text`` is not a time stamp.
        """
        seconds, text = self.seconds(text), text.strip()
        if seconds is None:
            return -1, -1
        if self._zone is None or len(text) < 19 or "-" not in text[:8] or text[19:20] in ("Z", "+", "-"):
            return seconds, seconds
        minute = datetime.fromisoformat(text[:16]).replace(tzinfo=self._zone)
        later = minute.replace(fold=1).timestamp() - minute.timestamp()
        return seconds, seconds + max(0, int(later))

    def changes(self, begin: int, end: int) -> bool:
        """Return whether the clock may have been changed between two times of stamps that have been taken as they are.

        False if the time zone is known.  Where it is not, the clocks of Europe, America and Australia tell.
        """
        if self._zone is not None:
            return False
        first, last = (datetime.fromtimestamp(time, UTC).replace(tzinfo=None) for time in (begin, end))
        return any(zone.utcoffset(first) != zone.utcoffset(last.replace(fold=1)) for zone in map(ZoneInfo, _CLOCKS))

    def hour(self, year: int, month: int, day: int, hour: int) -> int | None:
        """Return the time at which an hour of the day (0 to 23) begins; ``None`` if there is no such hour, or the clock
        changes in it.
        """
        try:
            begin = datetime(year, month, day, hour, tzinfo=self._zone or UTC)
            last = begin.replace(minute=59, second=59)
            times = [stamp.replace(fold=fold).timestamp() for stamp in (begin, last) for fold in (0, 1)]
        except (ValueError, OverflowError):
            return None
        first = int(times[0])
        return first if times == [first, first, first + 3599, first + 3599] else None


def _set(seconds: int) -> int | None:
    """Return a time, ``None`` if it is not set."""
    return seconds if seconds > EARLIEST_S else None


def local_stamp(text: str) -> int:
    """Return ``MM/DD/YYYY HH:MM:SS``, the stamp of a PBS record in the server's time, as seconds from 1970 in that time.

    Raises:
        ValueError: it is not such a stamp.
    """
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    if hour > 23 or minute > 59 or second > 60:
        raise ValueError(f"{quoted(text)} is not a time")
    return _local_day(text[:10]) + 3600 * hour + 60 * minute + second


@lru_cache(maxsize=16_384)
def _local_day(text: str) -> int:
    try:
        return (date(int(text[6:]), int(text[:2]), int(text[3:5])).toordinal() - _EPOCH_DAY) * 86_400
    except ValueError:
        raise ValueError(f"{quoted(text)} is not a time") from None


def checked_run(seconds: int) -> int:
    """Return a run time that is the difference of two time stamps.

    Raises:
        ValueError: it is longer than a job may run.
    """
    if seconds > LONGEST_S:
        raise ValueError(f"from start to end are {seconds} s; a job may run for {LONGEST_S:g} s")
    return seconds


def duration(text: str, plain_unit: int = 1) -> float | None:
    """Return ``D-HH:MM:SS``, ``D-HH:MM``, ``D-HH``, ``D:HH:MM:SS``, ``HH:MM:SS``, ``MM:SS`` or a number as seconds.

    Args:
        text: of the log.
        plain_unit: seconds of a number without colons.

    Returns:
        ``None`` where there is no value or no limit (``UNLIMITED``, ``Partition_Limit``).

    Raises:
        ValueError: ``text`` is not a duration.
    """
    text = text.strip()
    if text in _NO_NUMBER or text.lower() in NO_VALUE or text.lower() in _NO_LIMIT:
        return None
    if text.count(":") == 3 and "-" not in text:  # D:HH:MM:SS of Moab
        text = text.replace(":", "-", 1)
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"{quoted(text)} is not a duration")
    days, first, second, third, fraction = match.groups()
    if days is not None:
        hours, minutes = (first, second) if first is not None else (second, None)
        total = 86_400 * int(days) + 3600 * int(hours) + 60 * int(minutes or 0) + int(third or 0)
    elif first is None:
        total = int(second) * plain_unit
    else:
        total = 60 * int(first) + int(second) if third is None else 3600 * int(first) + 60 * int(second) + int(third)
    if total > LONGEST_S:
        raise ValueError(f"{quoted(text)} is longer than {LONGEST_S:g} s")
    return total + float(fraction or 0)


@lru_cache(maxsize=65_536)
def kib(text: str, plain: str = "m") -> int | None:
    """Return an amount of memory, as ``16G``, ``33600M``, ``62.50G`` or ``1993mb``, in KiB; ``None`` if it is none.

    Args:
        text: of the log.
        plain: unit of a number without one: ``m`` in Slurm, ``b`` (bytes) in PBS.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if not match:
        return None
    amount = float(match[1])
    unit = match[2].lower() or (plain if text.strip()[-1:].isdecimal() else "b")
    value = amount / 1024 if unit == "b" else amount * _KIB[unit]
    return round(value) if value < 2**52 else None


def requested_kib(text: str) -> tuple[int, int, int]:
    """Return Slurm's ReqMem in KiB: of the job (``16G``), of each node (``4Gn``), of each core (``2000Mc``); one is not 0."""
    text = text.strip()
    each = text[-1:]
    amount = kib(text[:-1] if each in ("n", "c") else text) or 0  # 0: all memory of the nodes
    if each == "n" and amount >= _PER_CPU * 1024:
        return 0, 0, amount - _PER_CPU * 1024
    return (0, amount, 0) if each == "n" else (0, 0, amount) if each == "c" else (amount, 0, 0)


class Tres(NamedTuple):
    """What a TRES string grants; 0 where it does not say, memory in KiB."""

    cores: int
    nodes: int
    memory: int
    gpus: int


_NO_TRES: Final = Tres(0, 0, 0, 0)


@lru_cache(maxsize=65_536)
def tres(text: str) -> Tres:
    """Return the resources of ``cpu=4,mem=8G,node=1,billing=4,gres/gpu:a100=2``."""
    if "=" not in text:
        return _NO_TRES
    amounts = dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
    typed = sum(whole(amount) for name, amount in amounts.items() if name.startswith("gres/gpu:"))
    return Tres(
        cores=whole(amounts.get("cpu", "")),
        nodes=whole(amounts.get("node", "")),
        memory=kib(amounts.get("mem", "")) or 0,
        gpus=whole(amounts.get("gres/gpu", "")) or typed,
    )


@lru_cache(maxsize=4096)
def gres_gpus(text: str) -> int:
    """Return the GPUs of ``gpu:2``, ``gpu:a100:2`` or ``gpu:a100:2(S:0-1)``, as ReqGRES and AllocGRES have them."""
    match = re.findall(r"(?:^|,|:|/)gpu(?::[A-Za-z][^:,()]*)?(?:[:=](\d{1,9}))?(?=$|,|\()", text)
    return sum(int(amount or 1) for amount in match)


@lru_cache(maxsize=65_536)
def whole(text: str) -> int:
    """Return a number such as ``4``, ``4K`` or ``1.5K`` (1,024 each) as a whole number; 0 if it is none."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return int(text) if len(text) <= 15 and text not in _NO_NUMBER else 0
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)([KMG]?)", text)
    return round(float(match[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[match[2]]) if match else 0


_MOST_NODES: Final = 100_000
_RANGE: Final = re.compile(r"(\d{1,9})-(\d{1,9})")


def node_names(text: str) -> list[str]:
    """Return the names of Slurm's node list; a list that cannot be read, or is longer than 100,000 names, gives none."""
    names: list[str] = []
    for part in _parts(text):
        expanded = _expanded(part)
        if len(names) + len(expanded) > _MOST_NODES:
            return []
        names += expanded
    return names


def _parts(text: str) -> list[str]:
    """Split a node list at the commas outside brackets."""
    if "[" not in text:
        return [name for name in text.split(",") if name]
    return [part for part in re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text) if part]


def _expanded(part: str) -> list[str]:
    """Return the names of ``rack[1-2]node[01-10,15]``."""
    prefixes = [""]
    for literal, ranges in re.findall(r"([^\[\]]+)|\[([^\]]*)\]", part):
        if literal:
            prefixes = [prefix + literal for prefix in prefixes]
            continue
        numbers = [number for part in ranges.split(",") for number in _numbers(part)]
        if len(prefixes) * len(numbers) > _MOST_NODES:
            return []
        prefixes = [prefix + number for prefix in prefixes for number in numbers]
    return prefixes


def _numbers(text: str) -> list[str]:
    match = _RANGE.fullmatch(text.strip())
    if not match:
        return [text.strip()]
    low, high = int(match[1]), int(match[2])
    if not low <= high <= low + _MOST_NODES:
        return []
    return [str(number).zfill(len(match[1])) for number in range(low, high + 1)]
