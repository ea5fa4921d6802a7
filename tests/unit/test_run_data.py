"""Pictures of machines that are shared in time: what is drawn, read back from the figure."""

import io
from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import clustermodel as cm
from clustermodel.experiment.result import Result
from clustermodel.figures.capacity import IDLE_EMPTY, IDLE_WAITING, SHARES, WORK, capacity_shares
from clustermodel.figures.style import job_colour
from clustermodel.policies.interface import Decision, Place, Policy, Rows, Setup
from clustermodel.policies.view import Batch, View
from clustermodel.recording.ledger import Account
from clustermodel.ticks import to_seconds
from tests.conftest import refusal
from tests.timeline.timeline import play

Corners = tuple[float, float, float, float]
"""Left, right, bottom, top of a rectangle."""


def share(nodes: int, jobs: str, policy: str | Policy = "gs", *, history: bool = True, **machine: object) -> Result:
    """Run jobs given as lines ``id submit nodes run`` on a machine with slices of 10 s and two rows."""
    rows = (line.split() for line in jobs.strip().splitlines())
    workload = cm.Workload.from_jobs(
        cm.Job(id=int(number), submit_s=float(submit), nodes=int(size), run_s=float(run)) for number, submit, size, run in rows
    )
    sliced = cm.Machine(nodes=nodes, time_slicing=cm.TimeSlicing(quantum_s=10, mpl=2), **machine)
    return cm.Scenario(machine=sliced, workload=workload, policy=policy, history=history).run()


@pytest.fixture(scope="module")
def three() -> Result:
    """Four nodes, slices of 10 s.  1 in row 0 on 0-2, from 0 to 50; 2 in row 1 on 0-1, from 0 to 27; 3 on node 3, from 5 to 17,
    at home in row 0 and replicated in row 1.
    """
    return share(4, "1 0 3 30\n2 0 2 20\n3 5 1 12")


@pytest.fixture(scope="module")
def make() -> Callable[..., Result]:
    """Run sixty jobs on 16 nodes, with context switches and migrations that cost time."""
    runs: dict[tuple[str, str], Result] = {}

    def run(policy: str, fidelity: str = "fast") -> Result:
        if (policy, fidelity) not in runs:
            machine = cm.Machine(
                nodes=16,
                time_slicing=cm.TimeSlicing(quantum_s=600, mpl=2),
                context_switch=cm.ContextSwitch(fraction=0.05),
                checkpointing=cm.Checkpointing(checkpoint_s=5, restart_s=5),
            )
            workload = cm.synthetic_workload(jobs=60, nodes=16, load=1.5)
            scenario = cm.Scenario(machine=machine, workload=workload, policy=policy, history=True, fidelity=fidelity)
            runs[policy, fidelity] = scenario.run()
        return runs[policy, fidelity]

    return run


def gangs(axes: Axes) -> tuple[list[Corners], list[Corners]]:
    """Return the rectangles of gangs in their home rows, and those of replicas, which are hatched."""
    found: dict[bool, list[Corners]] = {False: [], True: []}
    for collection in axes.collections:
        if isinstance(collection, PolyCollection):
            boxes = (path.get_extents() for path in collection.get_paths())
            found[collection.get_hatch() is not None] = [
                tuple(round(float(edge), 9) for edge in (box.x0, box.x1, box.y0, box.y1)) for box in boxes
            ]
    return found[False], found[True]


def frames(axes: Axes) -> list[Corners]:
    """Return the frames around rows that run."""
    boxes = (patch.get_bbox() for patch in axes.patches if isinstance(patch, Rectangle) and not patch.get_fill())
    return [(box.x0, box.x1, box.y0, box.y1) for box in boxes]


def labels(axes: Axes) -> list[str]:
    return sorted(text.get_text() for text in axes.texts)


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def areas(corners: Iterable[Corners]) -> float:
    return sum((right - left) * (top - bottom) for left, right, bottom, top in corners)


def test_the_matrix_has_a_rectangle_for_each_gang_in_each_row_and_hatches_replicas(three: Result) -> None:
    figure = three.plot.matrix(8)
    axes = figure.axes[0]
    home, replicas = gangs(axes)
    # rows are drawn from top to bottom, column c from c - 0.5 to c + 0.5
    assert home == [(-0.5, 2.5, -0.46, 0.46), (2.5, 3.5, -0.46, 0.46), (-0.5, 1.5, 0.54, 1.46)]
    assert replicas == [(2.5, 3.5, 0.54, 1.46)]
    assert labels(axes) == ["1", "2", "3", "3"]
    assert axes.get_xlim() == (-0.5, 3.5)
    assert axes.get_ylim() == (1.5, -0.5)
    assert axes.get_title() == "gs on workload at 8 s: 3 jobs in the matrix, 0 waiting"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("column (node)", "row (time slice)")
    assert legend(figure) == ["gang in its home row", "replica in another row", "empty", "row that runs"]
    assert figure.legends[0].get_patches()[1].get_hatch() == "////"


