"""Factors of an experiment: their levels, the labels of levels in tables, and the points that levels form.

A level that is a number, a text, a truth value or ``None`` is its own label, so that numeric factors are numeric columns.  A
policy has its name as label.  Other objects, such as machines and workloads, are given in a dictionary by their labels.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import isfinite
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError, quoted, refused
from clustermodel.measure.statistics import RESAMPLED
from clustermodel.policies.interface import Policy
from clustermodel.policies.registry import policy_label
from clustermodel.validation import require

Label = bool | int | float | str | None
"""A level of a factor as tables show it."""
RESERVED: Final = ("run", "replication", "seed", "measure", "level", "self", RESAMPLED)
"""Names of columns and arguments that no factor may have."""


class Trial(NamedTuple):
    """One replication of one point of an experiment."""

    point: tuple[Label, ...]
    """The label of each factor's level, in the order of the factors."""
    replication: int
    """From 1 on."""


class Factors:
    """The factors of an experiment by name, each with its levels by label."""

    def __init__(self, given: Mapping[str, Sequence[Any] | Mapping[str, Any]]) -> None:
        require(isinstance(given, Mapping), "Study.factors", given, "it must be a dictionary of levels by name")
        self._levels: dict[str, dict[tuple[bool, Label], Any]] = {}  # by the keys of their labels
        for name, levels in given.items():
            if not isinstance(name, str) or not name.isidentifier() or name in RESERVED:
                must = f"a factor's name must be a name of Python other than {', '.join(RESERVED)}"
                raise refused("Study.factors", name, f"{must}, because it is an argument of the scenario function")
            self._levels[name] = {label_key(label): value for label, value in _levels_of(f"Study.factors: {name}", levels)}
        self.names = tuple(self._levels)
        """The names of the factors."""

    def labels(self, name: str) -> list[Label]:
        """Return the labels of a factor's levels."""
        return [label for _, label in self._levels[name]]

    def points(self) -> list[tuple[Label, ...]]:
        """Return all combinations of levels; the last factor varies fastest."""
        return list(product(*map(self.labels, self.names)))

    def place(self, name: str, label: Label) -> float:
        """Return the place of a label among the levels of a factor; a number that is no level stands for itself."""
        if label_key(label) in self._levels[name]:
            return list(self._levels[name]).index(label_key(label))
        return float(label) if isinstance(label, int | float) else len(self._levels[name])

    def named(self, point: Sequence[Label]) -> dict[str, Label]:
        """Return the labels of a point by factor."""
        return dict(zip(self.names, point, strict=True))

    def values(self, point: Sequence[Label]) -> dict[str, Any]:
        """Return the values of a point by factor; a label that is no known level stands for itself."""
        return {name: self._levels[name].get(label_key(label), label) for name, label in self.named(point).items()}


def label_key(label: Label) -> tuple[bool, Label]:
    """Return what distinguishes a label from others: 1 and 1.0 are the same level, 1 and ``True`` are not."""
    return isinstance(label, bool), label


def plain(value: object) -> object:
    """Return a value of numpy as the same value of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _levels_of(field: str, given: object) -> list[tuple[Label, Any]]:
    if isinstance(given, np.ndarray):
        given = given.tolist()
    levels: list[tuple[Any, Any]]
    if isinstance(given, Mapping):
        levels = [(plain(label), value) for label, value in given.items()]
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        must = "levels that are neither numbers, texts nor policies must be a dictionary of them by name"
        levels = [(policy_label(value) if isinstance(value, Policy) else value, value) for value in map(plain, given)]
        for label, _ in levels:
            require(isinstance(label, bool | int | float | str | None), field, label, must, " in a list")
    else:
        raise refused(field, given, "it must be a list of levels, or a dictionary of them by name")
    if not levels:
        raise SpecificationError(f"{field}: no level is given; at least one is needed")
    before: list[Label] = []
    for label, _ in levels:
        if isinstance(label, str):
            require_text(field, label)
        require(isinstance(label, bool | int | float | str | None), field, label, "a label must be a text or a number")
        require(not isinstance(label, float) or isfinite(label), field, label, "a number must be finite (None is allowed)")
        if label in before:  # 1, 1.0 and True are equal
            raise SpecificationError(f"{field}: {quoted(label)} is given twice; levels must be distinct")
        before.append(label)
    return levels


def require_text(field: str, text: Any) -> None:
    """Refuse a value that cannot be a name in tables and files."""
    require(isinstance(text, str) and text.strip(), field, text, "a name must be a text that is not empty")
    require(text.encode(errors="ignore").decode() == text, field, text, "a name must be made of whole characters")
    require("\0" not in text, field, text, "a name must have no NUL character")


def describe(factors: Mapping[str, object]) -> str:
    """Return the factors of a run as text."""
    return ", ".join(f"{name} {value}" for name, value in factors.items())
