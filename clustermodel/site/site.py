"""The rules of a site, beside machine and policy: what users, accounts, partitions may have at a time, and who comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Final, Self

from clustermodel.machine.node_type import NodeType
from clustermodel.machine.partition import Partition
from clustermodel.machine.power import Power, power_from, with_power
from clustermodel.machine.price import Price, price_from
from clustermodel.machine.reservation import Reservation
from clustermodel.site.limits import SUBJECTS, Limits
from clustermodel.site.order import ORDERS, FairShare, Multifactor, order_of
from clustermodel.site.qos import QOS
from clustermodel.text.tables import Place, made, placed, plain, read_file, require_keys, text_of_table
from clustermodel.validation import flag, require, require_number
from clustermodel.workload.malleable import Malleable

_LISTS: Final = (
    ("limits", Limits), ("qos", QOS), ("malleable", Malleable), ("partitions", Partition), ("node_types", NodeType),
    ("reservations", Reservation),
)  # fmt: skip


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
