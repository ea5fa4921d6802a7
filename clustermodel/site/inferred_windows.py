"""Windows in which nothing starts: at least an hour, although there were enough idle nodes for every job that waited.

No policy that fills the machine leaves such a window, with whatever order.  At its end jobs of several users start at once,
as after a reservation, maintenance or an outage.  Windows at the same hours of several weeks are one that recurs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from clustermodel.arrays import BoolArray
from clustermodel.errors import counted
from clustermodel.site.recorded_schedule import LEAST_WAIT_S, PROMPT_S, RecordedSchedule
from clustermodel.text.formatting import duration
from clustermodel.workload.transforms import moment_of

LEAST_WINDOW_S: Final = 3600
_USERS: Final = 2  # who wait, and whose jobs start at the end
_HOURS: Final = 168  # of a week
_WEEKS: Final = 3  # with a window at the same hours, so that it recurs
_SHARE_OF_WEEKS: Final = 0.1
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Window(NamedTuple):
    """A time in which nothing starts, or the first of those that recur."""

    begin_s: float
    """In the time of the log."""
    end_s: float
    jobs: int
    """That waited at the end, for each of which there were enough idle nodes; of all windows, if it recurs."""
    users: int
    """Whose jobs these are, the most of one window."""
    prompt: int
    """Jobs of them that started within two minutes of the end."""
    weeks: int = 1
    """In which there is such a window at these hours."""
    of_weeks: int = 1
    """Weeks of the log, if it recurs."""
    clock: str = ""
    """Its begin and end, in the time zone of the log if that is known."""

    @property
    def recurs(self) -> bool:
        """Return whether it is one of several at the same hours of a week."""
        return self.weeks > 1

    def as_json(self) -> dict[str, object]:
        """Return the window and its evidence as values for JSON."""
        evidence = {name: getattr(self, name) for name in ("jobs", "users", "prompt", "weeks", "of_weeks")}
        when = {name: getattr(self, name) for name in ("begin_s", "end_s", "recurs", "clock")}
        return {**when, "evidence": evidence}

    def __str__(self) -> str:
        when = f"in {self.weeks:,} of {self.of_weeks:,} weeks, {self.clock}" if self.recurs else self.clock
        jobs = f"{counted(self.jobs, 'job')} of {'up to ' * self.recurs}{counted(self.users, 'user')}"
        times = f"start_s={self.begin_s:.15g},end_s={self.end_s:.15g}" + f",every_s={3600 * _HOURS}" * self.recurs
        return (
            f"nothing starts {when}, though {jobs} wait, each with enough idle nodes; {self.prompt:,} start at the end "
            f"(--reservation all,{times})"
        )


def idle_windows(log: RecordedSchedule, held: BoolArray) -> list[Window]:
    """Return the windows in which nothing starts, those that recur first; ``held`` are jobs that limits hold."""
    single = list(_single(log, held))
    single.sort(key=lambda window: window.begin_s - window.end_s)
    # Where the time of day is unknown, weeks begin with the log.
    began = moment_of(log.header, 0)
    monday = 0 if began is None else -(began.weekday() * 86_400 + began.hour * 3600 + began.minute * 60 + began.second)
    of_weeks = int((log.submit.max() - log.submit.min()) // (_HOURS * 3600)) + 1
    # Which windows cover each hour of the week for at least half of it.
    covering: list[set[Window]] = [set() for _ in range(_HOURS)]
    for window in single:
        first, last = (round((moment - monday) / 3600) for moment in (window.begin_s, window.end_s))
        for hour in range(first, min(last, first + _HOURS)):
            covering[hour % _HOURS].add(window)
    weeks = [len({int((window.end_s - monday) // (_HOURS * 3600)) for window in windows}) for windows in covering]
    often = [number >= max(_WEEKS, _SHARE_OF_WEEKS * of_weeks) for number in weeks]
    recurring = []
    for begin in range(_HOURS):
        if often[begin] and not often[begin - 1]:
            end = next(hour for hour in range(begin + 1, begin + _HOURS + 1) if not often[hour % _HOURS])
            inside = set.union(*(covering[hour % _HOURS] for hour in range(begin, end)))
            single = [window for window in single if window not in inside]
            earliest = min(inside, key=lambda window: window.begin_s)
            number = max(weeks[hour % _HOURS] for hour in range(begin, end))
            jobs, prompt = sum(window.jobs for window in inside), sum(window.prompt for window in inside)
            users = max(window.users for window in inside)
            clock = " to ".join(_hour_of_week(hour, known=began is not None) for hour in (begin, end))
            recurring.append(Window(earliest.begin_s, earliest.end_s, jobs, users, prompt, number, of_weeks, clock))
    return recurring + [window._replace(clock=_moments(window, log.header)) for window in single]


def _single(log: RecordedSchedule, held: BoolArray) -> Iterator[Window]:
    """Yield the windows in order."""
    starts = np.unique(log.start)
    long = np.flatnonzero(np.diff(starts) >= LEAST_WINDOW_S)
    free = np.flatnonzero((log.start - log.submit > LEAST_WAIT_S) & ~held)
    submit, start, nodes, user = log.submit[free], log.start[free], log.nodes[free], log.user[free]
    for begin, end in zip(starts[long].tolist(), starts[long + 1].tolist(), strict=True):
        waiting = np.flatnonzero((submit < end) & (start >= end))
        if len(waiting) < _USERS:
            continue
        # Nodes only become idle, as nothing starts.
        first, last = np.searchsorted(log.times, (begin, end))
        enough = np.flatnonzero(log.idle[first:last] >= nodes[waiting].max())
        _, earliest = np.unique(user[waiting], return_index=True)
        arrivals = np.sort([submit[waiting][user[waiting] == user[waiting][place]].min() for place in earliest])
        if not len(enough) or len(arrivals) < _USERS:
            continue
        since = max(begin, float(log.times[first + enough[0]]), float(arrivals[_USERS - 1]))
        prompt = waiting[(start[waiting] <= end + PROMPT_S) & (submit[waiting] <= end - LEAST_WINDOW_S)]
        if end - since >= LEAST_WINDOW_S and len(np.unique(user[prompt])) >= _USERS:
            yield Window(since, end, len(waiting), len(arrivals), len(prompt))


def _hour_of_week(hour: int, *, known: bool) -> str:
    day, clock = divmod(hour % _HOURS, 24)
    return f"{_DAYS[day] if known else f'day {day + 1}'} {clock}:00"


def _moments(window: Window, header: Mapping[str, str]) -> str:
    """Return when a window was, in words."""
    began = moment_of(header, int(window.begin_s))
    since = f"{window.begin_s:,.0f} s" if began is None else f"{began:%Y-%m-%d %H:%M}"
    return f"for {duration(window.end_s - window.begin_s)} from {since}"
