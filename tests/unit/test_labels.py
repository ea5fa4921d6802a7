"""Labels of axes, legends and tables: the units that names end in, factors with the names of measures, missing levels."""

from typing import Any

import pandas as pd
import pytest

from clustermodel.errors import SpecificationError
from clustermodel.experiment.study_table import StudyTable
from clustermodel.figures.curves_bars import bars, curves, improvements
from clustermodel.figures.study_tables import means_table
from clustermodel.figures.style import axis_label, factor_label
from clustermodel.measure.metrics import QUANTITIES
from clustermodel.measure.quantities import column_heading

NAMES = [
    ("bandwidth_gib_s", "bandwidth (GiB/s)"), ("node_bandwidth_gib_per_s", "node bandwidth (GiB/s)"),
    ("memory_gib", "memory (GiB)"), ("image_mb", "image (MB)"), ("mtbf_h", "MTBF (h)"), ("latency_us", "latency (µs)"),
    ("quantum_s", "quantum (s)"), ("wasted_node_s", "wasted (node-s)"), ("used_gpu_h", "used (GPU-h)"),
    ("jobs_per_s", "jobs per s"), ("failures_per_node_h", "failures per node-h"), ("gib_s", "GiB/s"),
    ("gpus_per_node", "GPUs per node"), ("mtbf_min", "MTBF min"), ("s", "s"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "label"), NAMES)
def test_the_unit_that_a_name_ends_in(name: str, label: str) -> None:
    shown = {axis_label(name), factor_label(name), column_heading(name)}
    assert shown - {"wasted, share of capacity", "wasted (node-seconds)"} == {label}  # an account of the ledger


def study_table(**factor: list[Any]) -> StudyTable:
    (name, levels), *_ = factor.items()
    rows = [
        {
            "run": f"{policy}{at}",
            name: level,
            "policy": policy,
            "replication": 1,
            "mean_wait_s": 10.0 * at + 1,
            "bandwidth_gib_s": 4,
        }
        for at, level in enumerate(levels)
        for policy in ("easy", "fcfs")
    ]
    return StudyTable(rows, [name, "policy"], "made", shown=["mean_wait_s"])


@pytest.mark.parametrize("name", ["load", "nodes", "warm_up_s"])
def test_a_factor_has_its_own_name_also_where_a_measure_has_it(name: str) -> None:
    plot = study_table(**{name: [1, 2]}).plot
    drawn = [
        plot.curves(y="mean_wait_s", x=name).axes[0].get_xlabel(),
        plot.bars(y="mean_wait_s", x=name).axes[0].get_xlabel(),
        plot.improvements(y="mean_wait_s", x=name, baseline="fcfs").axes[0].get_xlabel(),
        plot.bars(y="mean_wait_s", x="policy", by=name).legends[0].get_title().get_text(),
    ]
    assert drawn == [factor_label(name)] * 4
    measured = pd.DataFrame({"policy": "easy", "workload": [1, 2], name: [0.4, 0.8], "mean_wait_s": [1.0, 2.0]})
    assert curves(measured, y="mean_wait_s", x=name).axes[0].get_xlabel() == QUANTITIES[name].label()


def test_a_level_that_is_missing_is_none_in_legends_titles_and_along_axes() -> None:
    frame = study_table(mpl=[None, 2]).frame
    figure = bars(frame, y="mean_wait_s", x="policy", by="mpl")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["None", "2"]
    titles = [axes.get_title() for axes in bars(frame, y="mean_wait_s", panels="mpl").axes]
    assert titles == ["MPL None", "MPL 2"]
    ticks = bars(frame, y="mean_wait_s", x="mpl").axes[0].get_xticklabels()
    assert [text.get_text() for text in ticks] == ["None", "2"]
    better = improvements(frame, y="mean_wait_s", baseline=None, x="policy", by="mpl")
    assert [text.get_text() for text in better.legends[0].get_texts()] == ["2"]


def test_the_title_of_a_panel_names_the_factor_and_its_unit() -> None:
    titles = [axes.get_title() for axes in bars(study_table(mtbf_h=[3.1, 24.8]).frame, y="mean_wait_s", panels="mtbf_h").axes]
    assert titles == ["MTBF 3.1 h", "MTBF 24.8 h"]
    texts = study_table(charge=["every-slice", "on-change"]).frame
    assert [axes.get_title() for axes in bars(texts, y="mean_wait_s", panels="charge").axes] == ["every-slice", "on-change"]
    labels = {"charge": "charged", "every-slice": "in every slice"}
    titles = [axes.get_title() for axes in bars(texts, y="mean_wait_s", panels="charge", labels=labels).axes]
    assert titles == ["charged in every slice", "on-change"]


def test_texts_are_shown_instead_of_names() -> None:
    labels = {"memory_gib": "memory of a node (GiB)", None: "unlimited", "mean_wait_s": "wait", "policy": "scheduler"}
    frame = study_table(memory_gib=[None, 2]).frame
    figure = bars(frame, y="mean_wait_s", x="memory_gib", labels=labels)
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["unlimited", "2"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("memory of a node (GiB)", "wait")
    assert figure.legends[0].get_title().get_text() == "scheduler"
    figure = bars(frame, y="mean_wait_s", x="policy", by="memory_gib", labels=labels)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["unlimited", "2"]


def test_a_bandwidth_in_a_table_is_no_time() -> None:
    table = means_table(study_table(quantum_s=[10, 20]), "made", ["bandwidth_gib_s"])
    headings = [" ".join(column.heading.split()) for column in [*table.keys, *table.groups[0]]]
    assert headings == ["quantum (s)", "policy", "runs", "bandwidth (GiB/s)"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": ["policy", "load"]}, "by: ['policy', 'load'] is not allowed; it must be the name of one column; panels takes"),
        ({"x": ["load"]}, "x: ['load'] is not allowed; it must be the name of one column"),
        ({"panels": ["load"]}, "panels: ['load'] is not allowed; it must be the name of one column"),
        ({"x": "policy"}, "x: 'policy' has texts, such as 'easy', and curves need numbers along the axis; bars(x='policy')"),
        ({"log": ["load"]}, "log: 'load' is not drawn; there are mean_wait_s"),
        ({"log": "mean_wait"}, "log: 'mean_wait' is not drawn (did you mean 'mean_wait_s'?); there are mean_wait_s"),
        ({"log": 2}, "log: 2 is not allowed; it must be True, False, a name or several"),
        ({"bands": ["eazy"]}, "bands: 'eazy' is not drawn (did you mean 'easy'?); there are easy, fcfs"),
    ],
)
def test_what_curves_cannot_draw_is_one_clear_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        study_table(load=[1, 2]).plot.curves(**{"y": "mean_wait_s", "x": "load", **given})
    assert str(refused.value).startswith(message)


def test_what_other_figures_cannot_draw_is_one_clear_line() -> None:
    plot = study_table(load=[1, 2]).plot
    with pytest.raises(SpecificationError, match=r"^log: 'load' is not drawn; there are mean_wait_s"):
        plot.bars(y="mean_wait_s", x="load", log=["load"])
    with pytest.raises(SpecificationError, match=r"'lod' is no factor .did you mean 'load'"):
        plot.capacity(by="lod")
    with pytest.raises(SpecificationError, match="is no factor"):
        plot.heat_map("mean_wait_s", x=["load"], y="policy")  # type: ignore[arg-type]
