"""Answers: what a change of the machine, its rules or its policy does to the mean wait, in a sentence, with how certain it is.

The waits of the same jobs are compared, before and after the change.  A sentence claims no more than its numbers: a difference
is *certain* where its interval excludes 0, and where the log is long enough for the interval to hold.
"""

from dataclasses import dataclass, replace
from math import floor, isnan, log10, nan
from typing import Final

import numpy as np

from clustermodel.arrays import FloatArray
from clustermodel.errors import counted
from clustermodel.measure.statistics import LEVEL, BatchMeans, Interval, batch_means, estimates
from clustermodel.text.formatting import TimeUnit, time_unit
from clustermodel.workload.transforms import FEWEST_BLOCKS

BATCHES: Final = 20  # of the jobs of a log
_WEEK_S: Final = 7 * 86_400


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a change does to the mean wait of the same jobs."""

    question: str
    change: str
    """The change, as a sentence about it begins: ``"With 72 nodes"``."""
    before_s: float
    """Mean wait (:attr:`measure`) without the change, seconds; of resamples, the mean over them."""
    after_s: float
    """The same with the change."""
    difference: Interval
    """After less before, seconds; the half-width is ``nan`` where there are too few values for an interval."""
    jobs: int
    """Jobs that started in both; of the log itself."""
    differing: int
    """Jobs of the log whose waits differ."""
    log_s: float
    """Time from the first to the last submission of the log."""
    blocks: int | None = None
    """Different weeks, users or other blocks that resamples draw from; ``None``: the interval is of batches of the log."""
    block: str = "week"
    """What a block is called."""
    measure: str = "mean wait"
    """What is compared."""

    @property
    def certain(self) -> bool:
        """Whether the sign of the difference is certain, at the level of the interval."""
        long_enough = self.blocks >= FEWEST_BLOCKS if self.blocks is not None else _is_long_enough(self.difference)
        return long_enough and self.difference.excludes(0)

    @property
    def sentence(self) -> str:
        """The answer in words, with the interval, and what would make it certain if it is not."""
        if not self.jobs:
            return f"{self.change} nothing can be said: no job started both with the change and without it."
        if not self.differing and self.blocks is None:
            return f"{self.change} nothing changes for any job of the log: the {self.measure} stays {_amount(self.before_s)}."
        low, high, level = self.difference.low, self.difference.high, f"{100 * self.difference.level:g} %"
        (before, after), unit = _texts(self.before_s, self.after_s)
        verb = "falls" if self.after_s < self.before_s else "rises"
        change = f"{self.change} the {self.measure} {verb} from {before} to {after} {unit.symbol}"
        if before == after:
            change = f"{self.change} the {self.measure} stays about {after} {unit.symbol}"
        if self.certain:
            ends = sorted((abs(low), abs(high)))
            (small, large), unit = _texts(*ends, given=unit if ends[1] >= unit.seconds else None)
            return f"{change} ({level}: by {small} to {large} {unit.symbol})."
        if isnan(low):
            return f"{change} on this log; {counted(self.jobs, 'job')} are too few to say how certain that is."
        return f"{change} on this log ({level}: {_signed(low)} to {_signed(high)}), which is not certain. {self._remedy()}"

    def _remedy(self) -> str:
        """Return what would make the difference certain."""
        length = _amount(self.log_s)
        if self.blocks is not None and self.blocks < FEWEST_BLOCKS:
            drawn = counted(self.blocks, self.block)
            return f"The log has {drawn}: others could be unlike {'it' if self.blocks == 1 else 'them'}."
        if self.blocks is not None:
            return f"A log like this one ({length}) can have the reverse; a longer log tells more."
        if not _is_long_enough(self.difference):
            also = " or resampled weeks (--resample weeks)" if self.log_s >= FEWEST_BLOCKS * _WEEK_S else ""
            return f"A log of {length} is too short for its interval to hold: a longer one{also} tells more."
        return "The difference is small beside how much waits vary; a longer log tells more."

    def as_json(self) -> dict[str, object]:
        """Return the answer for JSON, in seconds; an end that is not known is ``None``."""
        difference = self.difference
        numbers = {"from": self.before_s, "to": self.after_s, "estimate": difference.mean}
        numbers |= {"low": difference.low, "high": difference.high}
        return {
            "question": self.question, "sentence": self.sentence, **{name: _or_none(of) for name, of in numbers.items()},
            "certain": self.certain, "measure": f"{self.measure.replace(' ', '_')}_s",
        }  # fmt: skip


def answer_of_log(
    question: str, change: str, before: FloatArray, after: FloatArray, log_s: float, *, measure: str = "mean wait"
) -> Answer:
    """Return the answer of one log, from the waits of its jobs, seconds, in order of submission; ``nan``: it did not start.

    The interval is one of batch means, certain only if the log is long beside the time for which waits stay alike.
    """
    both = ~(np.isnan(before) | np.isnan(after))
    before, after = before[both], after[both]
    differences = after - before
    mean = float(differences.mean()) if len(differences) else nan
    interval: Interval = Interval(mean, nan, LEVEL, len(differences))
    if len(differences) >= 2 * BATCHES:
        interval = replace(batch_means(differences, BATCHES), mean=mean)  # of all jobs, an incomplete batch included
    means = (float(before.mean()), float(after.mean())) if len(before) else (nan, nan)
    return Answer(
        question=question, change=change, before_s=means[0], after_s=means[1], difference=interval, jobs=len(before),
        differing=int(np.count_nonzero(differences)), log_s=log_s, measure=measure,
    )  # fmt: skip


def answer_of_resamples(log: Answer, before: FloatArray, after: FloatArray, blocks: int, block: str = "week") -> Answer:
    """Return the answer of resamples of a log, from the mean wait of each, seconds, shape ``(resamples,)``.

    ``log`` is the answer of the log itself.  The interval is one for another log like it: more resamples do not narrow it to 0.
    """
    interval = estimates((after - before)[np.newaxis], of_one_log=True).interval(0, log.difference.level)
    before_s, after_s = float(before.mean()), float(after.mean())
    return replace(log, difference=interval, before_s=before_s, after_s=after_s, blocks=blocks, block=block)


def _is_long_enough(interval: Interval) -> bool:
    return isinstance(interval, BatchMeans) and interval.long_enough


def _texts(*seconds: float, given: TimeUnit | None = None) -> tuple[list[str], TimeUnit]:
    """Return times as numbers that differ as they do, and their unit: that of the longest, if none is given."""
    unit = given or time_unit(max(map(abs, seconds)))
    for digits in (2, 3, 4):
        texts = [_number(abs(each) / unit.seconds, digits) for each in seconds]
        if len({*texts}) == len({*map(abs, seconds)}):
            break
    return texts, unit


def _number(value: float, digits: int) -> str:
    """Return a number with so many significant digits, but no fewer than it has before the point."""
    return f"{value:,.{max(0, digits - 1 - floor(log10(value)))}f}" if value else "0"


def _amount(seconds: float) -> str:
    [text], unit = _texts(seconds)
    return f"{text} {unit.symbol}"


def _signed(seconds: float) -> str:
    return f"{_amount(seconds)} {'more' if seconds > 0 else 'less'}" if seconds else "no less"


def _or_none(value: float) -> float | None:
    return None if isnan(value) else value
