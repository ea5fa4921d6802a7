"""What jobs ask for beyond nodes and time, as columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from clustermodel.arrays import IntArray
from clustermodel.workload.job import (
    COSTS,
    MALLEABLE,
    NAMES,
    SHAPE,
    SINGLETON,
    SIZES,
    UNSET,
    Demand,
    JobRow,
    JobShape,
    OwnCosts,
    Sizes,
    demands_of,
)

DEMANDED: Final = (*SHAPE, SINGLETON, *SIZES, *COSTS)
"""Columns of what jobs demand beside names."""


def _numbers_of(demand: Demand) -> dict[str, int]:
    """Return what a job demands as the columns ``DEMANDED``."""
    shape, sizes = demand.shape or JobShape(), demand.sizes
    least, most, resize = sizes or Sizes()
    flags = (demand.singleton, sizes is not None)
    per_node, most_nodes, whole, singleton, malleable = (int(number) or UNSET for number in (*shape, *flags))
    numbers = (per_node, most_nodes, whole, singleton, malleable, least, most, resize, *demand.costs)
    return dict(zip(DEMANDED, numbers, strict=True))


def demand_of(numbers: Mapping[str, int], names: Mapping[str, str]) -> Demand | None:
    """Return what jobs demand that have these numbers and names; ``None`` if that is nothing."""
    per_node, most_nodes, whole = (max(numbers.get(name, 0), 0) for name in SHAPE)
    shape = JobShape(per_node, most_nodes, whole > 0)
    sizes = Sizes(*(numbers.get(name, UNSET) for name in SIZES[1:])) if numbers.get(MALLEABLE, UNSET) > 0 else None
    demand = Demand(
        **names,
        shape=shape if any(shape) else None,
        singleton=numbers.get(SINGLETON, UNSET) > 0,
        sizes=sizes,
        costs=OwnCosts(*(numbers.get(name, UNSET) for name in COSTS)),
    )
    return None if demand == Demand() else demand


def columns_of_demands(rows: Sequence[JobRow]) -> tuple[dict[str, IntArray], dict[str, tuple[str, ...]]]:
    """Return what rows demand as columns, none if nothing, and the names that numbers in them stand for."""
    number_of = {demand: number for number, demand in enumerate(demands_of(rows))}
    if number_of.keys() <= {None}:
        return {}, {}
    which = np.array([number_of[row.demand] for row in rows])
    demands = [demand or Demand() for demand in number_of]
    numbers, codes, names = [_numbers_of(demand) for demand in demands], dict[str, list[int]](), dict[str, tuple[str, ...]]()
    for name in DEMANDED:
        codes[name] = [of_demand[name] for of_demand in numbers]
    for name in NAMES:
        texts = [getattr(demand, name) for demand in demands]
        names[name] = tuple(dict.fromkeys(text for text in texts if text is not None))
        code_of = {None: UNSET} | {text: code for code, text in enumerate(names[name], start=1)}
        codes[name] = [code_of[text] for text in texts]
    columns = {name: np.array(of_demands)[which] for name, of_demands in codes.items() if set(of_demands) != {UNSET}}
    return columns, {name: known for name, known in names.items() if known}
