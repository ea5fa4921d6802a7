"""The drawings of docs/drawings.py: what the papers' captions say happens in the tiny runs."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from clustermodel.ticks import TICKS_PER_SECOND

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "figures" / "drawings"


@pytest.fixture(scope="module")
def drawn() -> Any:
    specification = importlib.util.spec_from_file_location("drawings", DOCS / "drawings.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look there for the names of their fields' types
    specification.loader.exec_module(module)
    return module


def test_all_drawings_are_on_the_page(drawn: Any) -> None:
    page = (DOCS / "pictures.md").read_text()
    assert {path.stem for path in PICTURES.iterdir()} == set(drawn.DRAWINGS)
    for name in drawn.DRAWINGS:
        assert f"(figures/drawings/{name}.png)" in page


def test_one_drawing_by_the_command(drawn: Any, tmp_path: Path) -> None:
    drawn.main(["schedule", "--folder", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["schedule.png"]


def starts(result: Any) -> dict[int, float]:
    return dict(zip(result.jobs["job"].tolist(), result.jobs["start_s"].tolist(), strict=True))


def test_easy_backfills_by_both_criteria(drawn: Any) -> None:
    """Talby & Feitelson 1999, figure 2: job 4 starts when it arrives, and does not delay job 3, the first in the queue."""
    for jobs in (drawn.BY_SHADOW_TIME, drawn.ON_EXTRA_NODES):
        with_it, without = starts(drawn.play(4, jobs, "easy")), starts(drawn.play(4, jobs[:3], "easy"))
        assert with_it[4] == jobs[3][0]
        assert with_it[3] == without[3]
    shadow_time = 4
    by_shadow, on_extra = (
        drawn.play(4, jobs, "easy").jobs.set_index("job") for jobs in (drawn.BY_SHADOW_TIME, drawn.ON_EXTRA_NODES)
    )
    assert by_shadow["end_s"][4] <= shadow_time < on_extra["end_s"][4]


def test_the_profiles(drawn: Any) -> None:
    """Talby & Feitelson 1999, figures 3 to 5: EASY delays job 4; conservative delays no job."""
    fcfs, easy, conservative = (drawn.play(4, drawn.PROFILE, name) for name in ("fcfs", "easy", "conservative"))
    assert starts(easy)[3] == starts(fcfs)[3]
    assert starts(easy)[4] > starts(fcfs)[4]
    assert starts(easy)[5] == 2
    assert easy.jobs["end_s"].max() < fcfs.jobs["end_s"].max()
    assert starts(conservative)[5] == conservative.jobs["end_s"][3]


def test_the_cost_example(drawn: Any) -> None:
    """Talby & Feitelson 1999, section 4.1: four, two and four processor seconds."""
    titles = [axes.get_title() for axes in drawn.cost_example().axes]
    assert [title.rpartition(" ")[2] for title in titles[1:]] == ["4", "2", "4"]


def test_how_many_orders_there_are(drawn: Any) -> None:
    """Talby & Feitelson 1999, section 4.5: iterations at 0, 2, 5 and 6."""
    assert drawn.complexity_example().axes[0].get_title().endswith("6 at t = 0, 2 at t = 2, 1 at t = 5, 1 at t = 6")


def test_backfilling_fills_the_hole(drawn: Any) -> None:
    """Zhang et al. 2003, figure 4: job 5 fills the empty space while job 3 waits, and does not delay job 3."""
    fcfs, backfilling = (drawn.play(5, drawn.BACKFILLED, name) for name in ("fcfs", "bf"))
    assert starts(fcfs)[3] == fcfs.jobs.set_index("job")["end_s"][2] > fcfs.jobs.set_index("job")["end_s"][1]
    assert {job for job, start in starts(fcfs).items() if start != starts(backfilling)[job]} == {5}
    assert starts(backfilling)[5] < starts(backfilling)[3]


def test_the_matrix_is_the_papers(drawn: Any) -> None:
    """Zhang et al. 2003, figure 7, row by row; J4 and J5 are replicated in the last one."""
    moment = drawn.play(8, drawn.MATRIX, "gs", mpl=4).history.at(TICKS_PER_SECOND)
    rows = [[[cell.job for cell in cells if cell.columns >> column & 1] for column in range(8)] for cells in moment.rows]
    assert rows == [[[1]] * 8, [[2]] * 8, [[3]] * 4 + [[4]] * 2 + [[5]] * 2, [[6]] * 4 + [[4]] * 2 + [[5]] * 2]
    assert [[cell.job for cell in cells if cell.replica] for cells in moment.rows] == [[], [], [], [4, 5]]


@pytest.mark.parametrize(("jobs", "migrates", "stays"), [("FIRST_OPTION", 1, 4), ("SECOND_OPTION", 4, 1)])
def test_the_two_ways_to_migrate(drawn: Any, jobs: str, migrates: int, stays: int) -> None:
    """Zhang et al. 2003, figure 13: job 4 moves to the row of job 1, and one of the two goes to other columns."""
    result, at_s = drawn.migration(getattr(drawn, jobs))

    def home(when_s: float, job: int) -> tuple[int, int]:
        moment = result.history.at(round(when_s * TICKS_PER_SECOND))
        return next(
            (row, cell.columns)
            for row, cells in enumerate(moment.rows)
            for cell in cells
            if cell.job == job and not cell.replica
        )

    before, after = at_s - 1, at_s
    assert home(before, 4)[0] != home(before, 1)[0]
    assert home(after, 4)[0] == home(after, 1)[0] == home(before, 1)[0]
    assert home(before, 4)[1] & home(before, 1)[1]
    assert home(after, migrates)[1] != home(before, migrates)[1]
    assert home(after, stays)[1] == home(before, stays)[1]


def test_a_guaranteed_start(drawn: Any) -> None:
    """Perkovic & Keleher 2000, figure 1: guaranteed 7; starts at 2 if job A completes early, on the last three nodes."""
    assert starts(drawn.guaranteed_start(2))[5] == 7
    early = drawn.guaranteed_start(1)
    assert starts(early)[5] == 2
    assert early.jobs.set_index("job")["reserved_s"][5] == 7
    assert early.jobs.set_index("job")["nodes"][5] == 3


def test_an_underestimate(drawn: Any) -> None:
    """Yuan et al. 2010, section 3.2: four squares are wasted with estimates, six with the prediction."""
    by_estimate = drawn.play(5, drawn.THREE_JOBS, "easy")
    predicted = drawn.play(5, drawn.THREE_JOBS, drawn.FIRST_UNDERESTIMATED)
    assert (drawn.wasted_before_second(by_estimate), drawn.wasted_before_second(predicted)) == (4, 6)
    assert starts(by_estimate) == {1: 0, 2: 2, 3: 0}
    assert starts(predicted)[2] == 2
    assert starts(predicted)[3] > 2
    assert predicted.jobs.set_index("job")["reserved_s"][2] == 1


def test_an_underestimate_of_a_waiting_job(drawn: Any) -> None:
    """Yuan et al. 2010, section 3.2: job 5 takes six time units, not four, and delays job 2."""
    jobs = drawn.play(5, drawn.FIVE_JOBS, drawn.FIFTH_UNDERESTIMATED).jobs.set_index("job")
    assert (jobs["start_s"][5], jobs["end_s"][5]) == (0, 6)
    assert (jobs["reserved_s"][2], jobs["start_s"][2]) == (5, 6)
    assert starts(drawn.play(5, drawn.FIVE_JOBS, "easy"))[2] == 5
