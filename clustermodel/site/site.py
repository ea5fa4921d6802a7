"""The rules of a site, beside machine and policy: what users, accounts, partitions may have at a time, and who comes first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, TypeAlias, get_args

from clustermodel.errors import SpecificationError, number_meant, quoted
from clustermodel.machine.node_type import NodeType
from clustermodel.machine.partition import Partition
from clustermodel.machine.power import Power, power_from, with_power
from clustermodel.machine.price import Price, price_from
from clustermodel.machine.reservation import Reservation
from clustermodel.text.tables import Place, made, placed, plain, read_file, require_keys, text_of_table
from clustermodel.ticks import to_ticks
from clustermodel.validation import LARGEST_WHOLE, choice, flag, require, require_number, seconds_fields, whole_fields
from clustermodel.workload.malleable import Malleable

EACH: Final = "*"
"""Stands for each user, account and so on, with a limit of its own."""
SUBJECTS: Final = ("user", "group", "account", "partition", "qos", "queue")
"""What jobs are limited by."""
LIMITS: Final = (
    "running_jobs", "nodes", "processors", "node_hours", "processor_hours", "submitted_jobs", "wall_time_s", "job_nodes",
    "job_processors",
)  # fmt: skip
"""What is limited: the fields of :class:`Limits` with an amount."""
BITS: Final = {name: 1 << number for number, name in enumerate(LIMITS)}
"""A bit for each of them."""
OF_EACH_JOB: Final = ("wall_time_s", "job_nodes", "job_processors")
"""Those of them that are limits of single jobs."""
Kind = Literal["max", "grp"]
"""In Slurm's words: a limit of each job, user or account, or of a group of jobs together."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of some jobs together, as those of a user, or of each user in a partition.

    >>> from clustermodel import Limits
    >>> Limits(user="*", running_jobs=2).of_whom
    'each user'
    >>> Limits(user="ann", partition="debug", nodes=4).of_whom
    'user ann in partition debug'
    >>> Limits(account=["bio", "astro"], nodes=64).of_whom
    'account bio or astro'

    The first six fields say whose jobs: each a name or a number, several for these together, ``"*"`` for each one separately,
    ``None`` for all together.  A job that lacks such a name, as the log or the table has none, is not limited.  Jobs of a
    partition also count as jobs of its QOS (:class:`QOS`).  At least one limit is given.  A value that is not allowed is a
    ``SpecificationError``.
    """

    user: str | int | Sequence[str | int] | None = None
    group: str | int | Sequence[str | int] | None = None
    account: str | int | Sequence[str | int] | None = None
    partition: str | int | Sequence[str | int] | None = None
    qos: str | int | Sequence[str | int] | None = None
    queue: str | int | Sequence[str | int] | None = None
    running_jobs: int | None = None
    """Largest number of jobs that run, or may start, at a time (Slurm: MaxJobs, GrpJobs)."""
    nodes: int | None = None
    """Largest number of nodes of these jobs (Slurm: GrpTRES=node); a wider job is rejected.  Where nodes have several
    processors, a node counts once, however many of these jobs run on it."""
    processors: int | None = None
    """Largest number of processors that these jobs ask for (Slurm: GrpTRES=cpu); a wider job is rejected."""
    node_hours: float | None = None
    """Largest sum of nodes x remaining time of these jobs, hours (Slurm: GrpTRESRunMins=node).  The remaining time of a job is
    its estimate until it starts, and falls to 0 while it runs; a job that is larger by itself is rejected."""
    processor_hours: float | None = None
    """The same for processors (Slurm: GrpTRESRunMins=cpu)."""
    submitted_jobs: int | None = None
    """Largest number of jobs that wait or run: others are held as if they were submitted later (Slurm: MaxSubmitJobs)."""
    wall_time_s: float | None = None
    """Largest estimate, seconds: jobs with a larger one are rejected (Slurm: MaxWall, MaxTime)."""
    job_nodes: int | None = None
    """Largest number of nodes of a job: wider ones are rejected (Slurm: MaxTRES=node)."""
    job_processors: int | None = None
    """Largest number of processors of a job: wider ones are rejected (Slurm: MaxTRES=cpu)."""
    yields_to_qos: Kind | None = None
    """``"max"`` or ``"grp"``: these limits apply only to jobs of which neither the QOS nor the partition's QOS has the same
    limit, of each job, user or account (``"max"``), or of its jobs together (``"grp"``).  So limits of associations of Slurm
    yield to those of QOS."""

    def __post_init__(self) -> None:
        for name in SUBJECTS:
            value = getattr(self, name)
            if value is not None:
                several = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
                known = all(isinstance(each, (str, int)) and not isinstance(each, bool) and each != "" for each in several)
                known = known and several != () and (EACH not in several or several == (EACH,))
                require(known, f"Limits.{name}", value, "it must be a name, a number, several of them, or '*' for each")
                texts = tuple(dict.fromkeys(map(str, several)))
                object.__setattr__(self, name, texts if len(texts) > 1 else texts[0])
        whole_fields(self, "Limits.", running_jobs=1, nodes=1, processors=1, submitted_jobs=1, job_nodes=1, job_processors=1)
        for name in ("node_hours", "processor_hours"):
            if (hours := getattr(self, name)) is not None:
                require_number(f"Limits.{name}", hours, "a number of hours > 0", lambda given: 0 < given <= LARGEST_WHOLE)
        seconds_fields(self, "Limits.", "wall_time_s", positive=True)
        if self.yields_to_qos is not None:
            choice("Limits.yields_to_qos", self.yields_to_qos, get_args(Kind))
        if not self.given:
            raise SpecificationError(f"Limits: no limit is given; one of {', '.join(LIMITS)} is needed")

    @property
    def of_whom(self) -> str:
        """The limited jobs, in words."""
        named = [(name, getattr(self, name)) for name in SUBJECTS if getattr(self, name) is not None]
        words = [
            f"each {name}" if value == EACH else f"{name} {value if isinstance(value, str) else ' or '.join(value)}"
            for name, value in named
        ]
        return " in ".join(words) or "all jobs"

    def names(self, subject: str) -> tuple[str, ...]:
        """Return the names in a field of :data:`SUBJECTS`; none, if it is ``None``."""
        value = getattr(self, subject)
        return (value,) if isinstance(value, str) else value or ()

    @property
    def given(self) -> tuple[str, ...]:
        """Which of :data:`LIMITS` are given."""
        return tuple(name for name in LIMITS if getattr(self, name) is not None)

    def most(self, name: str) -> int:
        """Return a limit that is given; times in ticks."""
        value = getattr(self, name)
        if name == "wall_time_s":
            return to_ticks(value)
        return to_ticks(value * 3600) if name.endswith("_hours") else int(value)

    def kind_of(self, name: str) -> Kind:
        """Return the kind of one of the limits."""
        return "max" if name in OF_EACH_JOB or self.user is not None or self.account is not None else "grp"


@dataclass(frozen=True, kw_only=True)
class QOS:
    """A quality of service as Slurm has it: which limits come first, and what it lifts.

    >>> from clustermodel import QOS
    >>> long = QOS(name="long", lifts_partition_time=True)
    >>> gpu = QOS(name="gpu", partitions="gpu")

    Its limits are :class:`Limits` with this ``qos``.  If a job's partition has a QOS too, one of the two sets each limit: that
    of the partition if it has such a limit, else the job's.  *Such a limit* is the same field of :class:`Limits` for the same
    users, accounts and so on.  A value that is not allowed is a ``SpecificationError``.
    """

    name: str
    """The name that jobs give (column ``qos`` of a workload)."""
    partitions: Sequence[str] = ()
    """The partitions whose QOS it is (Slurm: ``QOS=`` of a partition): their jobs are under its limits, whatever their own."""
    over_partition_qos: bool = False
    """Whether its limits come before those of the partition's QOS (Slurm: OverPartQOS)."""
    lifts_partition_time: bool = False
    """Whether its jobs may exceed the partition's wall-time limit (Slurm: PartitionTimeLimit)."""
    lifts_partition_nodes: bool = False
    """Whether its jobs may exceed the partition's ``max_nodes`` (Slurm: PartitionMaxNodes)."""

    def __post_init__(self) -> None:
        require(isinstance(self.name, str) and self.name, "QOS.name", self.name, "it must be a text")
        names: object = [self.partitions] if isinstance(self.partitions, str) else self.partitions
        known = isinstance(names, Sequence) and all(isinstance(name, str) and name for name in names)
        require(known, "QOS.partitions", self.partitions, "they must be names of partitions")
        assert isinstance(names, Sequence)
        object.__setattr__(self, "partitions", tuple(dict.fromkeys(names)))
        for name in ("over_partition_qos", "lifts_partition_time", "lifts_partition_nodes"):
            flag(f"QOS.{name}", getattr(self, name))


