"""Maps over two factors, capacity by account, and the figure of a crossing: what is drawn is what the table says."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from clustermodel import ContextSwitch, Machine, Scenario, SpecificationError, Study, StudyTable, synthetic_workload
from clustermodel import tradeoff_map as mapped
from clustermodel.experiment.crossover import crossover
from clustermodel.experiment.exhibits import exhibits_of
from clustermodel.experiment.store import Store
from clustermodel.figures.capacity import ACCOUNT_COLOURS, SHARE_COLUMNS, account_shares
from clustermodel.figures.style import policy_styles

LOADS = (0.9, 0.5, 0.7)
QUANTA = (60, 600)
SLOPES = {"easy": 0.0, "bgs": 4.0, "gs": -4.0}


def table(policies: tuple[str, ...] = ("easy", "bgs", "gs"), quanta: tuple[object, ...] = QUANTA) -> StudyTable:
    """Return a table in which bgs wins at loads below 0.7, gs above it, and all are tied at 0.7."""
    generator = np.random.default_rng(3)
    rows = [
        {
            "run": f"{load} {quantum} {policy} {replication}",
            "load": load, "quantum_s": quantum, "policy": policy, "replication": replication, "seed": replication,
            "slowdown": 5 + SLOPES[policy] * (load - 0.7) + 0.01 * generator.normal(),
        }
        for load in LOADS for quantum in quanta for policy in policies for replication in range(1, 6)
    ]  # fmt: skip
    return StudyTable(rows, ["load", "quantum_s", "policy"], "made")


def texts(figure: Figure, panel: int = 0) -> dict[tuple[float, float], str]:
    return {text.get_position(): text.get_text() for text in figure.axes[panel].texts}


def hatched(figure: Figure, panel: int = 0) -> set[tuple[float, float]]:
    patches = [one for one in figure.axes[panel].patches if isinstance(one, Rectangle) and one.get_hatch()]
    return {(one.get_x() + 0.5, one.get_y() + 0.5) for one in patches}


def test_a_heat_map_has_the_means_in_its_cells_and_ascending_axes() -> None:
    made = table()
    figure = made.plot.heat_map("slowdown", x="load", y="quantum_s", policy="bgs")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0.5", "0.7", "0.9"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("load", "quantum (s)")
    for (x, y), text in texts(figure).items():
        mean = made.interval("slowdown", load=sorted(LOADS)[int(x)], quantum_s=QUANTA[int(y)], policy="bgs").mean
        assert text == f"{mean:.3g}"
    assert len(texts(figure)) == 6


def test_a_third_factor_has_panels() -> None:
    figure = table().plot.heat_map("slowdown", x="load", y="quantum_s", log=True)
    assert [axes.get_title() for axes in figure.axes[:3]] == ["policy easy", "policy bgs", "policy gs"]
    assert len(figure.axes) == 4  # with the colour bar, which all share


def test_differences_that_are_not_significant_are_hatched_and_a_line_separates_them() -> None:
    made = table()
    figure = made.plot.difference_map(
        "slowdown", baseline="easy", x="load", y="quantum_s", relative=False, policy=["easy", "bgs"]
    )
    rows = made.differences("slowdown", "policy", "easy")
    rows = rows[rows["policy"] == "bgs"]
    tied = rows[~rows["significant"]]
    places = {
        (float(sorted(LOADS).index(load)), float(QUANTA.index(at)))
        for load, at in zip(tied["load"], tied["quantum_s"], strict=True)
    }
    assert places
    assert hatched(figure) == places
    (contour,) = figure.axes[0].collections[1:]
    bounds = np.concatenate([path.vertices for path in contour.get_paths() if len(path.vertices)])[:, 0]
    assert ((bounds > 0) & (bounds < 2)).all()  # on both sides of the load at which they cross
    assert bounds.min() < 1 < bounds.max()


def test_relative_differences_are_in_per_cent_of_the_baseline() -> None:
    made = table()
    figure = made.plot.difference_map("slowdown", baseline="easy", x="load", y="quantum_s")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["bgs relative to easy", "gs relative to easy"]
    ratio = made.differences("slowdown", "policy", "easy", ratio=True).set_index(["load", "quantum_s", "policy"])["ratio"]
    assert float(texts(figure)[2, 0]) == pytest.approx(100 * (ratio[0.9, 60, "bgs"] - 1), abs=0.5)


def test_names_have_no_contour() -> None:
    figure = table(quanta=("short", "long")).plot.difference_map("slowdown", baseline="easy", x="load", y="quantum_s")
    assert len(figure.axes[0].collections) == 1


def test_winners_have_their_colours_and_ties_are_hatched() -> None:
    made = table()
    figure = made.plot.winners("slowdown", x="load", y="quantum_s")
    styles = policy_styles(list(SLOPES))
    lowest = made.lowest("slowdown")
    for row in lowest.to_dict("records"):
        place = sorted(LOADS).index(row["load"]), QUANTA.index(row["quantum_s"])
        (cell,) = [
            one for one in figure.axes[0].patches
            if not one.get_hatch() and (one.get_x() + 0.5, one.get_y() + 0.5) == place
        ]  # fmt: skip
        assert to_rgb(cell.get_facecolor()) == to_rgb(styles[row["lowest"]].colour)
        assert (place in hatched(figure)) == bool(row["tied"])
    assert set(lowest[lowest["load"] == 0.5]["lowest"]) == {"bgs"}
    assert set(lowest[lowest["load"] == 0.9]["lowest"]) == {"gs"}


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda plot: plot.heat_map("slowdown", x="load", y="load"), "y: 'load' is not allowed; a map has two different"),
        (lambda plot: plot.heat_map("slowdown", x="lod", y="policy"), "'lod' is no factor"),
        (lambda plot: plot.heat_map("slow", x="load", y="quantum_s"), "there is no column 'slow'"),
        (
            lambda plot: plot.winners("slowdown", x="load", y="policy", of="policy"),
            "y: 'policy' is the factor compared; it must be another one",
        ),
    ],
)
def test_what_cannot_be_mapped_is_refused(draw: object, said: str) -> None:
    with pytest.raises(SpecificationError, match=said):
        draw(table().plot)


def test_shares_of_capacity_sum_to_one_and_are_drawn_as_bars() -> None:
    study = Study(
        name="capacity",
        factors={"load": [0.5, 0.9], "policy": ["easy", "mbgs"]},
        scenario=lambda load, policy, seed: Scenario(
            machine=Machine(nodes=16, context_switch=ContextSwitch(fraction=0.1)), policy=policy,
            workload=synthetic_workload(jobs=30, nodes=16, load=load, seed=seed),
        ),
        replications=2,
    )  # fmt: skip
    made = study.run(workers=1)
    shares = account_shares(made.means(*SHARE_COLUMNS))
    assert list(shares) == list(ACCOUNT_COLOURS)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    figure = made.plot.capacity()
    bars = figure.axes[0].patches
    assert sum(bar.get_width() for bar in bars) == pytest.approx(4.0)
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["0.5, easy", "0.5, mbgs", "0.9, easy", "0.9, mbgs"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "context switch" in legend
    assert "checkpoint" not in legend


def scenario(switch: float, policy: str, seed: int) -> Scenario:
    machine = Machine(nodes=16, context_switch=ContextSwitch(fraction=switch))
    return Scenario(machine=machine, workload=synthetic_workload(jobs=25, nodes=16, seed=seed), policy=policy)


def test_a_crossover_shows_its_conclusion_and_its_differences(tmp_path: object) -> None:
    search = crossover(scenario, "switch", 0, 0.3, ["bgs", "bf"], "mean_response_s", step=0.1, replications=3, first_look=2)
    found = search.run(tmp_path, workers=1)
    with Store.read(tmp_path) as store:
        made = exhibits_of(search, store.table())
    assert made.problems == []
    assert list(made.tables) == ["crossing", "mean_response_s: bgs - bf"]
    assert made.tables["crossing"]["conclusion"].tolist() == [str(found)]
    pd.testing.assert_frame_equal(made.tables["mean_response_s: bgs - bf"], found.frame.rename_axis("switch"))
    (figure,) = made.figures.values()
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == list(found.differences)
    assert line.get_ydata().tolist() == [difference.mean for difference in found.differences.values()]
    assert crossover(scenario, "switch", 0, 0.3, ["bgs", "bf"], step=0.1, tables={}, figures={}).figures == {}


def test_a_map_of_two_policies_shows_winners_and_differences() -> None:
    def nothing(load: float, quantum_s: int, policy: str, seed: int) -> None:
        return None

    study = mapped(nothing, {"load": LOADS, "quantum_s": QUANTA}, ["easy", "bgs"], "mean_bounded_slowdown")
    made_up = table(("easy", "bgs"))
    frame = made_up.frame.rename(columns={"slowdown": "mean_bounded_slowdown"})
    made = exhibits_of(study, StudyTable(frame, made_up.factors, made_up.name))
    assert made.problems == []
    assert list(made.figures) == ["lowest mean_bounded_slowdown", "mean_bounded_slowdown: easy - bgs"]


def test_zero_has_the_lowest_colour_of_a_logarithmic_heat_map() -> None:
    made = table(("easy", "bgs"))
    made.frame.loc[made.frame["load"] == 0.5, "slowdown"] = 0.0
    figure = made.plot.heat_map("slowdown", x="load", y="quantum_s", policy="bgs", log=True, labels={"load": "offered load"})
    assert texts(figure)[0, 0] == "0"
    assert figure.axes[0].get_xlabel() == "offered load"


def test_the_limit_of_significance_is_in_the_legend() -> None:
    given = {"baseline": "easy", "x": "load", "y": "quantum_s", "policy": ["easy", "bgs"]}
    legend = table().plot.difference_map("slowdown", **given).legends[0].get_texts()
    assert [text.get_text() for text in legend] == ["not significant (95%)", "limit of significance, interpolated"]
    legend = table(quanta=("short", "long")).plot.difference_map("slowdown", **given).legends[0].get_texts()
    assert [text.get_text() for text in legend] == ["not significant (95%)"]


def test_a_map_with_one_winner_says_that_there_is_no_crossing() -> None:
    made = table(("easy", "bgs"))
    assert "no crossing" not in made.plot.winners("slowdown", x="load", y="quantum_s").axes[0].get_title()
    made = table(("easy", "bgs"))
    made.frame["slowdown"] += np.where(made.frame["policy"] == "easy", 10.0, 0.0)
    title = made.plot.winners("slowdown", x="load", y="quantum_s").axes[0].get_title()
    assert title == "lowest slowdown\nno crossing: bgs in all cells"
