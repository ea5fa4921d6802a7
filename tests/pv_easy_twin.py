"""A slow, obvious twin of PV-EASY (Yuan et al. 2010, section 4): lists of gangs, searched at every instant; no package code.

At every instant at which a job ends, is submitted, or nodes of a preempted gang come free, the ends are handled first, then
the submissions, then a scheduling pass; when the pass preempts gangs whose nodes are free at once, another pass follows.  A
prediction that expires is no event.  Times are integers, ticks of a millionth of a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.twins import TwinJob

SECOND = 1_000_000


class PreemptedRun(NamedTuple):
    job: int
    start: int
    end: int
    """When the nodes came free."""
    lost: int
    """Node-ticks of work that have to be done again."""


class Overhead(NamedTuple):
    """A time for which a gang held nodes without working."""

    what: str
    start: int
    end: int
    nodes: int


@dataclass(eq=False)
class Gang:
    """A job on its nodes."""

    job: TwinJob
    start: int
    works_from: int
    """Later than ``start`` if it has to be restarted from a checkpoint first."""
    end: int
    """When it has done all of its work, unless it is preempted."""
    predicted_end: int
    corrected_end: int
    """By the user's estimate: what is expected once the prediction has expired."""
    saved: int
    """Work of earlier runs."""
    leaves: int | None = None
    """When the nodes of a preempted gang come free."""