PARENT: Final = "parent"
"""In place of a share: that of the account above counts, with its usage."""
Share: TypeAlias = float | Literal["parent"]


@dataclass(frozen=True, kw_only=True)
class FairShare:
    """A queue order: accounts, and within them users, that have used the smallest part of their share go first.

    Usage is nodes x time, as long as jobs run, and halves every half-life.  Accounts are compared by usage over shares, level
    by level, then the users of an account in the same way (the Fair Tree of Slurm 19.05); jobs of a user keep their order.  A
    value that is not allowed is a ``SpecificationError``.
    """

    name: ClassVar[str] = "fair-share"
    half_life_s: float = 7 * 86_400.0
    """In which usage counts half, seconds (Slurm: PriorityDecayHalfLife)."""
    account_shares: Mapping[str, Share] = field(default_factory=dict)
    """Shares of accounts; 1 by default.  ``"physics/bio"`` is the account ``bio`` below ``physics``.  With ``"parent"``, an
    account is no level of its own: what is below it stands beside it (Slurm: FairShare=parent)."""
    user_shares: Mapping[str, Share] = field(default_factory=dict)
    """Shares of users in their accounts; 1 by default.  ``"bio/ann"`` is ann in the account ``bio`` only.  Users with
    ``"parent"`` share the usage of their account: it counts for each of them, and none of them comes before another (Slurm:
    FairShare=parent)."""

    def __post_init__(self) -> None:
        _check_shares(self, "FairShare")

    def __hash__(self) -> int:
        return hash((self.name, self.half_life_s))


