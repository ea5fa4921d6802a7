"""Figures of an experiment's table: ``table.plot.curves(...)``, ``table.plot.heat_map(...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from clustermodel.figures import account_shares, maps
from clustermodel.figures.curves_bars import bars, curves, improvements

if TYPE_CHECKING:
    from clustermodel.experiment.study_table import StudyTable


class StudyPlots:
    """The figures of a table.

    Args:
        table: of an experiment.
    """

    def __init__(self, table: StudyTable) -> None:
        self._table = table

    def curves(self, **options: Any) -> Figure:
        """Return :func:`~clustermodel.figures.curves_bars.curves` of the table, with its options."""
        return curves(self._table.frame, **self._along_factor(options))

    def bars(self, **options: Any) -> Figure:
        """Return :func:`~clustermodel.figures.curves_bars.bars` of the table, with its options."""
        return bars(self._table.frame, **options)

    def improvements(self, **options: Any) -> Figure:
        """Return :func:`~clustermodel.figures.curves_bars.improvements` of the table, with its options."""
        return improvements(self._table.frame, **self._along_factor(options))

    def heat_map(self, measure: str, *, x: str, y: str, **options: Any) -> Figure:
        """Return :func:`~clustermodel.figures.maps.heat_map` of the table, with its options: means over two factors."""
        return maps.heat_map(self._table, measure, x=x, y=y, **options)

    def difference_map(self, measure: str, *, baseline: Any, x: str, y: str, **options: Any) -> Figure:
        """Return :func:`~clustermodel.figures.maps.difference_map` of the table, with its options."""
        return maps.difference_map(self._table, measure, baseline=baseline, x=x, y=y, **options)

    def winners(self, measure: str, *, x: str, y: str, **options: Any) -> Figure:
        """Return :func:`~clustermodel.figures.maps.winners` of the table: which policy has the lowest mean where."""
        return maps.winners(self._table, measure, x=x, y=y, **options)

    def _along_factor(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options in which a factor along the axis distinguishes the points, also if it has the name of an outcome."""
        x = options.get("x")
        return {"at": x, **options} if x in self._table.factors else options

    def capacity(self, *, by: str = "policy") -> Figure:
        """Return :func:`~clustermodel.figures.account_shares.account_bars` of the table: what capacity was used for."""
        return account_shares.account_bars(self._table, by=by)
