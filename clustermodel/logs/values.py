"""Values of accounting logs: time stamps, durations, amounts of memory, trackable resources (TRES), lists of nodes."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from itertools import product
from math import prod
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from clustermodel.errors import did_you_mean, quoted, refused
from clustermodel.validation import LONGEST_S
from clustermodel.workload.job import UNSET

NO_VALUE: Final = frozenset(
    ("", "unknown", "none", "n/a", "na", "invalid", "(null)", "null", "none assigned", "undefined", "-", "?")
)
"""What logs write, in any case, where there is no value."""
_NO_NUMBER: Final = frozenset(("4294967294", "4294967295", "18446744073709551614", "18446744073709551615"))
"""Slurm's marks for no value and no limit, of 32 and of 64 bits, where an export has them as numbers."""
_NO_DURATION: Final = NO_VALUE | _NO_NUMBER | {"unlimited", "partition_limit", "infinite", "not_set"}
EARLIEST_S: Final = 86_400  # times of the first day of 1970 are a zero in a database, in any time zone: not set
_LATEST_S: Final = 253_402_300_800  # the year 10000
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?|\d{1,12}(\.\d+)?")
_DURATION: Final = re.compile(r"(?:(\d{1,7})-)?(?:(\d{1,10}):)?(\d{1,10})(?::(\d{1,10}))?(\.\d+)?")
_AMOUNT: Final = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([kmgtpe]?)(?:i?b|w)?", re.IGNORECASE)
_KIB: Final = {"b": 2**-10, "k": 1, "m": 2**10, "g": 2**20, "t": 2**30, "p": 2**40, "e": 2**50}
_PER_CPU: Final = 2**31  # the flag of Slurm's MEM_PER_CPU, in megabytes, where an old sacct printed it as part of the number
_CLOCKS: Final = ("Europe/Paris", "America/New_York", "America/Santiago", "Australia/Sydney", "Pacific/Auckland")
_MOST_NODES: Final = 100_000


class Clock:
    """Reads time stamps as seconds since 1970 UTC; those without an offset are in ``zone`` or, by default, in UTC."""

    def __init__(self, zone: str | None = None) -> None:
        self._zone: ZoneInfo | None = None
        if zone is not None:
            try:
                self._zone = ZoneInfo(zone)
            except (KeyError, ValueError, OSError, TypeError):
                must = "it must be the name of a time zone, as Europe/Paris"
                raise refused("timezone", zone, must, did_you_mean(zone, available_timezones())) from None
        self.has_zone = zone is not None
        self._hours: dict[str, int] = {}  # when those begin in which no clock changes
        self._others: set[str] = set()
        self._in_hour = {f"{second // 60:02d}:{second % 60:02d}": second for second in range(3600)}

    def seconds(self, text: str) -> int | None:
        """Return a time stamp as seconds; ``None`` where the log has none.  A repeated hour is read as its first pass."""
        text = text.strip()
        if text.lower() in NO_VALUE:
            return None
        try:
            if not _TIMESTAMP.fullmatch(text):
                raise ValueError
            if "-" in text:
                leap = text[17:19] == "60"  # a leap second is read as the second after 59
                stamp = datetime.fromisoformat(f"{text[:17]}59{text[19:]}" if leap else text)
                seconds = int((stamp if stamp.tzinfo else stamp.replace(tzinfo=self._zone or UTC)).timestamp()) + leap
            elif float(text) < _LATEST_S:
                seconds = int(float(text))
            else:
                raise ValueError
        except ValueError:
            raise ValueError(f"{quoted(text)} is not a time") from None
        return seconds if seconds > EARLIEST_S else None

    def on_wall(self, seconds: int) -> int:
        """Return what clocks on the wall show at a time, as the time at which they show it in UTC."""
        return int(datetime.fromtimestamp(seconds, self._zone or UTC).replace(tzinfo=UTC).timestamp())

    def time(self, field: str, text: str) -> int:
        """Return the time stamp of a field as seconds, -1 where the log has none; of a repeated hour, the first pass."""
        hour = text[:14]
        try:
            return self._hours[hour] + self._in_hour[text[14:]]  # nearly always
        except KeyError:
            if hour not in self._hours and hour not in self._others:
                if (begin := self._begin_of_hour(hour)) is None:
                    self._others.add(hour)
                else:
                    self._hours[hour] = begin
                return self.time(field, text)
        try:
            seconds = self.seconds(text)
        except ValueError as problem:
            raise ValueError(f"field {field}: {problem}") from None
        return UNSET if seconds is None else seconds

    def second_pass(self, text: str, first: int) -> int:
        """Return a time stamp that has been read in its second pass, if its hour is repeated, else as it was read."""
        text = text.strip()
        is_local = len(text) >= 19 and "-" in text[:8] and text[19:20] not in ("Z", "+", "-")
        if not is_local or first == UNSET or text[:14] in self._hours:
            return first
        minute = datetime.fromisoformat(text[:16]).replace(tzinfo=self._zone)
        return first + max(0, int(minute.replace(fold=1).timestamp() - minute.timestamp()))

    def _begin_of_hour(self, text: str) -> int | None:
        """Return when the hour of ``2025-03-03T08:`` begins; ``None`` if it is none, too early, or the clock changes in it."""
        try:
            begin = datetime.fromisoformat(f"{text}00").replace(tzinfo=self._zone or UTC)
        except ValueError:
            return None
        first = int(begin.timestamp())
        if first <= EARLIEST_S or not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:", text, re.ASCII):
            return None
        last = begin.replace(minute=59, second=59)
        others = [begin.replace(fold=1), last, last.replace(fold=1)] if self.has_zone else []
        return first if all(stamp.timestamp() - first in (0, 3599) for stamp in others) else None

    def changes(self, begin: int, end: int) -> bool:
        """Return whether a clock may have been changed between two times that have been read without a time zone."""
        if self._zone is not None:
            return False
        first, last = (datetime.fromtimestamp(time, UTC).replace(tzinfo=None) for time in (begin, end))
        return any(zone.utcoffset(first) != zone.utcoffset(last.replace(fold=1)) for zone in map(ZoneInfo, _CLOCKS))