@dataclass(frozen=True, kw_only=True)
class Multifactor:
    """An order of the queue by a weighted sum of factors from 0 to 1 (the multifactor priority plug-in of Slurm).

    Age is the time in the queue over ``max_age_s``, at most 1; fair share is 2 to the power of -(usage / share), both as parts
    of all usage and all shares (Slurm's classic formula); size is the part of the machine that a job asks for; partitions,
    QOS and queues have the values given for them, 0 by default.  A value that is not allowed is a ``SpecificationError``.
    """

    name: ClassVar[str] = "multifactor"
    age: float = 1.0
    """Weights of the factors."""
    fair_share: float = 0.0
    size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    queue: float = 0.0
    max_age_s: float = 7 * 86_400.0
    """After which a job's age no longer grows, seconds."""
    half_life_s: float = 7 * 86_400.0
    """As for :class:`FairShare`, with the shares."""
    account_shares: Mapping[str, Share] = field(default_factory=dict)
    user_shares: Mapping[str, Share] = field(default_factory=dict)
    partitions: Mapping[str, float] = field(default_factory=dict)
    """Values of partitions, QOS and queues, by name, from 0 to 1."""
    qos_values: Mapping[str, float] = field(default_factory=dict)
    queues: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in WEIGHTS:
            require_number(f"Multifactor.{name}", getattr(self, name), "a finite number >= 0", lambda value: 0 <= value < inf)
        seconds_fields(self, "Multifactor.", "max_age_s", positive=True)
        _check_shares(self, "Multifactor")
        for name in ("partitions", "qos_values", "queues"):
            _check_numbers(f"Multifactor.{name}", getattr(self, name), "a number >= 0 and <= 1", lambda value: 0 <= value <= 1)

    def __hash__(self) -> int:
        return hash((self.name, *(getattr(self, name) for name in WEIGHTS)))


WEIGHTS: Final = ("age", "fair_share", "size", "partition", "qos", "queue")
"""Factors of :class:`Multifactor`."""
_LISTS: Final = (
    ("limits", Limits), ("qos", QOS), ("malleable", Malleable), ("partitions", Partition), ("node_types", NodeType),
    ("reservations", Reservation),
)  # fmt: skip
ORDERS: Final[Mapping[str, type[FairShare | Multifactor]]] = {order.name: order for order in (FairShare, Multifactor)}
"""Orders of the queue by name."""