@pytest.mark.parametrize(
    ("at_s", "row"), [(0, 0), (4.999999, 0), (5, 1), (14.999999, 1), (15, 0), (17, 1), (27, 0), (36.5, 0), (49.999999, 0)]
)
def test_the_row_that_runs_is_framed(three: Result, at_s: float, row: int) -> None:
    # the jobs submitted at 5 s and ended at 17 s and 27 s cut slices short
    assert frames(three.plot.matrix(at_s).axes[0]) == [(-0.5, 3.5, row - 0.5, row + 0.5)]
    axes = three.plot.matrix(50).axes[0]  # after the last end
    assert (gangs(axes), frames(axes)) == (([], []), [])
    assert axes.get_title() == "gs on workload at 50 s: 0 jobs in the matrix, 0 waiting"


def test_the_matrix_says_how_many_jobs_wait() -> None:
    # 2 takes row 1, so 3 and 4 find no room until 2 ends at 13 s: it runs from 10 s on
    result = share(2, "1 0 2 30\n2 0 2 3\n3 1 2 5\n4 1.5 1 5")
    titles = [result.plot.matrix(at_s).axes[0].get_title().partition(": ")[2] for at_s in (0.5, 1, 1.5)]
    assert titles == [f"2 jobs in the matrix, {waiting} waiting" for waiting in (0, 1, 2)]


def test_a_gang_whose_columns_are_apart_has_several_rectangles_in_one_colour() -> None:
    class Apart(Sliced):
        def columns(self, nodes: int) -> tuple[int, ...]:
            return (0, 1, 2, 1 + nodes)

    axes = share(5, "7 0 3 10", Apart()).plot.matrix(1).axes[0]
    assert gangs(axes)[0] == [(-0.5, 0.5, -0.46, 0.46), (1.5, 3.5, -0.46, 0.46)]
    colours = next(one for one in axes.collections if isinstance(one, PolyCollection)).get_facecolor()
    assert {tuple(colour[:3]) for colour in colours} == {job_colour(7)}


def test_a_job_has_one_colour_the_hue_of_its_bar_in_a_gantt_chart() -> None:
    assert len({job_colour(job) for job in range(18)}) == 18
    assert job_colour(3) == job_colour(21)
    red, green, blue = to_rgb("#E69F00")
    assert job_colour(1) == (red, green, blue)
    assert job_colour(7) == pytest.approx((0.6 * red, 0.6 * green, 0.6 * blue))
    assert job_colour(13) == pytest.approx((0.4 + 0.6 * red, 0.4 + 0.6 * green, 0.4 + 0.6 * blue))
    bar = play(1, "3 0 1 5", "fcfs").plot.gantt().axes[0].collections[0]
    assert to_hex(bar.get_facecolor()[0]) == to_hex(job_colour(3))


def test_as_many_rectangles_as_the_rows_have_runs_of_neighbouring_columns(make: Callable[..., Result]) -> None:
    result = make("mbgs")
    fullest = max(result.history.moments, key=lambda moment: sum(map(len, moment.rows)))
    drawn = gangs(result.plot.matrix(to_seconds(fullest.ticks)).axes[0])
    cells = [cell for row in fullest.rows for cell in row]
    for corners, replica in zip(drawn, (False, True), strict=True):
        runs = ((cell.columns & ~(cell.columns << 1)).bit_count() for cell in cells if cell.replica == replica)
        assert len(corners) == sum(runs)
    assert areas(drawn[0] + drawn[1]) == pytest.approx(0.92 * sum(cell.columns.bit_count() for cell in cells))


