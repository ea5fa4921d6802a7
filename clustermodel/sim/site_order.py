"""The order of a site: it keeps the queue sorted by usage, age, size and names before any policy looks at it."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import log, prod

from clustermodel.policies.view import QueuedJob, RunningJob
from clustermodel.site import PARENT, Facts, FairShare, Multifactor, account_paths
from clustermodel.ticks import to_ticks

Leaf = tuple[str, str]  # an account and a user in it
Place = tuple[str, ...]  # in the tree: accounts from the top; of a user, an empty name and the user's after them
Key = Callable[[QueuedJob, int], int]  # of a job that joined the queue at a time


class Usage:
    """Node time by account and user, of which half is forgotten in each half-life."""

    def __init__(self, half_life: int) -> None:
        self._half_life, self._until = half_life, 0
        self.used: defaultdict[Leaf, float] = defaultdict(float)  # node-ticks
        self.nodes: dict[Leaf, int] = {}  # in use since then

    def settle(self, now: int) -> None:
        """Charge the nodes in use until ``now``; what was used at each moment is halved from that moment on."""
        if (elapsed := now - self._until) <= 0:
            return
        self._until = now
        kept = 0.5 ** (elapsed / self._half_life)
        for leaf in self.used:
            self.used[leaf] *= kept
        for leaf, nodes in self.nodes.items():
            self.used[leaf] += nodes * (1 - kept) * self._half_life / log(2)


class SiteOrder:
    """The order of the queue in one run."""

    def __init__(self, order: FairShare | Multifactor, facts: Facts, nodes: int) -> None:
        self._order, self._facts, self._nodes = order, facts, nodes
        self._usage = Usage(to_ticks(order.half_life_s))
        self._joined: dict[int, int] = {}  # job id -> when it joined the queue
        accounts, users, shares = facts["account"], facts["user"], order.account_shares
        leaves = {(accounts.get(job, ""), users.get(job, "")) for job in accounts.keys() | users.keys()} | {("", "")}
        # The places of each leaf and of the accounts above it in the tree, from the top, and the shares of these places.
        paths = account_paths(order.account_shares)
        self._places: dict[Leaf, list[Place]] = {}
        self._share: dict[Place, float] = {}
        self._as_account: set[Leaf] = set()  # the users who share the usage of their account
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
                self._as_account.add((account, user))
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

    def note(self, running: Iterable[RunningJob]) -> None:
        """Note who uses how many nodes from now on."""
        nodes = self._usage.nodes = defaultdict[Leaf, int](int)
        for gang in running:
            nodes[self._leaf(gang.job)] += gang.nodes

    def arrange(self, waiting: Iterable[QueuedJob], now: int) -> list[QueuedJob]:
        """Return the waiting jobs in the order of the site, which they keep as their sorting key."""
        self._usage.settle(now)
        jobs = list(waiting)
        key = self._by_shares() if isinstance(self._order, FairShare) else self._by_factors(self._order, now)
        for job in jobs:
            joined = self._joined.setdefault(job.id, now)
            job.queue_order = (-job.priority, key(job, joined) << 64 | joined, job.id)
        jobs.sort(key=lambda job: job.queue_order)
        return jobs

    def _leaf(self, job: QueuedJob) -> Leaf:
        return self._facts["account"].get(job.id, ""), self._facts["user"].get(job.id, "")

    def _by_shares(self) -> Key:
        """Return the key of a fair-share order: usage over shares of its accounts from the top, then of its user."""
        used = self._used_at_places()
        keys: dict[Leaf, int] = {}

        def key(job: QueuedJob, _: int) -> int:
            leaf = self._leaf(job)
            if leaf not in keys:
                places, value = self._places[leaf], 0
                for place in places:
                    value = value << 64 | _rising(used[place] / self._share[place])
                keys[leaf] = value << 64 * (self._depth - len(places))
            return keys[leaf]

        return key

    def _used_at_places(self) -> defaultdict[Place, float]:
        used: defaultdict[Place, float] = defaultdict(float)
        for leaf, amount in self._usage.used.items():
            for place in dict.fromkeys(self._places[leaf]):
                used[place] += amount
        return used

    def _by_factors(self, order: Multifactor, now: int) -> Key:
        used, facts = self._usage.used, self._facts
        of_places = self._used_at_places() if self._as_account else {}
        whole, most_age = sum(used.values()), to_ticks(order.max_age_s)
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
                own = of_places[self._places[leaf][-1]] if leaf in self._as_account else used[leaf]
                part = own / whole if whole else 0.0
                value += order.fair_share * 2 ** (-part / self._parts[leaf])
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