def _check_shares(order: FairShare | Multifactor, name: str) -> None:
    seconds_fields(order, f"{name}.", "half_life_s", positive=True)
    for kind in ("account_shares", "user_shares"):
        shares = getattr(order, kind)
        if isinstance(shares, Mapping):
            shares = {key: share for key, share in shares.items() if share != PARENT}
        _check_numbers(f"{name}.{kind}", shares, "a finite number > 0, or 'parent'", lambda value: 0 < value < inf)
    account_paths(order.account_shares, name)


def account_paths(shares: Mapping[str, Share], name: str = "") -> dict[str, tuple[str, ...]]:
    """Return where accounts stand in their tree, from the top; an account that is not there stands at the top."""
    paths: dict[str, tuple[str, ...]] = {}
    for key in shares:
        path = tuple(key.split("/"))
        for depth, account in enumerate(path, 1):
            where = paths.setdefault(account, path[:depth])
            must = f"an account has one name and one place, and {account!r} is {'/'.join(where)} too"
            require(account and where == path[:depth], f"{name}.account_shares", key, must)
    return paths


def _check_numbers(name: str, values: object, allowed: str, holds: Callable[[float], bool]) -> None:
    require(isinstance(values, Mapping), name, values, "it must be a table of numbers by name")
    assert isinstance(values, Mapping)
    for key, value in values.items():
        require_number(f"{name}.{key}", value, allowed, holds)


def order_of(text: str) -> FairShare | Multifactor:
    """Return an order of the queue by its name, perhaps with parameters: ``"fair-share:half_life_s=3600"``."""
    name, _, settings = text.partition(":")
    kind = ORDERS[choice("order", name, ORDERS)]
    values: dict[str, Any] = {}
    known = [each.name for each in fields(kind) if each.type == "float"]
    for setting in filter(None, settings.split(",")):
        key, _, value = setting.partition("=")
        key = choice(f"order {name}", key.strip(), known)
        try:
            values[key] = float(value)
        except ValueError:
            raise SpecificationError(f"order {name}: {key}: {quoted(value)} is not a number{number_meant(value)}") from None
    return kind(**values)


