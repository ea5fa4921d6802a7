"""Notes on rules that do not fit the jobs: names that no job has, jobs that name nothing there is, limits that none meets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from clustermodel.arrays import BoolArray
from clustermodel.errors import counted, did_you_mean, shown
from clustermodel.machine.machine import Machine
from clustermodel.machine.node_type import has_features
from clustermodel.plans.capped_pools import capped_pools, most_in_use
from clustermodel.recording.run_attempts import Status
from clustermodel.site.concerns import Concerns
from clustermodel.site.limits import BITS, EACH, SUBJECTS, Limits
from clustermodel.site.order import FairShare, Multifactor
from clustermodel.site.site import Site
from clustermodel.text.formatting import four_digits
from clustermodel.ticks import TICKS_PER_SECOND, to_seconds
from clustermodel.workload.job import DEPENDENCIES
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    from clustermodel.experiment.result import Result

Words = tuple[str, str, str]  # fact, advice and option of a note
_NAMED: Final = 3
_OPTION: Final = "--site"
_CAP_OPTION: Final = "--power-cap-w"
_OK, _NOT_OK = map(DEPENDENCIES.index, ("after_ok", "after_not_ok"))


_NO_WINDOW: Final = "no time between reservations, or outages known in advance, is long enough for the nodes that they need"
_SHORTER: Final = "give them shorter estimates, or reservations longer intervals"


def notes_on_rules(run: Result, rejected_in_vain: int, *, rejected_only: bool = False) -> Iterator[Words]:
    """Yield notes on a site and a machine; ``rejected_in_vain`` jobs are rejected that would fit the machine without them."""
    jobs = _Jobs(run)
    late = run.records.column("ended_as")[list(run.records.in_no_window)]
    if rejected := int((late == Status.REJECTED).sum()):
        yield f"{_are_rejected(rejected)}: {_NO_WINDOW}", _SHORTER, ""
    if aborted := len(late) - rejected:
        are = "job is" if aborted == 1 else "jobs are"
        yield f"{aborted:,} {are} aborted: stopped once, and {_NO_WINDOW}", _SHORTER, ""
    if others := rejected_in_vain - rejected:
        yield from _rejected(run, jobs, others)
    if rejected_only:
        return
    yield from _of_nobody(run, jobs)
    yield from _without_effect(run, jobs)
    if ignoring := sum(source.ignoring for source in run.scenario.sources if isinstance(source, Workload)):
        depend = "job depends" if ignoring == 1 else "jobs depend"
        yield f"{ignoring:,} {depend} on jobs that are not in the workload", "such dependencies are ignored", ""
    starts = [each for each in run.machine.reservations if to_seconds(run.ledger.end) <= each.start_s]
    if starts:
        many = len(run.machine.reservations)
        which = "the reservation begins" if many == 1 else f"{len(starts):,} of {many:,} reservations begin"
        fact = f"{which} when all jobs have ended, at {to_seconds(run.ledger.end):g} s"
        yield fact, "give times on the clock of the jobs, seconds after the log begins", "--reservation, --site"


class _Jobs:
    """What the jobs of a run name."""

    def __init__(self, run: Result) -> None:
        self._run = run
        self._names: dict[str, Mapping[int, str]] = {}

    @cached_property
    def ids(self) -> list[int]:
        """The numbers of the jobs."""
        ids: list[int] = self._run.records.column("id").tolist()
        return ids

    def names(self, field: str) -> Mapping[int, str]:
        """Return what each job has that has one, by its number."""
        if field not in self._names:
            self._names[field] = self._run.scenario.streams.names_of_jobs(field)
        return self._names[field]

    def known(self, field: str) -> set[str]:
        """Return all names; of several partitions or types that a job names, each."""
        texts = set(self.names(field).values())
        several = field in ("partition", "node_type", "reservation")
        return {part for text in texts for part in text.split(",")} if several else texts

    def under(self, site: Site) -> Iterator[tuple[Limits, dict[str, BoolArray]]]:
        """Yield the limits of a site, and for each amount of theirs for which jobs it holds."""
        facts = {name: self.names(name) for name in site.subjects}
        default = next((each.name for each in self._run.machine.partitions if each.default), None)
        concerns = Concerns(site, facts, default)
        applies = np.zeros((len(site.limits), len(self.ids)), dtype=np.int64)
        for place, job in enumerate(self.ids):
            for number, _, bits in concerns.of(job):
                applies[number, place] = bits
        for limit, bits_of_jobs in zip(site.limits, applies, strict=True):
            yield limit, {name: (bits_of_jobs & BITS[name]) != 0 for name in limit.given}


def _rejected(run: Result, jobs: _Jobs, number: int) -> Iterator[Words]:
    """Yield why jobs are rejected: they name what is not there; a job that they depend on; limits; something else."""
    machine, records = run.machine, run.records
    rejected = records.column("ended_as") == Status.REJECTED
    rejected[list(records.in_no_window)] = False
    ids = set(np.array(jobs.ids)[rejected].tolist())
    for field, kind, there in (
        ("partition", "partition", {each.name for each in machine.partitions}),
        ("node_type", "type of nodes", {each.name for each in machine.node_types}),
    ):
        lost = {job: name for job, name in jobs.names(field).items() if job in ids and there.isdisjoint(name.split(","))}
        if there and lost:
            yield _naming(lost, kind, there)
            number -= len(lost)
            ids -= lost.keys()
    if types := [each.features for each in machine.node_types]:
        possible = {text: any(has_features(frozenset(each), text) for each in types) for text in jobs.known("features")}
        lost = {job: text for job, text in jobs.names("features").items() if job in ids and not possible[text]}
        if lost:
            yield _naming(lost, "node with features", {name for each in types for name in each})
            number -= len(lost)
            ids -= lost.keys()
    capped = ids.intersection(np.array(jobs.ids)[records.column("nodes") > nodes_under_cap(machine)].tolist())
    for fact, beyond in [(_cap_lets(machine), capped)] * bool(capped) + [*_beyond_partitions(run, jobs, ids - capped)]:
        option = _CAP_OPTION if beyond is capped else _OPTION
        yield f"{_are_rejected(len(beyond))}: {fact}", "raise the limit, or leave such jobs out", option
        number -= len(beyond)
        ids -= beyond
    completed = set(np.array(jobs.ids)[records.column("ended_as") == Status.COMPLETED].tolist())
    needs = [need for need in run.scenario.streams.dependencies().tolist() if need[0] in ids and need[1] in (_OK, _NOT_OK)]
    if waited := {job for job, kind, other in needs if (other in completed) != (kind == _OK)}:
        yield f"{_are_rejected(len(waited))}: jobs that they depend on end otherwise", "check the dependencies", ""
        number -= len(waited)
        ids -= waited
    by_limits, none_within = _beyond_limits(run, jobs)
    if limited := int((by_limits & np.isin(jobs.ids, list(ids))).sum()):
        fact = f"{_are_rejected(limited)}: limits of the site never allow such a size or estimate"
        yield fact, "raise the limits, or leave such jobs out", _OPTION
        yield from none_within
    if (number := number - limited) > 0:
        fact = f"{_are_rejected(number)}: no nodes that they may have are ever enough"
        others = "" if machine.power_cap_w is None else ", and at the power cap"
        yield fact, f"look at partitions, types of nodes, reservations and shapes{others}", ""


def _beyond_limits(run: Result, jobs: _Jobs) -> tuple[BoolArray, list[Words]]:
    """Return which jobs limits of the site never allow, and notes on the limits that allow none of theirs."""
    machine, records = run.machine, run.records
    by_limits = np.zeros(len(jobs.ids), dtype=bool)
    nodes, estimate = records.column("nodes"), records.column("estimate")
    fewest = -(-nodes // max(machine.node_sizes)) if machine.has_shared_nodes else nodes
    none_within: list[Words] = []
    hours = nodes * (estimate / TICKS_PER_SECOND / 3600)
    asked = {
        "nodes": fewest, "job_nodes": fewest, "node_hours": fewest * (estimate / TICKS_PER_SECOND / 3600),
        "processors": nodes, "job_processors": nodes, "processor_hours": hours, "wall_time_s": estimate / TICKS_PER_SECOND,
    }  # fmt: skip
    for limit, holds in jobs.under(run.scenario.used_site or Site()):
        amounts = {name: concerned for name, concerned in holds.items() if name in asked}
        exceeding = [concerned & (asked[name] > getattr(limit, name)) for name, concerned in amounts.items()]
        over = sum(exceeding, np.zeros_like(by_limits))
        concerned = sum(amounts.values(), np.zeros_like(by_limits))
        by_limits |= over
        if over.any() and over[concerned].all():
            given = ", ".join(f"{name} = {getattr(limit, name):g}" for name in amounts)
            fact = f"{given} of {limit.of_whom} rejects each of {counted(int(concerned.sum()), 'job')}"
            none_within.append((fact, "raise the limit, or leave it out", _OPTION))
    return by_limits, none_within


def nodes_under_cap(machine: Machine) -> int:
    """Return how many nodes of a machine may be in use at a time."""
    return most_in_use(
        capped_pools(machine.processors, machine.kinds_of_nodes(), machine.draws, machine.power_cap), machine.processors
    )


def _cap_lets(machine: Machine) -> str:
    nodes = f"{nodes_under_cap(machine):,} of {counted(machine.processors, 'node')}"
    return f"the power cap of {four_digits(machine.power_cap_w or 0)} W lets {nodes} be in use"


def cap_note(run: Result) -> Words:
    """Return the note on what a power cap does."""
    machine, waits = run.machine, run.records.column("cap_wait")
    if nodes_under_cap(machine) == machine.processors:
        fact = f"all nodes together never draw the {four_digits(machine.power_cap_w or 0)} W of the power cap"
        return fact, "it has no effect", _CAP_OPTION
    ran = run.records.finished
    jobs, mean_s = int((waits > 0).sum()), to_seconds(float(waits[ran].mean())) if ran.any() else 0.0
    more = f"{jobs:,} {'job waits' if jobs == 1 else 'jobs wait'} for that under {run.scenario.label}"
    return f"{_cap_lets(machine)}; {more}, {four_digits(mean_s)} s of the mean wait", "", ""


def _beyond_partitions(run: Result, jobs: _Jobs, ids: Collection[int]) -> Iterator[tuple[str, set[int]]]:
    """Yield what all partitions of jobs refuse, and which of the jobs ``ids`` these are."""
    known, named = {each.name: each for each in run.machine.partitions}, jobs.names("partition")
    qos = {each.name: each for each in (run.scenario.used_site or Site()).qos}
    lifting = {job: qos[name] for job, name in jobs.names("qos").items() if name in qos} if known and qos else {}
    default = ",".join(each.name for each in run.machine.partitions if each.default)
    requests = zip(jobs.ids, run.records.seconds("estimate").tolist(), run.records.column("nodes").tolist(), strict=True)
    lost: dict[str, dict[int, float]] = {"s": {}, "nodes": {}}  # by unit the jobs, and the most that their partitions take
    for job, estimate_s, nodes in requests if known else ():
        own = [known[name] for part in named.get(job, default).split(",") if (name := part.strip()) in known]
        lifts = lifting.get(job)
        for unit, asked, limits in (
            ("s", estimate_s, [] if lifts and lifts.lifts_partition_time else [each.max_wall_time_s for each in own]),
            ("nodes", nodes, [] if lifts and lifts.lifts_partition_nodes else [each.max_nodes for each in own]),
        ):
            allowed = [limit for limit in limits if limit is not None]
            if job in ids and own and len(allowed) == len(own) and asked > max(allowed):
                lost[unit][job] = max(allowed)
                break
    for unit, most in lost.items():
        if most:
            least, largest = (four_digits(end(most.values())) for end in (min, max))
            amount = largest if least == largest else f"{least} to {largest}"
            noun = "node" if (amount, unit) == ("1", "nodes") else unit
            yield f"no partition of theirs takes more than {amount} {noun}", set(most)


def _are_rejected(jobs: int) -> str:
    return f"{counted(jobs, 'job')} {'is' if jobs == 1 else 'are'} rejected"


def _naming(lost: Mapping[int, str], kind: str, there: Collection[str]) -> Words:
    """Return the note on jobs that are rejected as they name what is not there."""
    names = list(dict.fromkeys(lost.values()))
    near = did_you_mean(names[0], sorted(there)) if len(names) == 1 else ""
    fact = f"{_are_rejected(len(lost))}: no {kind} {_listed(names)} is there{near}"
    return fact, "give the machine some, or leave such jobs out", _OPTION


def _of_nobody(run: Result, jobs: _Jobs) -> Iterator[Words]:
    """Yield notes on names in rules that no job has."""
    site, machine = run.scenario.used_site or Site(), run.machine
    named: list[tuple[str, list[str], str]] = []
    # QOS that jobs are under because of their partitions.
    of_partitions = {each.name for each in site.qos if not jobs.known("partition").isdisjoint(each.partitions)}
    for subject in SUBJECTS:
        who = [name for limit in site.limits for name in limit.names(subject)]
        who = [name for name in who if subject != "qos" or name not in of_partitions]
        named.append((subject, who, "the limits that name {} have no effect"))
    by_name = jobs.known("reservation") if machine.reservations else set()
    if missing := sorted(by_name - {each.name for each in machine.reservations}):
        yield f"jobs name reservation {_listed(missing)}, which the machine does not have", "they use other nodes", _OPTION
    for subject in ("account", "user"):
        of_names = [getattr(each, f"{subject}s") for each in machine.reservations if each.name not in by_name]
        who = [name for names in of_names for name in names if not name.startswith("-")]
        named.append((subject, who, "the reservations for {} are nobody's"))
    if isinstance(order := site.order, FairShare | Multifactor):
        accounts = {part for path in order.account_shares for part in path.split("/")} & jobs.known("account")
        if order.account_shares and not accounts:
            named.append(("account", list(order.account_shares), "their shares have no effect"))
        named.append(("user", [name.rpartition("/")[2] for name in order.user_shares], "the shares of {} have no effect"))
    for subject, who, effect in named:
        known = jobs.known(subject) if who else set()
        missing = [name for name in dict.fromkeys(who) if name not in known and (name != EACH or not known)]
        if not known and missing:
            an = "an" if subject == "account" else "a"
            yield f"no job has {an} {subject}", effect.format("it" if len(missing) == 1 else "them"), _OPTION
        elif len(missing) == 1:
            near = did_you_mean(missing[0], sorted(known)) or f"; there are {_listed(sorted(known))}"
            yield f"no job has {subject} {shown(missing[0])}{near}", effect.format("it"), _OPTION
        elif missing:
            yield f"no job has {subject} {_listed(missing)}", effect.format("them"), _OPTION
    yield from _partitions_of_nobody(run, jobs)


def _partitions_of_nobody(run: Result, jobs: _Jobs) -> Iterator[Words]:
    if not (partitions := run.machine.partitions):
        return
    known, default = jobs.known("partition"), [each.name for each in partitions if each.default]
    nobody = [each.name for each in partitions if each.name not in known and not each.default]
    if not known:
        have = f"all jobs have those of {default[0]}" if default else "all jobs may have all nodes"
        yield f"no job names a partition: {have}", "give jobs the column partition, or leave the partitions out", _OPTION
    elif nobody:
        whose = "its" if len(nobody) == 1 else "their"
        yield f"no job names partition {_listed(nobody)}", f"{whose} nodes serve jobs of other partitions only, if any", _OPTION


def _without_effect(run: Result, jobs: _Jobs) -> Iterator[Words]:
    """Yield notes on orders and limits that make no difference."""
    site = run.scenario.used_site
    if site is None:
        return
    limited = {name for limit in site.limits for name in limit.names("partition")}
    several = [set(text.split(",")) for text in jobs.names("partition").values() if "," in text] if limited else []
    if escaped := sum(bool(limited & names) for names in several):
        which = _listed(sorted(set().union(*several) & limited))
        name = "names" if escaped == 1 else "name"
        yield (
            f"{counted(escaped, 'job')} {name} other partitions together with {which}",
            "limits of one partition do not apply to them",
            _OPTION,
        )
    if site.array_limits and not run.scenario.streams.array_limits():
        yield "no job is of an array with a limit", "array_limits has no effect", _OPTION
    order = site.order
    if not isinstance(order, FairShare | Multifactor):
        return
    if isinstance(order, FairShare) or order.fair_share:
        pairs = {(jobs.names("account").get(job), jobs.names("user").get(job)) for job in jobs.ids}
        if len(pairs) == 1:
            ((account, user),) = pairs
            whose = f"are of user {user}" if user else f"are of account {account}" if account else "lack accounts and users"
            yield f"all jobs {whose}", "fair shares order nothing", "--order, --site"
    if isinstance(order, Multifactor):
        for field, values in (("partition", order.partitions), ("qos", order.qos_values), ("queue", order.queues)):
            names = set(map(jobs.names(field).get, jobs.ids))
            if (weight := getattr(order, field)) and len({values.get(name or "", 0) for name in names}) == 1:
                yield f"the factor {field} is the same for all jobs", f"its weight of {weight:g} orders nothing", _OPTION


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:_NAMED])) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
