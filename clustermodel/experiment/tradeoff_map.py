"""Maps of which policy has the lowest measure over two factors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clustermodel.errors import SpecificationError, quoted
from clustermodel.experiment.factors import Factors
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.study import Study
from clustermodel.experiment.study_table import StudyTable
from clustermodel.policies.interface import Policy
from clustermodel.validation import require_whole

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def tradeoff_map(
    scenario: Callable[..., Scenario | None],
    factors: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    policies: Sequence[str | Policy],
    measure: str = "mean_bounded_slowdown",
    *,
    replications: int = 10,
    name: str = "trade-off map",
    **fields: Any,
) -> Study:
    """Return the study that maps which policy has the lowest measure over two factors, with paired differences.

    The study shows the table of winners, and for two policies the map of their differences with the contour beyond which they
    are significant.  The intervals are of one difference each: of a hundred differences that are zero, five look as if they
    were not.

    Args:
        scenario: returns the scenario of a trial: a function of the two factors, ``policy`` and ``seed``.  Draw the workload
            from ``seed``, so that all policies get the same jobs.
        factors: the two factors with their levels.
        policies: two names or objects, or more.
        measure: to compare: a column of the table.
        replications: at each point, at least two.
        name: of the experiment.
        fields: other fields of the :class:`~clustermodel.experiment.study.Study`.

    Raises:
        SpecificationError: an argument is not allowed.
    """
    require_whole("replications", replications, at_least=2)
    if not isinstance(factors, Mapping) or len(factors) != 2:
        raise SpecificationError(f"factors: {quoted(factors)} is not allowed; a map has two factors with their levels")
    if isinstance(policies, str) or len(policies) < 2:
        raise SpecificationError(f"policies: {quoted(policies)} is not allowed; a map compares two policies or more")
    x, y = factors

    def winners(table: StudyTable) -> pd.DataFrame:
        return table.lowest(measure)

    def picture(table: StudyTable) -> Figure:
        return table.plot.winners(measure, x=x, y=y)

    figures: dict[str, Any] = {f"lowest {measure}": picture}
    if len(policies) == 2:
        first, second = Factors({"policy": policies}).labels("policy")

        def difference(table: StudyTable) -> Figure:
            return table.plot.difference_map(measure, x=x, y=y, baseline=second, relative=False)

        figures[f"{measure}: {first} - {second}"] = difference
    shown: dict[str, Any] = {"tables": {f"lowest {measure}": winners}, "figures": figures}
    study = Study(
        name=name,
        factors={**factors, "policy": policies},
        scenario=scenario,
        replications=replications,
        **{**shown, **fields},
    )
    study.require_column("measure", measure)
    return study