@dataclass(frozen=True, kw_only=True)
class Site:
    """The rules of a site; jobs that they hold back are *held*, and no policy sees them (docs/site)."""

    limits: Sequence[Limits] = ()
    qos: Sequence[QOS] = ()
    """Which QOS partitions have, and what QOS lift; a QOS with limits alone need not be named here."""
    array_limits: bool = False
    """Whether no more tasks of a job array may run than its limit, as the log has recorded it (Slurm: ``--array=1-9%2``)."""
    order: FairShare | Multifactor | str | None = None
    """In which order jobs stand in the queue, among jobs of equal priority: ``"fair-share"``, ``"multifactor"``, with
    parameters as policies have them, or an object; ``None``: as they joined it."""
    malleable: Sequence[Malleable] = ()
    """Malleable jobs in addition to those of the workload: each rule chooses among the jobs that are still
    rigid.  Jobs must be in memory."""
    partitions: Sequence[Partition] = ()
    """Partitions of the machine, in place of :attr:`Machine.partitions <clustermodel.machine.machine.Machine.partitions>`."""
    reservations: Sequence[Reservation] = ()
    """When nodes are kept free, in place of :attr:`Machine.reservations
    <clustermodel.machine.machine.Machine.reservations>`."""

    node_types: Sequence[NodeType] = ()
    """Types of the nodes, in place of :attr:`Machine.node_types <clustermodel.machine.machine.Machine.node_types>`."""
    power: Power | None = None
    """Power drawn by each node, in place of :attr:`Machine.power <clustermodel.machine.machine.Machine.power>`."""
    price: Price | None = None
    """Price of energy over time, in place of :attr:`Machine.price <clustermodel.machine.machine.Machine.price>`."""
    power_cap_w: float | None = None
    """Largest total power, watts, in place of :attr:`Machine.power_cap_w
    <clustermodel.machine.machine.Machine.power_cap_w>`."""

    def __post_init__(self) -> None:
        flag("Site.array_limits", self.array_limits)
        if isinstance(self.order, str):
            object.__setattr__(self, "order", order_of(self.order))
        allowed = f"it must be one of {', '.join(ORDERS)}, FairShare(...) or Multifactor(...)"
        require(isinstance(self.order, FairShare | Multifactor | None), "Site.order", self.order, allowed)
        require(isinstance(self.power, Power | None), "Site.power", self.power, "it must be a Power(...) or None")
        if self.price is not None:
            object.__setattr__(self, "price", Price.of(self.price))
        if self.power_cap_w is not None:
            require_number("Site.power_cap_w", self.power_cap_w, "a number of watts > 0", lambda watts: 0 < watts < inf)
        for name, kind in _LISTS:
            values = getattr(self, name)
            values = (values,) if isinstance(values, Limits | QOS | Malleable) else values
            known = isinstance(values, Sequence) and all(isinstance(value, kind) for value in values)
            require(known, f"Site.{name}", values, f"they must be {kind.__name__}(...)")
            object.__setattr__(self, name, tuple(values))
        names = [each.name for each in self.qos]
        require(len({*names}) == len(names), "Site.qos", names, "each has one entry")
        of_partitions = [partition for each in self.qos for partition in each.partitions]
        twice = next((name for name in of_partitions if of_partitions.count(name) > 1), None)
        require(twice is None, "Site.qos: partitions", twice, "a partition has one QOS")

    @property
    def subjects(self) -> tuple[str, ...]:
        """Which of :data:`SUBJECTS` decide about limits."""
        named = {name for name in SUBJECTS if any(getattr(limit, name) is not None for limit in self.limits)}
        if "qos" in named or any(limit.yields_to_qos for limit in self.limits):
            named |= {"qos", *(["partition"] if any(each.partitions for each in self.qos) else [])}
        return tuple(name for name in SUBJECTS if name in named)

    @property
    def only_malleable(self) -> bool:
        """Whether it says nothing but which jobs are malleable."""
        return bool(self.malleable) and replace(self, malleable=()) == Site()

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> Self:
        """Return the rules of a site file, whose tables have the names of their fields.

        There is a table ``[[limits]]`` for each :class:`Limits`, ``[[qos]]`` for each :class:`QOS`, ``[[malleable]]``,
        ``[[partitions]]``, ``[[node_types]]`` and ``[[reservations]]`` in the same way; ``[power]``; ``[price]``, or ``price``,
        a file; ``power_cap_w``; and ``order``, a text, or a table with the name and the fields of :class:`FairShare` or
        :class:`Multifactor`.
        """
        table, place = read_file(Path(path))
        return cls(**site_fields(table, place))

    def to_toml(self, path: str | PathLike[str] | None = None) -> str:
        """Return the rules as TOML, of which :meth:`from_toml` makes equal ones, and write them to ``path``, if given."""
        text = text_of_table(table_of_site(self, Place("Site.to_toml", Path())))
        if path is not None:
            from clustermodel.text.files import write_file  # noqa: PLC0415

            write_file(path, text)
        return text


Facts: TypeAlias = Mapping[str, Mapping[int, str]]
"""What jobs have by the names of :data:`SUBJECTS`, then by job number."""


class Concern(NamedTuple):
    """A limit that concerns a job."""

    number: int
    """Of the limit."""
    key: tuple[str, ...]
    """With whose jobs it counts this one."""
    applies: int
    """:data:`BITS`: which of its amounts hold for the job; it is counted with jobs for which the others do."""


