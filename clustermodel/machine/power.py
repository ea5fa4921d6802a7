"""What a node draws in each of its states: watts, from which and the ledger the energy of a run follows."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from clustermodel.errors import SpecificationError, quoted
from clustermodel.text.key_values import number_in, values_by_field
from clustermodel.text.tables import Place, made, table_at
from clustermodel.ticks import to_ticks
from clustermodel.validation import require, require_number, seconds_fields

MOST_WATTS: Final = 1e6
MICROWATTS: Final = 1_000_000
"""Microwatts in a watt: microwatts x ticks (microseconds) are picojoules, whole numbers."""
PICOJOULES_PER_JOULE: Final = 10**12
PICOJOULES_PER_KWH: Final = 3_600_000 * PICOJOULES_PER_JOULE


@dataclass(frozen=True, kw_only=True, slots=True)
class Power:
    """The power drawn by each node (by each processor, where nodes have several) in each state.

    >>> from clustermodel import Machine, Power
    >>> machine = Machine(nodes=64, power=Power(busy_w=350, idle_w=120))
    >>> Power.from_text("busy=350,idle=120,switching=250").switching
    250000000
    """

    busy_w: float
    """While a job executes, watts."""
    idle_w: float
    """While no job has the node, reserved nodes included, watts; at most ``busy_w``."""
    switching_w: float | None = None
    """While a gang has the node and does not execute: context switches, checkpoints, restarts, changes of size, and waiting for
    these, watts; ``None``: as much as ``busy_w``."""
    down_w: float = 0.0
    """While the node has failed and is not repaired yet, watts."""
    off_w: float = 0.0
    """While the node is switched off, watts."""
    boot_s: float = 0.0
    """How long a node takes to boot that was switched off, seconds."""
    boot_w: float | None = None
    """While it boots, watts; ``None``: as much as ``busy_w``."""

    def __post_init__(self) -> None:
        for name in (each.name for each in fields(self) if each.name.endswith("_w")):
            if (value := getattr(self, name)) is not None or name in ("busy_w", "idle_w"):
                require_number(f"Power.{name}", value, f"a number of watts >= 0 and <= {MOST_WATTS:g}", _is_possible)
        require(self.idle_w <= self.busy_w, "Power.idle_w", self.idle_w, f"it must be at most busy_w, {self.busy_w:g}")
        seconds_fields(self, "Power.", "boot_s")

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the power that a text describes, by the names of the fields without their units: ``"busy=350,idle=120"``."""
        names = {each.name.rpartition("_")[0] + ("_s" if each.name == "boot_s" else ""): each.name for each in fields(cls)}
        given = values_by_field("power", text, names, form="write busy=WATTS,idle=WATTS")
        values = {name: number_in(f"power: {name.removesuffix('_w')}", texts[0]) for name, texts in given.items()}
        for name in ("busy_w", "idle_w"):
            if name not in values:
                missing = name.removesuffix("_w")
                raise SpecificationError(f"power: {missing} is missing in {quoted(text)}; write busy=WATTS,idle=WATTS")
        return cls(**values)

    @property
    def busy(self) -> int:
        """``busy_w`` in whole microwatts, the nearest, as all that follow."""
        return to_microwatts(self.busy_w)

    @property
    def idle(self) -> int:
        """``idle_w`` in microwatts."""
        return to_microwatts(self.idle_w)

    @property
    def switching(self) -> int:
        """``switching_w`` in microwatts."""
        return to_microwatts(self.busy_w if self.switching_w is None else self.switching_w)

    @property
    def down(self) -> int:
        """``down_w`` in microwatts."""
        return to_microwatts(self.down_w)

    @property
    def off(self) -> int:
        """``off_w`` in microwatts."""
        return to_microwatts(self.off_w)

    @property
    def booting(self) -> int:
        """``boot_w`` in microwatts."""
        return to_microwatts(self.busy_w if self.boot_w is None else self.boot_w)

    @property
    def boot(self) -> int:
        """``boot_s`` in ticks."""
        return to_ticks(self.boot_s)


def _is_possible(watts: float) -> bool:
    return 0 <= watts <= MOST_WATTS


def to_microwatts(watts: float) -> int:
    """Return ``watts`` as whole microwatts, the nearest."""
    return round(watts * MICROWATTS)


def to_watts(microwatts: int) -> float:
    """Return microwatts as watts."""
    return microwatts / MICROWATTS


def power_from(value: object, place: Place) -> Power:
    """Return the power that a table of a file describes, or another file with it."""
    table, place = table_at(value, place, "a Power")
    return made(Power, table, place)


def with_power(table: Mapping[str, Any], place: Place) -> Mapping[str, Any]:
    """Return a table of a file, such as that of a type of nodes, with the power that it describes, if any."""
    return {**table, "power": power_from(table["power"], place.at("power"))} if "power" in table else table
