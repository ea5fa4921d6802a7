"""The order of the queue: fair shares, and priorities that are sums of several factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, ClassVar, Final, Literal, TypeAlias

from clustermodel.errors import SpecificationError, number_meant, quoted
from clustermodel.validation import choice, require, require_number, seconds_fields

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
