"""The order of a site: it keeps the queue sorted by usage, age, size and names before any policy looks at it."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from math import exp, expm1, log, prod
from operator import attrgetter

from clustermodel.policies.view import QueuedJob, RunningJob
from clustermodel.sim.events import Clock
from clustermodel.sim.job_process import JobInSystem
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.rules import Rule
from clustermodel.site.concerns import Facts
from clustermodel.site.order import PARENT, FairShare, Multifactor, account_paths
from clustermodel.ticks import to_ticks

Leaf = tuple[str, str]  # an account and a user in it
Place = tuple[str, ...]  # in the tree: accounts from the top; of a user, an empty name and the user's after them
Key = Callable[[QueuedJob, int], int]  # of a job that joined the queue at a time


class Usage:
    """Node time at places of the tree, of which half is forgotten in each half-life, in proportion to each other."""

    # What was used is not halved, but what is used later counts more: numbers change only where jobs run.

    def __init__(self, half_life: int) -> None:
        self._decay, self._longest = log(2) / half_life, 256 * half_life
        self._reference = 0  # when node time counts as it is
        self._used: dict[Place, float] = {}  # without what the nodes in use have been used since they came into use
        self.nodes: dict[Place, tuple[int, int]] = {}  # in use, and since when

    def at(self, place: Place, now: int) -> float:
        """Return the use of a place; places compare by it at any one time, and as long as no nodes are in use there."""
        used = self._used.get(place, 0.0)
        if place in self.nodes:
            nodes, since = self.nodes[place]
            used -= nodes * exp(self._decay * (now - self._reference)) * expm1(self._decay * (since - now))
        return used

    def change(self, place: Place, nodes: int, now: int) -> None:
        """Note that so many nodes more are in use at a place."""
        self._used[place] = self.at(place, now)
        nodes += self.nodes.pop(place, (0, 0))[0]
        if nodes:
            self.nodes[place] = nodes, now

    def count_anew(self, now: int) -> bool:
        """Let node time count as it is now, if numbers could become too large; return whether they have changed."""
        if now - self._reference <= self._longest:
            return False
        kept = exp(self._decay * (self._reference - now))
        used = {place: ticks * kept for place, ticks in self._used.items()}
        for place, (nodes, since) in self.nodes.items():
            used[place] = used.get(place, 0.0) - nodes * expm1(self._decay * (since - now))
            self.nodes[place] = nodes, now
        self._used, self._reference = used, now
        return True


class SiteOrder(Rule):
    """The order of the queue in one run."""

    def __init__(self, order: FairShare | Multifactor, facts: Facts, nodes: int) -> None:
        self._order, self._facts, self._nodes = order, facts, nodes
        self._usage = Usage(to_ticks(order.half_life_s))
        self._joined: dict[int, int] = {}  # job id -> when it joined the queue
        self._now = 0
        self._running: Iterable[RunningJob] = ()
        self._in_use: dict[Leaf, int] = {}  # nodes of running jobs
        self._waiting: dict[Leaf, dict[int, QueuedJob]] = {}  # by id, perhaps with jobs that do not wait any more
        self._levels: dict[Place, int] = {}  # the part of the keys of fair shares that a place is, where no nodes are in use
        accounts, users, shares = facts["account"], facts["user"], order.account_shares
        leaves = {(accounts.get(job, ""), users.get(job, "")) for job in accounts.keys() | users.keys()} | {("", "")}
        # The places of each leaf and of the accounts above it in the tree, from the top, and the shares of these places.
        paths = account_paths(order.account_shares)
        self._places: dict[Leaf, list[Place]] = {}
        self._share: dict[Place, float] = {}
        for account, user in leaves:
            names = paths.get(account, (account,))
            # An account whose share is its parent's is no level of its own: what is below stands beside it.
            depths = [d for d in range(1, len(names) + 1) if shares.get("/".join(names[:d])) != PARENT]
            path = tuple([names[depth - 1] for depth in depths])
            places = [path[:depth] for depth in range(1, len(path) + 1)]
            self._share |= {path[:k]: float(shares.get("/".join(names[:d]), 1.0)) for k, d in enumerate(depths, 1)}
            share = order.user_shares.get(f"{account}/{user}", order.user_shares.get(user, 1.0))
            if share != PARENT:
                places.append((*path, "", user if path == names else f"{account}/{user}"))
                self._share[places[-1]] = float(share)
            elif places:  # among the users of its account, the user has what all of that has
                places.append(places[-1])
            self._places[account, user] = places
        self._depth = max(map(len, self._places.values()))
        # The part of each leaf in all shares: at each level what is its own of those beside it.
        beside: defaultdict[Place, float] = defaultdict(float)
        for place, share in self._share.items():
            beside[_above(place)] += share
        self._parts = {
            leaf: prod(self._share[place] / beside[_above(place)] for place in dict.fromkeys(places))
            for leaf, places in self._places.items()
        }

    def begin(self, env: Clock, pool: NodePool, running: Mapping[int, RunningJob]) -> None:
        """Be told of the clock and the queue of the run, and of what runs."""
        self._env, self._pool, self._gangs = env, pool, running

    def before_cycle(self, submitted: list[QueuedJob], requeued: list[QueuedJob]) -> list[JobInSystem]:
        """Put the queue in the order of the site, and what has joined it."""
        pool = self._pool
        in_order = self.arrange(pool.waiting, [*submitted, *requeued], self._env.now)
        if in_order != list(pool.waiting.values()):
            pool.queue.arrange(in_order)
        submitted.sort(key=lambda job: job.queue_order)
        requeued.sort(key=lambda job: job.queue_order)
        return []

    def after_instant(self, *, cycled: bool) -> None:
        if cycled:
            self.note(self._gangs.values())

    def note(self, running: Iterable[RunningJob]) -> None:
        """Note who uses how many nodes from now on."""
        before, after, self._running = self._in_use, defaultdict[Leaf, int](int), running
        for gang in running:
            after[self._leaf(gang.job)] += gang.nodes
        self._in_use = after
        for leaf in before.keys() | after.keys():
            if more := after.get(leaf, 0) - before.get(leaf, 0):
                for place in dict.fromkeys([(), *self._places[leaf]]):
                    self._usage.change(place, more, self._now)
                    self._levels.pop(place, None)

    def arrange(self, waiting: Mapping[int, QueuedJob], joined: Iterable[QueuedJob], now: int) -> list[QueuedJob]:
        """Return the waiting jobs, of which some have ``joined`` the queue now, in the order of the site."""
        self._now = now
        if isinstance(self._order, FairShare):
            if self._usage.count_anew(now):
                self._levels.clear()
                for gang in self._running:  # policies compare them with waiting jobs
                    self._give(gang.job, self._share_key(self._leaf(gang.job), now))
            self._give_shares(waiting, joined, now)
        else:
            self._usage.count_anew(now)
            key = self._by_factors(self._order, now)
            for job in waiting.values():
                self._give(job, key(job, self._joined.setdefault(job.id, now)))
        return sorted(waiting.values(), key=attrgetter("queue_order"))

    def _give(self, job: QueuedJob, key: int) -> None:
        joined = self._joined[job.id]
        job.queue_order = (-job.priority, key << 64 | joined, job.id - (joined - job.submit << 64))

    def _give_shares(self, waiting: Mapping[int, QueuedJob], joined: Iterable[QueuedJob], now: int) -> None:
        """Give the jobs their keys that have joined the queue, and those of users or accounts whose usage has changed."""
        levels = self._levels
        stale = [leaf for leaf in self._waiting if not all(place in levels for place in self._places[leaf])]
        for job in joined:
            if job.id in waiting:
                self._joined.setdefault(job.id, now)
                self._waiting.setdefault(self._leaf(job), {})[job.id] = job
                self._give(job, self._share_key(self._leaf(job), now))
        for leaf in stale:
            key, jobs = self._share_key(leaf, now), self._waiting[leaf]
            for number, job in list(jobs.items()):
                if waiting.get(number) is job:
                    self._give(job, key)
                else:
                    del jobs[number]
            if not jobs:
                del self._waiting[leaf]

    def _leaf(self, job: QueuedJob) -> Leaf:
        return self._facts["account"].get(job.id, ""), self._facts["user"].get(job.id, "")

    def _share_key(self, leaf: Leaf, now: int) -> int:
        """Return the key of a fair-share order: usage over shares of its accounts from the top, then of its user."""
        places, value = self._places[leaf], 0
        for place in places:
            if (level := self._levels.get(place)) is None:
                level = _rising(self._usage.at(place, now) / self._share[place])
                if place not in self._usage.nodes:
                    self._levels[place] = level
            value = value << 64 | level
        return value << 64 * (self._depth - len(places))

    def _by_factors(self, order: Multifactor, now: int) -> Key:
        usage, facts, most_age = self._usage, self._facts, to_ticks(order.max_age_s)
        whole, factors = usage.at((), now), dict[Leaf, float]()
        most = order.age + order.fair_share + order.size + order.partition + order.qos + order.queue
        named = (
            (order.partition, "partition", order.partitions),
            (order.qos, "qos", order.qos_values),
            (order.queue, "queue", order.queues),
        )

        def key(job: QueuedJob, joined: int) -> int:
            value = order.age * min((now - joined) / most_age, 1.0) + order.size * min(job.nodes / self._nodes, 1.0)
            if order.fair_share:
                leaf = self._leaf(job)
                if leaf not in factors:
                    part = usage.at((self._places[leaf] or [()])[-1], now) / whole if whole else 0.0
                    factors[leaf] = order.fair_share * 2 ** (-part / self._parts[leaf])
                value += factors[leaf]
            for weight, field, values in named:
                if weight:
                    value += weight * values.get(facts[field].get(job.id, ""), 0.0)
            return _rising(max(most - value, 0.0))

        return key


def _above(place: Place) -> Place:
    """Return the account of a place, whose users stand beside the accounts below it."""
    return place[:-2] if len(place) > 1 and not place[-2] else place[:-1]


def _rising(value: float) -> int:
    """Return a whole number of 64 bits that rises with a value, which is not negative."""
    (bits,) = struct.unpack(">q", struct.pack(">d", value))
    return int(bits)