class Concerns:
    """Which limits of a site concern jobs, and which of these hold for them.

    Of a limit that both the QOS of the partition and that of the job have, the first one's holds; limits that yield to QOS
    hold where these have none of the kind (Slurm: Resource Limits, Hierarchy).
    """

    def __init__(self, site: Site, facts: Facts, default_partition: str | None = None) -> None:
        self._limits, self._facts, self._default_partition = site.limits, facts, default_partition
        self._qos_of = {partition: each.name for each in site.qos for partition in each.partitions}
        self._comes_first = frozenset(each.name for each in site.qos if each.over_partition_qos)
        self._known: dict[tuple[str | None, ...], list[Concern]] = {}  # by the facts of jobs

    def of(self, job: int) -> list[Concern]:
        """Return the limits that concern a job, by its number, and which of their amounts hold for it."""
        facts = tuple([names.get(job) for names in self._facts.values()])
        if (concerns := self._known.get(facts)) is None:
            concerns = self._known[facts] = self._of(dict(zip(self._facts, facts, strict=True)))
        return concerns

    def _of(self, facts: Mapping[str, str | None]) -> list[Concern]:
        """Return the same for jobs with these names."""
        partitions = (facts.get("partition") or self._default_partition or "").split(",")
        of_partitions = {self._qos_of.get(name.strip()) for name in partitions}
        order = [of_partitions.pop() if len(of_partitions) == 1 else None, facts.get("qos")]
        if order[1] in self._comes_first:
            order.reverse()
        keys = [self._key(number, facts, order) for number in range(len(self._limits))]
        concerns = [(number, *key) for number, key in enumerate(keys) if key is not None]
        first: dict[tuple[object, ...], int] = {}  # the QOS that sets a limit
        set_by_qos = set[tuple[str, str]]()
        for number, _, rank in concerns:
            if rank is not None:
                for name in self._limits[number].given:
                    what = self._what(number, name)
                    first[what] = min(first.get(what, rank), rank)
                    set_by_qos.add((name, self._limits[number].kind_of(name)))
        made = []
        for number, key_of, rank in concerns:
            limit, applies = self._limits[number], 0
            for name in limit.given:
                yields = limit.yields_to_qos is not None and (name, limit.yields_to_qos) in set_by_qos
                if not yields and (rank is None or first[self._what(number, name)] == rank):
                    applies |= BITS[name]
            made.append(Concern(number, key_of, applies))
        return made

    def _key(
        self, number: int, facts: Mapping[str, str | None], order: list[str | None]
    ) -> tuple[tuple[str, ...], int | None] | None:
        """Return with whose jobs a limit counts jobs, and where the QOS that it names stands in ``order``, if it names any.

        ``None``: the limit does not concern them.
        """
        limit, key = self._limits[number], list[str]()
        rank: int | None = None
        for name in SUBJECTS:
            if not (wanted := limit.names(name)):
                continue
            value = facts[name]
            if name == "qos":
                if wanted != (EACH,):
                    value = next((each for each in order if each is not None and each in wanted), None)
                rank = None if value is None else order.index(value)
            if value is None or (value not in wanted and wanted != (EACH,)):
                return None
            key.append(value if wanted == (EACH,) else "")
        return tuple(key), rank

    def _what(self, number: int, name: str) -> tuple[object, ...]:
        """Return what a limit limits, whatever its QOS."""
        limit = self._limits[number]
        return (name, *(getattr(limit, subject) for subject in SUBJECTS if subject != "qos"))


def table_of_site(site: Site, place: Place) -> dict[str, Any]:
    """Return a site as a table of plain values."""
    table: dict[str, Any] = plain(site, place)
    if isinstance(site.order, FairShare | Multifactor):
        table["order"] = {"name": site.order.name, **{key: value for key, value in table["order"].items() if value != {}}}
    table["qos"] = [{key: value for key, value in each.items() if value} for each in table.get("qos", ())]
    return {key: value for key, value in table.items() if value}


def site_fields(table: Any, place: Place) -> dict[str, Any]:
    """Return the fields of the :class:`Site` that a table of a file describes."""
    require_keys(table, [each.name for each in fields(Site)], place)
    site: dict[str, Any] = {name: table[name] for name in ("array_limits", "power_cap_w") if name in table}
    for name, read in (("power", power_from), ("price", price_from)):
        if name in table:
            site[name] = read(table[name], place.at(name))
    for name, kind in _LISTS:
        given, below = table.get(name, []), place.at(name)
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            raise below.refused(given, f"tables [[{name}]]")
        site[name] = [made(kind, with_power(each, below.at(number)), below.at(number)) for number, each in enumerate(given)]
    if (order := table.get("order")) is not None:
        below = place.at("order")
        if isinstance(order, str):
            site["order"] = placed(lambda: order_of(order), place, ("order",))
        elif not isinstance(order, dict) or order.get("name") not in ORDERS:
            raise below.refused(order, f"a text, or a table whose name is {' or '.join(ORDERS)}")
        else:
            settings = dict(order)
            site["order"] = made(ORDERS[settings.pop("name")], settings, below)
    return site