def checked_run(seconds: int) -> int:
    """Return a run time that is the difference of two time stamps, if a job may run for so long."""
    if seconds > LONGEST_S:
        raise ValueError(f"from start to end are {seconds} s; a job may run for {LONGEST_S:g} s")
    return seconds


@lru_cache(maxsize=16_384)
def duration(text: str, plain_unit: int = 1) -> float | None:
    """Return ``D-HH:MM:SS``, ``D-HH:MM``, ``D-HH``, ``D:HH:MM:SS``, ``HH:MM:SS``, ``MM:SS`` or a number as seconds.

    A number counts ``plain_unit`` seconds.  ``None`` where there is no value or no limit (``UNLIMITED``, ``Partition_Limit``).
    """
    text = text.strip()
    if text.lower() in _NO_DURATION:
        return None
    if text.count(":") == 3 and "-" not in text:  # D:HH:MM:SS of Moab
        text = text.replace(":", "-", 1)
    match = _DURATION.fullmatch(text)
    if not match:
        raise ValueError(f"{quoted(text)} is not a duration")
    days, *parts, fraction = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    units = (3600, 60, 1) if days is not None or len(numbers) == 3 else (60, 1) if len(numbers) == 2 else (plain_unit,)
    total = 86_400 * int(days or 0) + sum(number * unit for number, unit in zip(numbers, units, strict=False))
    if total > LONGEST_S:
        raise ValueError(f"{quoted(text)} is longer than {LONGEST_S:g} s")
    return total + float(fraction or 0)


@lru_cache(maxsize=65_536)
def kib(text: str, plain: str = "m") -> int:
    """Return ``16G`` or ``1993mb`` in KiB, 0 if it is none; a number without a unit is in ``plain``: m in Slurm, b in PBS."""
    match = _AMOUNT.fullmatch(text.strip())
    if not match:
        return 0
    unit = match[2].lower() or (plain if text.strip()[-1:].isdecimal() else "b")
    value = float(match[1]) * _KIB[unit]
    return round(value) if value < 2**52 else 0


@lru_cache(maxsize=65_536)
def requested_kib(text: str) -> tuple[int, int, int]:
    """Return Slurm's ReqMem in KiB: of the job (``16G``), of each node (``4Gn``), of each core (``2000Mc``); one is not 0."""
    text = text.strip()
    each = text[-1:]
    amount = kib(text[:-1] if each in ("n", "c") else text)  # 0: all memory of the nodes
    if each == "n" and amount >= _PER_CPU * 1024:
        return 0, 0, amount - _PER_CPU * 1024
    return (0, amount, 0) if each == "n" else (0, 0, amount) if each == "c" else (amount, 0, 0)


@lru_cache(maxsize=65_536)
def tres(text: str) -> tuple[int, int, int, int]:
    """Return cores, nodes, KiB and GPUs of ``cpu=4,mem=8G,node=1,billing=4,gres/gpu:a100=2``; 0 where it does not say."""
    amounts = dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair)
    typed = sum(whole(amount) for name, amount in amounts.items() if name.startswith("gres/gpu:"))
    cores, nodes, gpus = (whole(amounts.get(name, "")) for name in ("cpu", "node", "gres/gpu"))
    return cores, nodes, kib(amounts.get("mem", "")), gpus or typed


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


_PARTS: Final = re.compile(r"(?:[^,\[\]]|\[[^\]]*\])+").findall
_PIECES: Final = re.compile(r"([^\[\]]+)|\[([^\]]*)\]").findall
_ONE_RANGE: Final = re.compile(r"([^,\[\]]*)\[(\d{1,9}-\d{1,9})\]").fullmatch


def node_names(text: str) -> list[str]:
    """Return the names of Slurm's node list; a list that cannot be read, or is longer than 100,000 names, gives none."""
    if match := _ONE_RANGE(text):  # as most lists have
        prefix, numbers = match.groups()
        return [prefix + number for number in _numbers(numbers)]
    names: list[str] = []
    for part in _PARTS(text) if "[" in text else filter(None, text.split(",")):
        # rack[1-2]node[01-10,15]: rack, 1 and 2, node, 01 to 10 and 15
        pieces = [
            [literal] if literal else [number for each in ranges.split(",") for number in _numbers(each.strip())]
            for literal, ranges in _PIECES(part)
        ]
        if prod(map(len, pieces)) <= _MOST_NODES:
            names += map("".join, product(*pieces))
        if len(names) > _MOST_NODES:
            return []
    return names


def _numbers(text: str) -> list[str]:
    begin, _, end = text.partition("-")
    if not (_is_number(begin) and _is_number(end)):
        return [text]
    low, high, digits = int(begin), int(end), len(begin)
    return [str(number).zfill(digits) for number in range(low, high + 1)] if high < low + _MOST_NODES else []


def _is_number(text: str) -> bool:
    return len(text) < 10 and text.isdecimal()