@dataclass
class PvEasyTwin:
    """One run; :meth:`run` fills what is listed last."""

    nodes: int
    slp: bool = True
    vb: bool = True
    predictor: str = "last"
    mode: str = "kill"
    checkpoint: int = 0
    restart: int = 0
    kill_at_estimate: bool = True

    runs: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Job -> start and end of its last run."""
    preempted: list[PreemptedRun] = field(default_factory=list)
    promises: dict[int, int] = field(default_factory=dict)
    """Job -> the start that it was told when it was first left blocked."""
    starts: list[tuple[int, int]] = field(default_factory=list)
    """Instant and job of every start, in order."""
    overheads: list[Overhead] = field(default_factory=list)

    def run(self, jobs: Iterable[TwinJob]) -> PvEasyTwin:
        self.now = -1
        self.waiting: list[TwinJob] = []
        self.gangs: list[Gang] = []
        self.saved: dict[int, int] = {}
        self.finished: list[TwinJob] = []
        self.of_last_two: dict[int, int] = {}
        to_come = sorted(job for job in jobs if 0 < job.nodes <= self.nodes)
        while to_come or self.waiting or self.gangs:
            instants = [job.submit for job in to_come]
            instants += [gang.end if gang.leaves is None else gang.leaves for gang in self.gangs]
            self.now = min(instants)
            self.let_go()
            submitted = [job for job in to_come if job.submit == self.now]
            self.of_last_two.update({job.id: self.last_two(job) for job in submitted})
            self.waiting += submitted
            to_come = [job for job in to_come if job.submit != self.now]
            while self.schedule():
                self.let_go()
            assert self.idle() >= 0
        return self

    def let_go(self) -> None:
        """Handle everything that ends now: jobs that have done their work, and the nodes of preempted gangs."""
        done = []
        ended = [gang for gang in self.gangs if self.now == (gang.end if gang.leaves is None else gang.leaves)]
        for gang in ended:
            self.gangs.remove(gang)
            self.spend("restart", gang.start, min(gang.works_from, self.now), gang.job.nodes)
            if gang.leaves is not None:
                lost = gang.job.nodes * (self.now - gang.start) if self.mode == "kill" else 0
                self.preempted.append(PreemptedRun(gang.job.id, gang.start, self.now, lost))
                self.waiting.append(gang.job)
            else:
                self.runs[gang.job.id] = gang.start, gang.end
                done.append(gang.job)
        self.finished += sorted(done, key=lambda job: job.order)

    def spend(self, what: str, start: int, end: int, nodes: int) -> None:
        if end > start:
            self.overheads.append(Overhead(what, start, end, nodes))

    # What is known of a job.

    def work(self, job: TwinJob) -> int:
        return min(job.run, job.estimate) if self.kill_at_estimate else job.run

    def prediction(self, job: TwinJob) -> int:
        """Predict how long the job works in all."""
        before = [one for one in self.finished if one.user == job.user]
        if self.predictor == "perfect":
            return self.work(job)
        if self.predictor == "last" and before:
            last = before[-1]
            return max(min(job.estimate * self.work(last) // last.estimate, job.estimate), 1)
        if self.predictor == "last-two":
            return self.of_last_two[job.id]
        return job.estimate

    def last_two(self, job: TwinJob) -> int:
        """Predict once, at the submission, in whole seconds."""
        before = [one for one in self.finished if one.user == job.user]
        if len(before) < 2:
            return job.estimate
        mean = (self.work(before[-1]) + self.work(before[-2])) // 2
        return max(min(mean // SECOND * SECOND or mean, job.estimate), 1)

    def length(self, job: TwinJob) -> int:
        """Predict how long the job would hold nodes if it started now."""
        saved = self.saved.get(job.id, 0)
        return self.restart + max(self.prediction(job) - saved, SECOND) if saved else self.prediction(job)

    def idle(self) -> int:
        return self.nodes - sum(gang.job.nodes for gang in self.gangs)

    def coming(self, head: TwinJob) -> int:
        """Nodes of gangs that are being saved; one that is ahead of ``head`` takes its nodes back at once."""
        return sum(gang.job.nodes for gang in self.gangs if gang.leaves is not None and gang.job.order > head.order)

    # The pass.

    def schedule(self) -> bool:
        """Run one pass and return whether it made nodes free, so that another one follows."""
        self.waiting.sort(key=lambda job: job.order)
        while self.waiting and self.waiting[0].nodes <= self.idle():
            self.start(self.waiting[0])
        if not self.waiting:
            return False
        head = self.waiting[0]
        usable = self.idle()
        if self.slp:
            if self.preempt_for(head):
                return True
            if self.idle() + self.coming(head) >= head.nodes:
                usable = min(self.idle(), self.idle() + self.coming(head) - head.nodes)
        if self.vb:
            self.venture(head, usable)
        else:
            self.easy(head, usable)
        return False

    def preempt_for(self, head: TwinJob) -> bool:
        """Section 4.2; return whether nodes come free at once."""
        missing = head.nodes - self.idle() - self.coming(head)
        shadow = [gang for gang in self.gangs if gang.leaves is None and gang.job.order > head.order]
        shadow.sort(key=lambda gang: gang.job.order)
        if missing <= 0 or sum(gang.job.nodes for gang in shadow) < missing:
            return False
        chosen = []
        while missing > 0:
            chosen.append(shadow.pop())
            missing -= chosen[-1].job.nodes
        for gang in chosen:
            if self.mode == "kill" or self.now < gang.works_from:
                gang.leaves = self.now
            else:
                gang.leaves = self.now + self.checkpoint
            self.spend("checkpoint", self.now, gang.leaves, gang.job.nodes)
            if self.mode != "kill":
                self.saved[gang.job.id] = gang.saved + max(self.now - gang.works_from, 0)
        return any(gang.leaves == self.now for gang in chosen)

    def venture(self, head: TwinJob, usable: int) -> None:
        """Section 4.3."""
        sunny = [gang for gang in self.gangs if gang.job.order < head.order]
        reservation = self.first_time(head, sunny)
        self.promises.setdefault(head.id, reservation)
        for job in sorted(self.waiting[1:], key=lambda job: (self.length(job), job.order)):
            if job.nodes <= usable and self.now + self.length(job) <= reservation:
                usable -= job.nodes
                self.start(job)
        for job in self.waiting[1:]:
            if job.nodes <= usable:
                usable -= job.nodes
                self.start(job)

    def easy(self, head: TwinJob, usable: int) -> None:
        """Talby & Feitelson 1999 (long), section 3.1, with predictions for estimates."""
        shadow = self.first_time(head, self.gangs)
        self.promises.setdefault(head.id, shadow)
        extra = self.free(shadow, self.gangs) - head.nodes
        for job in self.waiting[1:]:
            in_time = self.now + self.length(job) <= shadow
            if job.nodes <= usable and (in_time or job.nodes <= extra):
                usable -= job.nodes
                extra -= 0 if in_time else job.nodes
                self.start(job)

    def expected_end(self, gang: Gang) -> int:
        if gang.leaves is not None:
            return gang.leaves
        expected = gang.predicted_end if gang.predicted_end > self.now else gang.corrected_end
        return expected if expected > self.now else self.now + SECOND

    def free(self, time: int, load: list[Gang]) -> int:
        """Count the nodes that are free at a time if there is only this load."""
        return self.nodes - sum(gang.job.nodes for gang in load if self.expected_end(gang) > time)

    def first_time(self, head: TwinJob, load: list[Gang]) -> int:
        times = sorted([self.now] + [self.expected_end(gang) for gang in load])
        return next(time for time in times if self.free(time, load) >= head.nodes)

    def start(self, job: TwinJob) -> None:
        saved = self.saved.get(job.id, 0)
        works_from = self.now + (self.restart if saved else 0)
        end = works_from + self.work(job) - saved
        predicted = self.now + self.length(job)
        self.gangs.append(
            Gang(job, self.now, works_from, end, predicted, predicted + job.estimate - self.prediction(job), saved)
        )
        self.waiting.remove(job)
        self.starts.append((self.now, job.id))
