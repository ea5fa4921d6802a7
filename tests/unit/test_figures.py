"""Figures of studies: what is drawn is what the table says, with intervals and units; a policy has one colour everywhere."""

import inspect
import pydoc
from dataclasses import fields
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from scipy.stats import t as student

from clustermodel import Job, Machine, Scenario, SpecificationError, StudyTable, Workload, load_model, synthetic_workload
from clustermodel.arrays import FloatArray
from clustermodel.figures.curves_bars import bars, curves, improvements, ratios
from clustermodel.figures.result_plots import comparison
from clustermodel.figures.style import (
    BLACK,
    PALETTE,
    add_to_legend,
    axis_label,
    legend_labels,
    plain,
    policy_colour,
    policy_styles,
)
from clustermodel.figures.workloads import distributions, estimates_used
from clustermodel.measure.metrics import QUANTITIES, Summary
from clustermodel.policies.registry import policy_names

WORKLOADS = ("light", "medium", "heavy")


def made(policies: tuple[str, ...] = ("easy", "conservative"), replications: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "run": f"{policy}{workload}{replication}", "machine": "m", "workload": workload, "policy": policy,
            "replication": replication, "utilization": 0.5 + 0.1 * place + 0.01 * rng.random(),
            "mean_wait_s": 100 * (place + 1) * (1 + rng.random()), "mean_bounded_slowdown": 2 + place * rng.random(),
            "load": 0.6 + 0.1 * place,
        }
        for place, workload in enumerate(WORKLOADS)
        for policy in policies
        for replication in range(1, replications + 1)
    )  # fmt: skip


