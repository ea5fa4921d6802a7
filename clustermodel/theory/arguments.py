"""Arguments that formulas have in common: distributions of sizes and of run times, and means by size."""

from collections.abc import Hashable, Iterable, Mapping
from math import inf
from typing import TypeVar

from clustermodel.errors import SpecificationError
from clustermodel.validation import require_number, share

Value = TypeVar("Value", bound=Hashable)


def probabilities(field: str, shares: Mapping[Value, float]) -> dict[Value, float]:
    """Return the values that occur; refuse what is no probability, and probabilities that do not add up to one."""
    given = {value: share(f"{field}: probability of {value}", probability) for value, probability in shares.items()}
    if abs((total := sum(given.values())) - 1) > 1e-9:
        raise SpecificationError(f"{field}: probabilities that sum to {total:g} are not allowed; their sum must be 1")
    return {value: probability for value, probability in given.items() if probability}


def job_sizes(sizes: Mapping[int, float], most: int, unit: str = "nodes") -> dict[int, float]:
    """Return the sizes that occur, with their probabilities; refuse what is no whole number from 1 to ``most``."""
    for size in sizes:
        job_size(size, most, unit)
    return {int(size): probability for size, probability in probabilities("sizes", sizes).items()}


def job_size(size: int, most: int, unit: str = "nodes") -> int:
    """Return a size; refuse what is no whole number from 1 to ``most``."""
    if size != int(size) or not 1 <= size <= most:
        raise SpecificationError(f"sizes: {size} is not allowed; it must be a whole number >= 1 and <= {most} {unit}")
    return int(size)


def means_by_size(field: str, sizes: Iterable[int], mean_s: float | Mapping[int, float]) -> dict[int, float]:
    """Return the mean of each size, seconds, which is given for all or by size; refuse one that is missing or not positive."""
    means = mean_s if isinstance(mean_s, Mapping) else dict.fromkeys(sizes, mean_s)
    if missing := set(sizes) - means.keys():
        raise SpecificationError(f"{field}: a mapping without size {min(missing)} is not allowed; it must have all sizes")
    return {size: require_number(field, means[size], "a finite number > 0", lambda mean: 0 < mean < inf) for size in sizes}