def test_the_timeline_has_a_rectangle_for_each_gang_in_each_slice(three: Result) -> None:
    figure = three.plot.slices(0, 50)
    axes = figure.axes[0]
    home, replicas = gangs(axes)
    assert home == [
        (0, 5, -0.5, 2.5),  # job 3 is submitted and cuts the slice short
        (5, 15, -0.5, 1.5),
        (15, 17, -0.5, 2.5),  # job 3 ends
        (15, 17, 2.5, 3.5),
        (17, 27, -0.5, 1.5),  # job 2 ends when the slice does
        (27, 37, -0.5, 2.5),
        (37, 47, -0.5, 2.5),
        (47, 50, -0.5, 2.5),
    ]
    assert replicas == [(5, 15, 2.5, 3.5)]
    assert axes.get_xlim() == (0, 50)
    assert axes.get_ylim() == (-0.5, 3.5)
    assert axes.get_title() == "gs on workload: 7 time slices of at most 10 s"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time (seconds)", "node")
    above = axes.child_axes[0]
    assert above.get_xlabel() == "row"
    assert [tick.get_text() for tick in above.get_xticklabels()] == ["0", "1", "0", "1", "0", "0", "0"]
    assert above.get_xticks().tolist() == [2.5, 10, 16, 22, 32, 42, 48.5]
    assert legend(figure)[2:] == ["slice begins", "slice begins at a scheduling event"]


def test_slice_boundaries_are_lines_and_those_at_scheduling_events_are_thicker(three: Result) -> None:
    quantum, event = (one for one in three.plot.slices(0, 50).axes[0].collections if isinstance(one, LineCollection))
    assert [segment[0][0] for segment in quantum.get_segments()] == [15, 37, 47]
    assert [segment[0][0] for segment in event.get_segments()] == [0, 5, 17, 27]
    assert quantum.get_linewidth()[0] < event.get_linewidth()[0]


def test_a_part_of_the_timeline_is_drawn_up_to_its_edges(three: Result) -> None:
    axes = three.plot.slices(10, 15.5).axes[0]
    home, replicas = gangs(axes)
    assert home == [(10, 15, -0.5, 1.5), (15, 15.5, -0.5, 2.5), (15, 15.5, 2.5, 3.5)]
    assert replicas == [(10, 15, 2.5, 3.5)]
    assert axes.get_xlim() == (10, 15.5)
    assert labels(axes) == ["1", "2", "3", "3"]
    assert axes.get_title() == "gs on workload: 2 time slices of at most 10 s"
    # a slice that ends where the timeline begins is not in it
    assert gangs(three.plot.slices(15, 17).axes[0])[0] == [(15, 17, -0.5, 2.5), (15, 17, 2.5, 3.5)]
    assert gangs(three.plot.slices(37, 47).axes[0])[0] == [(37, 47, -0.5, 2.5)]


@pytest.mark.parametrize("policy", ["gs", "bgs", "mgs", "mbgs"])
def test_what_is_drawn_is_all_that_the_ledger_does_not_call_idle(make: Callable[..., Result], policy: str) -> None:
    result = make(policy)
    start, end = to_seconds(result.ledger.start), to_seconds(result.ledger.end)
    home, replicas = gangs(result.plot.slices(start, end).axes[0])
    not_idle = (result.ledger.capacity - sum(result.ledger.amount(Account.IDLE))) / 1e6
    assert replicas
    assert areas(home + replicas) * 3600 == pytest.approx(not_idle, rel=1e-6)  # drawn in hours


@pytest.mark.parametrize("policy", ["gs", "mbgs"])
def test_slices_follow_one_another_none_is_longer_than_a_quantum(make: Callable[..., Result], policy: str) -> None:
    result = make(policy)
    history, ledger = result.history, result.ledger
    slices = list(history.slices(ledger.start, ledger.end, ledger.end))
    events = {moment.ticks for moment in history.moments}
    for turn, following in pairwise(slices):
        assert 0 < turn.end - turn.begin <= history.quantum
        assert turn.end <= following.begin
        assert turn.at_event == (turn.begin in events)
        assert turn.end - turn.begin == history.quantum or turn.end in events
    assert sum(turn.end - turn.begin for turn in slices) <= ledger.end - ledger.start
    for turn in slices:
        assert history.running_row(turn.begin) == history.running_row(turn.end - 1) == turn.row