def by_hand(values: list[float]) -> tuple[float, float]:
    """Mean and half width of the 95 % Student t interval, from the definition."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, float(student.ppf(0.975, len(values) - 1)) * (variance / len(values)) ** 0.5


def values(table: pd.DataFrame, column: str, **place: object) -> list[float]:
    for name, value in place.items():
        table = table[table[name] == value]
    return [float(value) for value in table[column]]


def shown(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_curve_goes_through_the_means() -> None:
    table = made()
    figure = curves(table, y=["mean_wait_s", "mean_bounded_slowdown"])
    assert shown(figure) == ["easy", "conservative"]
    for axes, column in zip(figure.axes, ("mean_wait_s", "mean_bounded_slowdown"), strict=True):
        for line, policy in zip(axes.lines, ("easy", "conservative"), strict=True):
            for x, y, workload in zip(line.get_xdata(), line.get_ydata(), WORKLOADS, strict=True):
                assert x == pytest.approx(np.mean(values(table, "utilization", policy=policy, workload=workload)))
                assert y == pytest.approx(np.mean(values(table, column, policy=policy, workload=workload)))


def test_the_band_is_the_t_interval() -> None:
    table = made()
    (axes,) = curves(table, y="mean_wait_s").axes
    for band, policy in zip(axes.collections, ("easy", "conservative"), strict=True):
        drawn = {round(y, 6) for _, y in band.get_paths()[0].vertices}
        for workload in WORKLOADS:
            mean, half = by_hand(values(table, "mean_wait_s", policy=policy, workload=workload))
            assert {round(mean - half, 6), round(mean + half, 6)} <= drawn
    (axes,) = curves(made(replications=1), y="mean_wait_s").axes
    assert (len(axes.lines), len(axes.collections)) == (2, 0)  # a single replication has no band


def test_a_curve_along_a_factor() -> None:
    (axes,) = curves(made(), x="load", y="utilization").axes
    assert axes.lines[0].get_xdata().tolist() == pytest.approx([0.6, 0.7, 0.8])
    assert axes.get_xlabel() == "load until the last submission"


def test_a_saturated_curve_turns_back() -> None:
    """At the highest load the policy uses no more of the machine than before; the points are joined by load all the same."""
    table = made().sample(frac=1, random_state=3)
    table.loc[table["workload"] == "heavy", "utilization"] = 0.55
    loads = table["workload"].map({"light": 1.0, "medium": 1.5, "heavy": 2.0})
    (axes,) = curves(table.assign(workload=loads), y="mean_wait_s").axes
    for line in axes.lines:
        low, high, back = line.get_xdata()
        assert low < back < high
        assert back == pytest.approx(0.55)
    (axes,) = curves(table, y="mean_wait_s").axes  # names have no order
    assert all((np.diff(line.get_xdata()) > 0).all() for line in axes.lines)


def test_a_logarithmic_axis_begins_below_the_lowest_mean() -> None:
    table = made()
    table.loc[(table["policy"] == "easy") & (table["workload"] == "light"), "mean_wait_s"] = 0.0
    (axes,) = curves(table, y="mean_wait_s", log=True).axes
    assert axes.get_yscale() == "log"
    means = [value for line in axes.lines for value in line.get_ydata() if value]
    assert axes.get_ylim()[0] == pytest.approx(min(means) / 2)


def test_panels_for_each_value_of_a_factor() -> None:
    table = pd.concat([made().assign(machine="one"), made(("easy", "fcfs")).assign(machine="two")])
    figure = curves(table, y=["mean_wait_s", "utilization"], panels="machine", x="load", log={"mean_wait_s"})
    assert [axes.get_title() for axes in figure.axes] == ["one", "two", "", ""]
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "log", "linear", "linear"]
    assert [axes.get_ylabel() for axes in figure.axes] == ["mean wait (s)", "", "utilization ρ", ""]
    assert [axes.get_xlabel() for axes in figure.axes[2:]] == ["load until the last submission"] * 2
    assert shown(figure) == ["easy", "conservative", "fcfs"]
    colours = [[to_hex(line.get_color()) for line in axes.lines] for axes in figure.axes[:2]]
    assert colours == [
        [policy_colour(name).lower() for name in names] for names in (("easy", "conservative"), ("easy", "fcfs"))
    ]
    mean = np.mean(values(table, "mean_wait_s", machine="two", policy="fcfs", workload="light"))
    assert figure.axes[1].lines[1].get_ydata()[0] == pytest.approx(mean)
    by_panel = improvements(table, y="mean_wait_s", baseline="easy", x="workload", panels="machine")
    alone = improvements(table[table["machine"] == "two"], y="mean_wait_s", baseline="easy", x="workload")
    drawn = [[bar.get_height() for bar in axes.patches] for axes in (by_panel.axes[1], alone.axes[0])]
    assert drawn[0] == pytest.approx(drawn[1])


def test_a_single_name_is_no_part_of_others() -> None:
    """``"easy"`` chooses neither ``"asy"`` nor ``"uneasy"``."""
    table = made(("easy", "asy", "uneasy"))
    for bands, drawn in (("easy", 1), (["easy"], 1), (False, 0)):
        assert len(curves(table, y="mean_wait_s", bands=bands).axes[0].collections) == drawn
    figure = curves(table, y=["mean_wait_s", "load"], log="load")
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log"]
    figure = curves(table.assign(wait=table["mean_wait_s"]), y=["mean_wait_s", "wait"], log="mean_wait_s")
    assert [axes.get_yscale() for axes in figure.axes] == ["log", "linear"]


def test_panels_with_axes_of_their_own() -> None:
    table = pd.concat([made().assign(machine="one"), made().assign(machine="two", mean_wait_s=1e6)])
    for draw in (curves, bars):
        factors = {} if draw is curves else {"x": "workload"}
        alike = draw(table, y="mean_wait_s", panels="machine", **factors).axes
        assert alike[0].get_ylim() == alike[1].get_ylim()
        own = draw(table, y="mean_wait_s", panels="machine", share_y=False, **factors).axes
        assert own[0].get_ylim()[1] < own[1].get_ylim()[1]


def test_an_axis_of_what_is_never_negative_begins_at_zero() -> None:
    table = made()
    table["mean_wait_s"] = np.where(table["replication"] == 1, 1000.0, 1.0)
    for figure in (curves(table, y="mean_wait_s"), bars(table, y="mean_wait_s", x="workload")):
        assert figure.axes[0].get_ylim()[0] == 0
    table["mean_wait_s"] -= 500
    assert curves(table, y="mean_wait_s").axes[0].get_ylim()[0] < 0


def test_an_improvement_may_be_negative_so_its_interval_is_whole() -> None:
    table = made(("easy", "conservative"))
    less = np.where(table["replication"] == 1, 1.0, 90.0)
    table["mean_wait_s"] = np.where(table["policy"] == "easy", 100.0, less)
    for x in ("load", "workload"):
        (axes,) = improvements(table, y="mean_wait_s", baseline="easy", x=x, at="workload").axes
        mean, half = by_hand([99, 10, 10])
        assert mean > 0 > mean - half
        assert axes.get_ylim()[0] < mean - half


def test_bars_are_as_high_as_the_means_and_whiskers_as_long_as_the_intervals() -> None:
    table = made()
    (axes,) = bars(table, y="mean_wait_s", x="workload").axes
    heights = [bar.get_height() for bar in axes.patches]
    expected = [
        by_hand(values(table, "mean_wait_s", policy=policy, workload=workload))
        for policy in ("easy", "conservative")
        for workload in WORKLOADS
    ]
    assert heights == pytest.approx([mean for mean, _ in expected])
    whiskers = [segment for lines in axes.collections for segment in lines.get_segments()]
    assert [(high[1] - low[1]) / 2 for low, high in whiskers] == pytest.approx([half for _, half in expected])
    assert [label.get_text() for label in axes.get_xticklabels()] == list(WORKLOADS)


def test_bars_of_a_group_stand_beside_each_other() -> None:
    (axes,) = bars(made(("easy", "conservative", "fcfs")), y="mean_wait_s", x="workload").axes
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert all(left[1] < right[0] for left, right in pairwise(edges))
    groups = [round((low + high) / 2) for low, high in edges]
    assert groups == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    one_workload = made(("easy", "fcfs")).query("workload == 'heavy'")
    assert len(bars(one_workload, y="mean_wait_s").axes[0].patches) == 2


def improvements_of(table: pd.DataFrame, **given: Any) -> dict[str, float]:
    """Return the heights of the bars of improvements by workload, of a table with one policy beside the baseline."""
    (axes,) = improvements(table, y="mean_wait_s", x="workload", **given).axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    return dict(zip(names, (float(bar.get_height()) for bar in axes.patches), strict=True))


def test_improvements_are_paired() -> None:
    table = made()
    found = improvements_of(table, baseline="conservative")
    for workload in WORKLOADS:
        old, new = (values(table, "mean_wait_s", policy=policy, workload=workload) for policy in ("conservative", "easy"))
        assert found[workload] == pytest.approx(by_hand([100 * (1 - b / a) for a, b in zip(old, new, strict=True)])[0])
    figure = improvements(table, y="mean_wait_s", baseline="conservative", x="workload")
    assert shown(figure) == ["easy"]
    assert figure.axes[0].get_ylabel().replace("\n", " ") == "mean wait, less than with conservative (%)"
    (axes,) = improvements(table, y="mean_wait_s", baseline="easy", x="utilization").axes  # along an outcome: curves
    assert (len(axes.lines[0].get_xdata()), axes.get_xlabel()) == (len(WORKLOADS), "utilization ρ")


def test_ratios_are_paired_and_their_curves_have_labels_at_their_ends_and_a_line_at_1() -> None:
    table = made(("bf", "bgs:mpl=2", "bgs:mpl=5"))
    texts = {"load": "offered load", "bf": "backfilling", "bgs:mpl=2": "MPL 2", "bgs:mpl=5": "MPL 5"}
    figure = ratios(table, y="mean_wait_s", baseline="bf", x="load", at="workload", labels=texts)
    (axes,) = figure.axes
    study = StudyTable(table.assign(workload=table["workload"]), ["workload", "policy"], "made")
    for line, policy in zip(axes.lines, ("bgs:mpl=2", "bgs:mpl=5"), strict=False):
        for y, workload in zip(line.get_ydata(), WORKLOADS, strict=True):
            pair = ({"policy": name, "workload": workload} for name in (policy, "bf"))
            assert y == pytest.approx(study.difference("mean_wait_s", *pair, ratio=True).mean)
    first, second, at_one = axes.lines
    assert set(at_one.get_ydata()) == {1}
    assert len({to_hex(line.get_color()) for line in (first, second)}) == 2
    assert {(text.get_text(), to_hex(text.get_color())) for text in axes.texts} == {
        (label, to_hex(line.get_color())) for label, line in (("MPL 2", first), ("MPL 5", second))
    }
    heights = [float(text.xy[1]) for text in axes.texts]
    assert abs(heights[0] - heights[1]) > 0.049
    assert axes.get_xlabel() == "offered load"
    assert axes.get_ylabel().replace("\n", " ") == "mean wait, relative to backfilling"
    assert shown(figure) == ["equal to backfilling", "95 % intervals of the paired ratios, cut at 0"]
    assert min(y for band in axes.collections for _, y in band.get_paths()[0].vertices) == 0


def test_rows_of_one_replication_are_not_averaged() -> None:
    with pytest.raises(SpecificationError, match=r"workload 'all', and some of them the same replication; choose rows"):
        curves(made().assign(workload="all"), y="mean_wait_s")


def test_ratios_refuse_what_improvements_refuse() -> None:
    table = made()
    given: dict[str, Any] = {"y": "mean_wait_s", "x": "load", "at": "workload"}
    with pytest.raises(SpecificationError, match=r"^baseline: 'esy' is no policy .did you mean 'easy'"):
        ratios(table, baseline="esy", **given)
    with pytest.raises(SpecificationError, match=r"^log: 'load' is not drawn; there are mean_wait_s"):
        ratios(table, baseline="easy", log="load", **given)


def test_an_interval_of_what_cannot_be_negative_is_cut_at_0_and_the_legend_says_so() -> None:
    table = made()
    table["mean_wait_s"] = np.where(table["replication"] == 1, 1000.0, 1.0)
    table["lost_share"] = table["mean_wait_s"]
    table["difference"] = table["mean_wait_s"]
    for column, lowest, said in (
        ("mean_wait_s", 0, "policy; bands: 95 % intervals, cut at 0"),
        ("lost_share", 0, "policy; bands: 95 % intervals, cut at 0"),
        ("difference", -1, "policy; bands: 95 % intervals"),
    ):
        figure = curves(table, y=column)
        drawn = [y for band in figure.axes[0].collections for _, y in band.get_paths()[0].vertices]
        assert (min(drawn) == 0) == (lowest == 0)
        assert figure.legends[0].get_title().get_text() == said
        figure = bars(table, y=column, x="workload")
        ends = [low for lines in figure.axes[0].collections for (_, low), _ in lines.get_segments()]
        assert (min(ends) == 0) == (lowest == 0)
        assert figure.legends[0].get_title().get_text() == said.replace("bands", "lines")
    assert curves(made(replications=1), y="mean_wait_s").legends[0].get_title().get_text() == "policy"


def test_two_policies_of_a_figure_do_not_share_a_colour() -> None:
    (axes,) = curves(made(("mbgs", "ss", "bgs:mpl=2", "bgs:mpl=5")), y="mean_wait_s").axes
    mbgs, ss, low, high = (to_hex(line.get_color()) for line in axes.lines)
    assert len({mbgs, ss, low}) == 3
    assert low == high == policy_colour("bgs").lower()
    assert mbgs == policy_colour("mbgs").lower()


def test_entries_are_added_to_the_legend() -> None:
    figure = curves(made(), y="mean_wait_s")
    height = figure.get_figheight()
    (line,) = figure.axes[0].plot([0, 1], [1, 2], ":")
    add_to_legend(figure, {"as published": line})
    assert len(figure.legends) == 1
    assert shown(figure) == ["easy", "conservative", "as published"]
    assert figure.legends[0].get_title().get_text() == "policy; bands: 95 % intervals"
    assert figure.get_figheight() == pytest.approx(height)


def test_a_logarithmic_horizontal_axis() -> None:
    (axes,) = curves(made(), y="mean_wait_s", x="load", at="workload", log_x=True).axes
    assert axes.get_xscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.6", "0.7", "0.8"]
    (axes,) = ratios(made(), y="mean_wait_s", x="load", at="workload", baseline="easy", log=True, log_x=True).axes
    assert axes.get_ylim()[0] < 1 < axes.get_ylim()[1]
    with pytest.raises(SpecificationError, match=r"^log_x: load is not above zero everywhere"):
        curves(made().assign(load=0.0), y="mean_wait_s", x="load", at="workload", log_x=True)


def test_pairs_are_found_by_replication_and_not_by_place_and_a_baseline_may_be_a_number() -> None:
    table = made().assign(mpl=lambda rows: rows["policy"].map({"easy": 2, "conservative": 5}))
    shuffled = table.sample(frac=1, random_state=1)
    plain, *others = (
        improvements_of(rows, baseline=baseline, by=by)
        for rows, baseline, by in ((table, "easy", "policy"), (shuffled, "easy", "policy"), (table, 2, "mpl"))
    )
    for other in others:
        assert other == plain


def test_common_replications_are_compared() -> None:
    table = made()
    fewer = table[(table["policy"] != "conservative") | (table["replication"] != 2)]
    old, new = (values(table, "mean_wait_s", policy=policy, workload="light") for policy in ("conservative", "easy"))
    found = improvements_of(fewer, baseline="conservative")
    assert found["light"] == pytest.approx(by_hand([100 * (1 - new[place] / old[place]) for place in (0, 2)])[0])


def test_a_policy_keeps_its_colour_when_the_baseline_is_left_out() -> None:
    table = made(("mine", "yours", "theirs"))
    all_bars = bars(table, y="mean_wait_s", x="workload").axes[0].patches
    others = improvements(table, y="mean_wait_s", baseline="mine", x="workload").axes[0].patches
    assert [bar.get_facecolor() for bar in all_bars[3:]] == [bar.get_facecolor() for bar in others]


def test_no_difference_is_none() -> None:
    table = made().astype({"policy": "category", "workload": "category"})
    table["mean_wait_s"] = 0.0
    assert set(improvements_of(table, baseline="easy").values()) == {0.0}


def test_distributions_by_hand() -> None:
    workload = Workload.from_jobs(
        Job(id=number, submit_s=0, nodes=nodes, run_s=run, estimate_s=run)
        for number, (nodes, run) in enumerate([(1, 3600), (1, 7200), (4, 3600), (8, 1800)], 1)
    )
    jobs, jobs_at_most, time, time_at_most = distributions([workload]).axes
    assert [tuple(line[1]) for line in jobs.collections[0].get_segments()] == [(1, 2), (4, 1), (8, 1)]
    assert jobs_at_most.lines[0].get_ydata().tolist() == [50, 75, 100]
    assert [tuple(line[1]) for line in time.collections[0].get_segments()] == [(1, 3), (4, 4), (8, 4)]
    assert time_at_most.lines[0].get_ydata().tolist() == pytest.approx([100 * 3 / 11, 100 * 7 / 11, 100])
    assert "node-hours" in time.get_ylabel()


def test_the_phi_model_is_drawn_with_what_it_expects() -> None:
    """A fifth of the jobs uses all; 4 % of the others are in each of 20 intervals (Zhang et al. 2003, section 2.1)."""
    workload = load_model("blue-pacific").generate(jobs=4000, seed=1, phi=0.2)
    (axes,) = estimates_used([workload], phi=0.2).axes
    ours, expected = (patch.get_data().values for patch in axes.patches)
    assert expected == pytest.approx([4] * 19 + [24])
    share = (workload.seconds("run") / workload.seconds("estimate") >= 0.95).mean()
    assert ours.sum() == pytest.approx(100)
    assert ours[-1] == pytest.approx(100 * share)
    assert np.abs(ours - expected).max() < 3 * 100 * (0.24 * 0.76 / 4000) ** 0.5


def test_a_workload_has_jobs() -> None:
    jobs: Any = synthetic_workload(jobs=10)
    for draw, given, options, message in (
        (distributions, [], {}, "workloads: none is given"),
        (distributions, jobs, {}, "workloads: a single workload is not allowed"),
        (estimates_used, [jobs], {"phi": 2}, r"phi: 2 is not allowed; it must be a number in \[0, 1\]"),
        *(
            (estimates_used, [jobs], {"bins": bins}, f"bins: .*{bins}.*; it must be an integer >= 1")
            for bins in (0, 2.5, "many")
        ),
    ):
        with pytest.raises(SpecificationError, match=message):
            draw(given, **options)


def test_every_number_of_a_summary_has_a_name() -> None:
    numbers = {field.name for field in fields(Summary) if field.type in ("int", "float", "int | None", "float | None")}
    assert numbers - {"seed"} == set(QUANTITIES)
    assert len({quantity.label() for quantity in QUANTITIES.values()}) == len(QUANTITIES)
    for name, quantity in QUANTITIES.items():
        assert (quantity.unit == "s") == name.endswith("_s")


@pytest.mark.parametrize("name", QUANTITIES)
def test_units_stand_on_the_axis(name: str) -> None:
    quantity = QUANTITIES[name]
    stands = quantity.unit and f" {quantity.unit} " not in f" {quantity.name} "  # not in "completed jobs"
    assert axis_label(name) == (f"{quantity.name} ({quantity.unit})" if stands else quantity.name)
    (axes,) = bars(made().assign(**{name: 1.0}), y=name, x="workload").axes
    assert axes.get_ylabel().replace("\n", " ") == axis_label(name)


def test_other_columns_are_called_what_they_are() -> None:
    assert axis_label("my_own_number") == "my own number"
    assert axis_label("_") == " _"


HOSTILE = ("$x^$", "_a", "$\\frac{$", "%s {}", "b" * 300, "b" * 200 + "c" * 100, "two\nlines", "a&b<c>")


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    table = made(HOSTILE)
    for figure in (
        curves(table, y="mean_wait_s"),
        bars(table, y="mean_wait_s", x="workload"),
        improvements(table, y="mean_wait_s", baseline="_a", x="workload"),
    ):
        figure.savefig(tmp_path / "figure.png")
        labels = shown(figure)
        assert len(labels) == len(set(labels)) == len(HOSTILE) - (figure.axes[0].get_ylabel() != axis_label("mean_wait_s"))
        assert max(map(len, labels)) <= 60
        assert all(not text.get_text().startswith("_") for text in figure.legends[0].get_texts())
    workload = synthetic_workload(jobs=40, nodes=16)
    names = [name for name in HOSTILE if "\n" not in name]  # which no scenario may have
    results = [Scenario(machine=Machine(nodes=16), workload=workload, policy="easy", name=name).run() for name in names]
    figure = comparison(results)
    figure.savefig(tmp_path / "figure.png")
    assert len(shown(figure)) == len(names)
    assert plain("$x^$") == r"\$x^\$"
    assert legend_labels(["b" * 300, "b" * 299, "a"])[:2] == [f"{plain('b' * 300)} (1)", f"{plain('b' * 300)} (2)"]


def test_hostile_values_of_other_columns(tmp_path: Path) -> None:
    table = made()
    table["workload"] = table["workload"].map({"light": "$x^$", "medium": "_a", "heavy": "c" * 300})
    for figure in (bars(table, y="mean_wait_s", x="workload"), curves(table, y="mean_wait_s")):
        figure.savefig(tmp_path / "figure.png")
    table = table.rename(columns={"mean_wait_s": "$w_s$"})
    bars(table, y="$w_s$", x="workload").savefig(tmp_path / "figure.png")


WAIT = {"y": "mean_wait_s"}
EASY_LIGHT = "of policy 'easy', workload 'light' is not allowed"


@pytest.mark.parametrize(
    ("change", "given", "message"),
    [
        ({}, {"y": "mean_wait"}, "table: column 'mean_wait' is not there (did you mean 'mean_wait_s'"),
        ({}, {**WAIT, "by": "polcy"}, "table: column 'polcy' is not there (did you mean 'policy'"),
        ({}, {"y": []}, "y: no column is given"),
        ({}, {"y": None}, "y: None is not allowed; it must be the name of a column, or several"),
        ({}, {"y": ["mean_wait_s", 3]}, "y: 3 is not allowed; it must be the name of a column, or several"),
        ({}, {**WAIT, "panels": "machin"}, "table: column 'machin' is not there (did you mean 'machine'"),
        ({}, {**WAIT, "x": "workload"}, "x: 'workload' has texts, such as 'light', and curves need numbers along the axis; "
            "bars(x='workload') draws texts"),
        ({"mean_wait_s": -1.0}, {**WAIT, "log": True}, "log: mean_wait_s is nowhere above zero"),
        ({"mean_wait_s": pd.Timestamp("2020")}, WAIT, "table: mean_wait_s: 2020-01-01 00:00:00 of policy 'easy'"),
        ({"delayed": pd.array([1] * 17 + [None], dtype="Int64")}, {"y": "delayed"}, "table: delayed: <NA> of policy 'conserv"),
        ({}, {"y": "policy"}, f"table: policy: 'easy' {EASY_LIGHT}; it must be a finite"),
        ({"mean_wait_s": float("nan")}, WAIT, f"table: mean_wait_s: nan {EASY_LIGHT}"),
        ({"mean_wait_s": None}, WAIT, f"table: mean_wait_s: None {EASY_LIGHT}"),
        ({"mean_wait_s": True}, {**WAIT, "x": "load"}, None),
        ({"workload": "one"}, WAIT, "table: 9 rows have policy 'easy', workload 'one', and some of them the same"),
        ({"utilization": float("inf")}, WAIT, "table: utilization: inf of policy 'easy'"),
        ({}, {**WAIT, "level": 2}, "level"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(change: dict[str, Any], given: dict[str, Any], message: str | None) -> None:
    table = made().assign(**change)
    if message is None:
        curves(table, **given)
        return
    with pytest.raises(SpecificationError) as refused:
        curves(table, **given)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_other_refusals() -> None:
    table = made()
    unpaired = table[(table["policy"] != "easy") | (table["workload"] != "light") | (table["replication"] == 3)]
    unpaired = unpaired[(unpaired["policy"] == "easy") | (unpaired["replication"] != 3)]
    gone = table[(table["policy"] != "easy") | (table["workload"] != "heavy")]
    zero = table.assign(mean_wait_s=table["mean_wait_s"].where(table["policy"] != "easy", 0.0))
    for draw, given, options, message in (
        (bars, table.iloc[:0], {}, "table: it has no rows"),
        (bars, [1, 2], {}, "table: list is not allowed"),
        (curves, pd.concat([table, table[["policy"]]], axis=1), {}, "column 'policy' is there 2 times"),
        (improvements, table, {"baseline": "esy", "x": "workload"}, r"baseline: 'esy' is no policy \(did you mean 'easy'"),
        (improvements, table[table["policy"] == "easy"], {"baseline": "easy", "x": "workload"},
            "'easy' is the only policy; there is nothing"),
        (improvements, unpaired, {"baseline": "easy", "x": "workload"},
            "'easy' has no run to compare with policy 'conservative', workload 'light'"),
        (improvements, gone, {"baseline": "easy", "x": "workload"},
            "'easy' has no run to compare with policy 'conservative', workload 'heavy'"),
        (improvements, zero, {"baseline": "easy", "x": "workload"}, "mean_wait_s of 'easy' is 0"),
    ):  # fmt: skip
        with pytest.raises(SpecificationError, match=message):
            draw(given, y="mean_wait_s", **options)


COMPARED = (
    ("fcfs", "easy", "conservative", "slack", "pv-easy"),
    ("bf", "gs", "bgs", "mgs", "mbgs", "adaptive", "fcfs"),
    ("D", "P", "R", "1/L", "P/L", "R/L"),
    ("fcfs", "easy", "server-filling"),
    ("pv-easy", "easy", "easy:predictor=last", "easy:backfill_order=shortest"),
)
"""Policies that are compared in one figure of a paper, or by many users."""
# G. M. Machado, M. M. Oliveira and L. A. F. Fernandes, A physiologically-based model for simulation of color vision deficiency,
# IEEE Transactions on Visualization and Computer Graphics 15 (6), 2009: severity 1.0, on linear RGB.
SEEN = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
JUST_NOTICEABLE = 2.3
"""In CIE 1976 L*a*b* (M. Mahy, L. Van Eycken and A. Oosterlinck, Color Research and Application 19 (2), 1994)."""


def lab(colour: str, seen_with: Any) -> FloatArray:
    """Return the L*a*b* of an sRGB colour, under D65, as an eye sees it."""
    red_green_blue = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(red_green_blue <= 0.04045, red_green_blue / 12.92, ((red_green_blue + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(seen_with) @ linear, 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    relative = np.array(to_xyz) @ seen / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(relative > (6 / 29) ** 3, np.cbrt(relative), relative / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", SEEN)
def test_all_eyes_can_tell_the_colours_apart(eyes: str) -> None:
    for one, other in combinations(PALETTE, 2):
        assert np.linalg.norm(lab(one, SEEN[eyes]) - lab(other, SEEN[eyes])) > 6 * JUST_NOTICEABLE


@pytest.mark.parametrize("labels", COMPARED)
def test_what_is_compared_differs_in_colour(labels: tuple[str, ...]) -> None:
    styles = policy_styles(labels)
    assert len({style.colour for style in styles.values()}) == len(labels)
    assert all(style.colour in PALETTE for style in styles.values())


def test_our_policies_look_the_same_in_every_figure() -> None:
    alone = {name: policy_styles([name])[name] for name in policy_names()}
    for labels in COMPARED:
        for label, style in policy_styles(labels).items():
            if label in alone:
                assert style == alone[label]
    named = [name for name in policy_names() if name != "backfilling"]
    assert len({(alone[name].colour, alone[name].line, alone[name].marker) for name in named}) == len(named) - 1
    assert alone["D"] == alone["conservative"]  # the same algorithm


def test_names_of_the_papers_are_known() -> None:
    for theirs, ours in (
        ("BF", "bf"), ("BGS-2", "bgs:mpl=2"), ("GS-5", "gs"), ("MBGS", "mbgs"), ("EASY-Last", "easy:predictor=last"),
        ("SJF-EASY", "easy:backfill_order=shortest"), ("FCFS-EASY", "easy"), ("PV-EASY", "pv-easy"),
    ):  # fmt: skip
        assert policy_styles([theirs])[theirs] == policy_styles([ours])[ours]


def test_levels_and_guarantees_have_line_styles() -> None:
    levels = policy_styles(["bgs:mpl=2", "bgs:mpl=3", "bgs:mpl=5"])
    assert len({style.colour for style in levels.values()}) == 1
    assert len({style.line for style in levels.values()}) == len({style.hatch for style in levels.values()}) == 3
    sizes = policy_styles(["bf, small", "bf, large", "bgs, small"])
    assert [style.colour for style in sizes.values()] == [policy_colour(name) for name in ("bf", "bf", "bgs")]
    assert sizes["bf, small"].line != sizes["bf, large"].line
    both = policy_styles(["R/L", "R/L-NG"])
    assert both["R/L"].colour == both["R/L-NG"].colour
    assert both["R/L"].line != both["R/L-NG"].line


def test_others_take_what_is_left_over() -> None:
    styles = policy_styles(["easy", "mine", "easy:reserve_depth=2", "fcfs"])
    assert len({style.colour for style in styles.values()}) == 4
    assert styles["fcfs"].colour == BLACK == policy_colour("fcfs")
    many = policy_styles([f"policy {number}" for number in range(28)])
    assert len({(style.colour, style.line) for style in many.values()}) == 28
    assert len(policy_styles([f"policy {number}" for number in range(60)])) == 60
    same = policy_styles(["slack", "bgs"])
    assert same["slack"].colour == same["bgs"].colour
    assert (same["slack"].line, same["slack"].hatch) != (same["bgs"].line, same["bgs"].hatch)


def test_a_policy_has_one_colour_in_curves_bars_and_comparisons() -> None:
    names = ("easy", "fcfs", "bgs:mpl=2", "mine")
    table = made(names)
    lines = [to_hex(line.get_color()) for line in curves(table, y="mean_wait_s").axes[0].lines]
    blocks = [to_hex(bar.get_facecolor()) for bar in bars(table, y="mean_wait_s", x="workload").axes[0].patches[::3]]
    workload = synthetic_workload(jobs=40, nodes=16)
    results = [Scenario(machine=Machine(nodes=16), workload=workload, policy="easy", name=name).run() for name in names]
    steps = [to_hex(patch.get_edgecolor()) for patch in comparison(results).axes[0].patches]
    expected = [style.colour.lower() for style in policy_styles(names).values()]
    assert lines == blocks == steps == expected


def test_a_factor_named_like_an_outcome_distinguishes_the_points_of_a_tables_curves() -> None:
    """A study with the factor "load" has one workload; its loads are the points of a curve."""
    frame = made().assign(workload="interactive+batch")
    table = StudyTable(frame, ["load", "policy"], "loads")
    figure = table.plot.curves(x="load", y="mean_wait_s")
    for line in figure.axes[0].get_lines()[:2]:
        assert list(line.get_xdata()) == pytest.approx([0.6, 0.7, 0.8])
    assert table.plot.improvements(x="load", y="mean_wait_s", baseline="easy").axes
    with pytest.raises(SpecificationError, match="the same replication"):
        curves(frame, x="load", y="mean_wait_s")  # a data frame does not say which columns are factors


@pytest.mark.parametrize(
    "name", ["curves", "bars", "improvements", "ratios", "differences", "heat_map", "difference_map", "winners"]
)
def test_the_figures_of_a_study_have_the_arguments_of_the_functions(name: str) -> None:
    from clustermodel.figures import curves_bars, maps
    from clustermodel.figures.study_plots import StudyPlots

    function = getattr(curves_bars, name, None) or getattr(maps, name)
    method = getattr(StudyPlots(None), name)  # type: ignore[arg-type]
    first, *others = inspect.signature(function).parameters.values()
    assert first.name == "table"
    assert list(inspect.signature(method).parameters.values()) == others
    text = pydoc.plain(pydoc.render_doc(method))
    assert all(argument.name in text for argument in others)
    assert "table: a row" not in text