def test_the_longest_timeline_is_drawn_and_a_longer_one_is_refused(three: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clustermodel.figures.gantt.MOST_RECTANGLES", 9)
    assert three.plot.slices(0, 50).axes
    monkeypatch.setattr("clustermodel.figures.gantt.MOST_RECTANGLES", 8)
    line = refusal(lambda: three.plot.slices(0, 50))
    assert line == "slices: more than 8 rectangles between first_s=0 and last_s=50 are too many to draw; choose a shorter time"


def stacked(figure: Figure) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return label -> lower and upper bounds of what is stacked."""
    data = {patch.get_label().partition(" (")[0]: patch.get_data() for patch in figure.axes[0].patches}
    return {label: (part.baseline, part.values) for label, part in data.items()}


def test_capacity_by_hand(three: Result) -> None:
    figure = three.plot.capacity(bins=50)
    parts = stacked(figure)
    assert list(parts) == [WORK, IDLE_EMPTY]
    # from 5 s to 17 s row 1, in which a node is empty, runs for 10 s and row 0, which is full, for 2 s
    work = [15 / 20] * 5 + [38 / 48] * 12 + [20 / 40] * 10 + [69 / 92] * 23
    assert parts[WORK][0].tolist() == [0] * 50
    assert parts[WORK][1].tolist() == pytest.approx(work)
    assert parts[IDLE_EMPTY][0].tolist() == pytest.approx(work)
    assert parts[IDLE_EMPTY][1].tolist() == pytest.approx([1] * 50)
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time since the first submission (seconds)", "node time / capacity")
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, 50), (0, 1))
    assert legend(figure) == ["idle, queue empty (29.00%)", "work (71.00%)"]
    assert figure.get_suptitle() == "gs on workload: capacity of 4 nodes, means over 50 equal intervals"


@pytest.mark.parametrize("bins", [1, 7, 200])
@pytest.mark.parametrize(
    ("policy", "fidelity"),
    [("gs", "fast"), ("bgs", "fast"), ("mgs", "fast"), ("mbgs", "fast"), ("mbgs", "node"), ("easy", "fast"), ("fcfs", "fast")],
)
def test_shares_add_up_to_one_and_over_the_run_to_the_ledger(
    make: Callable[..., Result], policy: str, fidelity: str, bins: int
) -> None:
    result = make(policy, fidelity)
    ledger = result.ledger
    edges, shares = capacity_shares(result, bins)
    assert edges[-1] == pytest.approx(result.summary().horizon_s)
    assert np.abs(shares.sum(axis=0) - 1).max() < 1e-9
    assert shares.min() > -1e-12
    idle = ledger.amount(Account.IDLE)
    totals = {account.value: sum(ledger.amount(account)) for account in Account}
    totals[WORK] = totals["useful"] + totals["lost"]
    totals |= {IDLE_WAITING: idle.job_waiting, IDLE_EMPTY: idle.queue_empty}
    assert shares.mean(axis=1) == pytest.approx([totals[name] / ledger.capacity for name in SHARES], rel=1e-9, abs=1e-12)
    drawn = stacked(result.plot.capacity(bins=bins))
    assert list(drawn) == [name for name in SHARES if totals[name]]
    assert np.abs(list(drawn.values())[-1][1] - 1).max() < 1e-9
    for (_, top), (below, _) in pairwise(drawn.values()):
        assert below.tolist() == top.tolist()


def test_work_that_is_lost_is_work() -> None:
    class Impatient(Sliced):
        def decide(self, batch: Batch, view: View) -> list[Decision]:
            if batch.alarm:
                return [cm.Kill(job=gang.job) for gang in view.running.values()]
            decisions = super().decide(batch, view)
            return [*decisions, cm.WakeAt(time=view.now + 25_000_000)] if decisions else []

    result = share(2, "1 0 1 100", Impatient())
    assert result.ledger.amount(Account.LOST).queue_empty == 25_000_000
    assert stacked(result.plot.capacity(bins=5))[WORK][1].tolist() == pytest.approx([0.5] * 5)


def test_without_a_matrix_capacity_needs_no_history() -> None:
    # four nodes: 2 busy until 2 s, 4 until 10, 2 until 20, 4 until 25, 1 until 41; a job waits from 2 s to 25 s
    result = play(4, "1 0 2 20\n2 0 4 5\n3 2 2 8\n4 4 1 16", "easy")
    parts = stacked(result.plot.capacity(bins=41))
    assert parts[WORK][1] == pytest.approx(result.plot.utilization(bins=41).axes[0].patches[0].get_data().values)
    assert list(parts) == [WORK, IDLE_WAITING, IDLE_EMPTY]
    waiting = parts[IDLE_WAITING][1] - parts[IDLE_WAITING][0]
    assert waiting.tolist() == pytest.approx([0.5] * 2 + [0] * 8 + [0.5] * 10 + [0] * 21)


class Sliced:
    """A policy that starts every job in row 0 as soon as it sees it."""

    name = "sliced"

    def start(self, setup: Setup) -> object:
        return self

    def columns(self, nodes: int) -> tuple[int, ...]:
        return (0, nodes)

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        return [Rows(places=tuple(Place(job, self.columns(job.nodes), (0,)) for job in view.waiting.values()))]


class OnAlarm(Sliced):
    """The same, when its alarm rings, every 7 s."""

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        alarm = [cm.WakeAt(time=view.now + 7_000_000)] if batch.alarm or not view.now else []
        return [*super().decide(batch, view), *alarm] if batch.alarm else alarm


def test_time_before_the_first_start_and_alarms_while_nothing_runs() -> None:
    # alarms at 7, 14, ..., 42 s: 1 waits until 7 and ends at 17, 2 is submitted at 33, waits until 35 and ends at 45
    result = share(4, "1 0 4 10\n2 33 4 10", OnAlarm())
    assert result.jobs["start_s"].tolist() == [7, 35]
    parts = stacked(result.plot.capacity(bins=45))
    work = parts[WORK][1]
    waiting = parts[IDLE_WAITING][1] - parts[IDLE_WAITING][0]
    empty = parts[IDLE_EMPTY][1] - parts[IDLE_EMPTY][0]
    assert work.tolist() == pytest.approx([0] * 7 + [1] * 10 + [0] * 18 + [1] * 10)
    assert waiting.tolist() == pytest.approx([1] * 7 + [0] * 26 + [1] * 2 + [0] * 10)
    assert empty.tolist() == pytest.approx([0] * 17 + [1] * 16 + [0] * 12)
    for at_s in (3, 20):
        axes = result.plot.matrix(at_s).axes[0]
        assert gangs(axes) == ([], [])
        assert frames(axes) == []
    with pytest.raises(cm.SpecificationError, match=r"^slices: nothing ran between first_s=18 and last_s=30$"):
        result.plot.slices(18, 30)
    assert gangs(result.plot.slices(3, 10).axes[0])[0] == [(7, 10, -0.5, 3.5)]


def messages(result: Result) -> list[str]:
    return [refusal(draw) for draw in (lambda: result.plot.matrix(1), lambda: result.plot.slices(1, 2), result.plot.capacity)]


def test_without_history_the_pictures_say_how_to_keep_it() -> None:
    result = share(4, "1 0 3 30", history=False)
    assert set(messages(result)) == {"history: it is not kept; run Scenario(..., history=True)"}


def test_space_sharing_has_no_matrix() -> None:
    result = share(4, "1 0 3 30", "easy")
    for draw in (lambda: result.plot.matrix(1), lambda: result.plot.slices(1, 2)):
        assert refusal(draw) == "history: easy does not share nodes in time; there is no matrix to show"
    assert result.plot.capacity().axes


def test_a_run_in_which_nothing_ran_has_no_pictures() -> None:
    names = ("matrix", "slices", "capacity")
    assert messages(share(2, "1 0 3 10")) == [f"{name}: no job ran; there is nothing to draw" for name in names]


SECONDS = "it must be a finite number of seconds >= 0 and <= 1e+10"


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("matrix", (-1,), f"at_s: -1 is not allowed; {SECONDS}"),
        ("matrix", (51,), "at_s: 51.0 is not allowed; it must lie in the run, from 0 s to 50 s"),
        ("matrix", ("noon",), f"at_s: 'noon' is not a number; {SECONDS}"),
        ("slices", (51, 52), "first_s: 51.0 is not allowed; it must lie in the run, from 0 s to 50 s"),
        ("slices", (0, 50.5), "last_s: 50.5 is not allowed; it must lie in the run, from 0 s to 50 s"),
        ("slices", (20, 20), "last_s: 20 is not allowed; it must be > first_s, 20"),
        ("slices", (20, 10), "last_s: 10 is not allowed; it must be > first_s, 20"),
        ("capacity", (0,), "bins: 0 is not allowed; it must be an integer >= 1"),
        ("capacity", (2.5,), "bins: 2.5 is not a whole number; it must be an integer >= 1"),
        ("gantt", (), "gs shares nodes in time, so bars would hide each other; draw slices(first_s, last_s) instead"),
    ],
)
def test_what_cannot_be_drawn_is_refused(three: Result, name: str, arguments: tuple[float, ...], message: str) -> None:
    draw = getattr(three.plot, name)
    assert refusal(lambda: draw(bins=arguments[0]) if name == "capacity" else draw(*arguments)) == f"{name}: {message}"


def test_the_pictures_can_be_saved_without_a_warning(make: Callable[..., Result]) -> None:
    result = make("mbgs")
    middle = to_seconds((result.ledger.start + result.ledger.end) // 3)
    for figure in (result.plot.matrix(middle), result.plot.slices(middle, middle + 7200), result.plot.capacity()):
        for suffix in ("png", "svg", "pdf"):
            figure.savefig(io.BytesIO(), format=suffix)
