"""The phi model, workload models and their JSON, fitting to a trace; blue-pacific against Zhang et al. 2003."""

import json
from collections.abc import Callable
from dataclasses import replace
from math import nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

import clustermodel as cm
from clustermodel.ticks import to_ticks
from clustermodel.validation import LONGEST_S
from clustermodel.workload.model import RUN_TIME_FACTORS, SizeClass
from clustermodel.workload.phi import phi_factors
from clustermodel.workload.shipped import shipped_models
from tests.conftest import refusal
from tests.property.strategies import cases
from tests.shared_data import trace_path

STEADY = cm.HyperErlang(order=4, p=1, stage_s=(25.0, 25.0))
UNEVEN = cm.HyperErlang(order=1, p=0.25, stage_s=(300.0, 100.0))


def size_class(**changes: Any) -> SizeClass:
    fields: dict[str, Any] = {"largest": 8, "sizes": (5, 8), "weights": (1, 3), "interarrival": UNEVEN, "run_time": STEADY}
    return SizeClass(**{**fields, **changes})


SMALL = size_class(largest=1, sizes=(1,), weights=(1,))
MODEL = cm.WorkloadModel(name="two classes", source="made by hand", nodes=10, classes=(SMALL, size_class()), notes=("a note",))


@pytest.fixture(scope="module")
def pacific() -> cm.WorkloadModel:
    return cm.load_model("blue-pacific")


@pytest.mark.parametrize("phi", [0.0, 0.2, 0.7])
def test_a_fraction_phi_is_exact_and_the_rest_uniform(phi: float) -> None:
    factors = phi_factors(np.random.default_rng(1), 100_000, phi)
    assert factors.min() >= 1
    exact = float(np.mean(factors == 1))
    assert exact == pytest.approx(phi, abs=2.576 * sqrt(phi * (1 - phi) / len(factors)))
    assert kstest(1 / factors[factors > 1], "uniform").pvalue > 0.01


def test_with_phi_one_every_estimate_is_exact() -> None:
    assert (phi_factors(np.random.default_rng(1), 1000, 1) == 1).all()
    workload = cm.synthetic_workload(jobs=500).with_phi_estimates(phi=1)
    assert (workload.column("estimate") == workload.column("run")).all()


@pytest.mark.parametrize("phi", [-0.1, 1.1, nan, "x", True, None])
def test_phi_out_of_range_is_refused(phi: Any) -> None:
    for call in (
        lambda: phi_factors(np.random.default_rng(1), 3, phi),
        lambda: cm.synthetic_workload(jobs=5).with_phi_estimates(phi=phi),
        lambda: MODEL.generate(jobs=5, phi=phi),
    ):
        assert refusal(call) == f"phi: {phi!r} is not allowed; it must be a number >= 0 and <= 1"


def test_phi_estimates_change_nothing_but_the_estimates() -> None:
    before = cm.synthetic_workload(jobs=2000)
    after = before.with_phi_estimates(phi=0.5, seed=3)
    run, estimate = after.column("run"), after.column("estimate")
    assert [row._replace(estimate=0) for row in after.rows()] == [row._replace(estimate=0) for row in before.rows()]
    assert (estimate >= run).all()
    assert np.mean(estimate == run) == pytest.approx(0.5, abs=2.576 * sqrt(0.25 / 2000))
    assert after.provenance.options["estimates"] == "phi model, phi=0.5, seed=3"
    assert list(before.with_phi_estimates(phi=0.5, seed=3).rows()) == list(after.rows())
    assert list(before.with_phi_estimates(phi=0.5, seed=4).rows()) != list(after.rows())


def test_an_estimate_is_cut_at_the_longest_time_but_never_below_the_run_time() -> None:
    jobs = [cm.Job(id=n, nodes=1, submit_s=0, run_s=LONGEST_S / 2) for n in range(1, 1001)]
    estimate = cm.Workload.from_jobs(jobs).with_phi_estimates(phi=0).column("estimate")
    assert estimate.max() == to_ticks(LONGEST_S)
    assert np.mean(estimate == to_ticks(LONGEST_S)) == pytest.approx(0.5, abs=0.05)
    longer = cm.Workload.from_jobs(jobs).scaled(cm.LoadScale(run_time=4))
    assert (longer.with_phi_estimates(phi=0).column("estimate") == longer.column("run")).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"largest": 6}, "SizeClass.largest: 6 is not allowed; it must be a power of two"),
        ({"sizes": (4, 8)}, "SizeClass 5-8: sizes: 4, 8 is not allowed; it must be one or more different sizes from 5 to 8, "
         "rising"),
        ({"sizes": (8, 5)}, "SizeClass 5-8: sizes: 8, 5 is not allowed; it must be one or more different sizes from 5 to 8, "
         "rising"),
        ({"sizes": ()}, "SizeClass 5-8: sizes:  is not allowed; it must be one or more different sizes from 5 to 8, rising"),
        ({"sizes": (5, 5.5)}, "SizeClass 5-8: sizes: 5.5 is not a whole number; it must be an integer"),
        ({"weights": (1,)}, "SizeClass 5-8: weights: 1 are given for 2 sizes"),
        ({"weights": (1, 0)}, "SizeClass 5-8: weights: 0 is not allowed; it must be a number >= 1e-9 and <= 1e15"),
        ({"weights": (1, nan)}, "SizeClass 5-8: weights: nan is not allowed; it must be a number >= 1e-9 and <= 1e15"),
        ({"run_time": 5}, "SizeClass 5-8: run_time: it must be a HyperErlang(...)"),
    ],
)  # fmt: skip
def test_a_size_class_that_cannot_be_is_refused_by_field(changes: dict[str, Any], message: str) -> None:
    assert refusal(lambda: size_class(**changes)) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "WorkloadModel.name: '' is not allowed; it must be a line of text"),
        ({"source": "a\nb"}, "WorkloadModel.source: 'a\\nb' is not allowed; it must be a line of text"),
        ({"notes": (3,)}, "WorkloadModel.notes: 3 is not allowed; it must be a line of text"),
        ({"nodes": 0}, "WorkloadModel.nodes: 0 is not allowed; it must be an integer >= 1"),
        ({"nodes": 7}, "WorkloadModel.classes: a size of 8 is not allowed; the machine has 7 nodes"),
        ({"classes": ()}, "WorkloadModel.classes: it must be one or more SizeClass(...)"),
        ({"classes": (size_class(), SMALL)}, "WorkloadModel.classes: upper bounds 8, 1 are not allowed; they must rise"),
    ],
)
def test_a_model_that_cannot_be_is_refused_by_field(changes: dict[str, Any], message: str) -> None:
    assert refusal(lambda: replace(MODEL, **changes)) == message


def test_what_a_model_expects() -> None:
    # Interarrival times of both classes: 0.25 x 300 + 0.75 x 100 = 150 s.  Sizes 1 and (5 + 3 x 8) / 4 = 7.25, run time 100 s.
    assert MODEL.classes[1].label == "5-8"
    assert MODEL.shares == (0.5, 0.5)
    assert MODEL.offered_load == pytest.approx((1 + 7.25) * 100 / 150 / 10)


def test_jobs_are_numbered_in_order_of_submission_from_zero() -> None:
    workload = MODEL.generate(jobs=3000, seed=5)
    assert workload.column("id").tolist() == list(range(1, 3001))
    assert workload.column("submit")[0] == 0
    assert (np.diff(workload.column("submit")) >= 0).all()
    assert set(workload.column("nodes").tolist()) == {1, 5, 8}
    assert workload.column("run").min() >= 1
    assert (workload.name, workload.machine_nodes) == ("two classes", 10)
    assert workload.provenance.source == "model two classes (made by hand)"
    assert workload.provenance.options["jobs"] == 3000
    assert list(MODEL.generate(jobs=3000, seed=5).rows()) == list(workload.rows())
    assert list(MODEL.generate(jobs=3000, seed=6).rows()) != list(workload.rows())
    assert len(MODEL.generate(jobs=1)) == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_jobs_have_the_expected_shares_rates_and_run_times(seed: int) -> None:
    workload = MODEL.generate(jobs=40_000, seed=seed, match_load=False)
    nodes, run = workload.column("nodes"), workload.seconds("run")
    # Renewal theory: in a long time the number of jobs of a class varies by CV^2 jobs per job expected.
    assert np.mean(nodes == 1) == pytest.approx(0.5, abs=2.576 * UNEVEN.cv * 0.5 / sqrt(40_000))
    assert np.mean(nodes[nodes > 1] == 8) == pytest.approx(0.75, abs=2.576 * sqrt(0.75 * 0.25 / 20_000))
    assert np.mean(run) == pytest.approx(100, abs=2.576 * 50 / sqrt(40_000))
    gaps = np.diff(workload.seconds("submit")[nodes == 1])
    assert np.mean(gaps) == pytest.approx(150, abs=2.576 * np.std(gaps) / sqrt(len(gaps)))
    assert np.std(gaps) / np.mean(gaps) == pytest.approx(UNEVEN.cv, rel=0.05)


def test_streams_come_at_their_rates_from_the_start() -> None:
    # A very uneven stream that began afresh would open with a burst: (CV^2 - 1) / 2 jobs too many, 18 of 50 here.
    uneven = replace(MODEL, classes=(replace(SMALL, interarrival=cm.HyperErlang.from_mean(150, 6)), size_class()))
    counts = [int((uneven.generate(jobs=100, seed=seed).column("nodes") == 1).sum()) for seed in range(300)]
    assert np.mean(counts) == pytest.approx(50, abs=2.576 * np.std(counts) / sqrt(300) + 2)


def test_one_seed_gives_the_same_jobs_for_every_factor_and_phi() -> None:
    base = MODEL.generate(jobs=2000, seed=4)
    for factor in RUN_TIME_FACTORS:
        scaled = MODEL.generate(jobs=2000, seed=4, run_time_factor=factor)
        assert list(scaled.rows()) == list(base.scaled(cm.LoadScale(run_time=factor)).rows())
        assert scaled.column("submit").tolist() == base.column("submit").tolist()
        assert scaled.column("nodes").tolist() == base.column("nodes").tolist()
        assert (scaled.column("run") == np.maximum(1, np.rint(base.column("run") * factor))).all()
        assert scaled.name == ("two classes" if factor == 1 else f"two classes x{factor}")
    sparse = MODEL.generate(jobs=2000, seed=4, phi=0.5).scaled(cm.LoadScale(interarrival=2))
    assert sparse.column("submit").tolist() == (2 * base.column("submit")).tolist()
    assert sparse.column("run").tolist() == base.column("run").tolist()
    assert np.mean(sparse.column("estimate") == sparse.column("run")) == pytest.approx(0.5, abs=2.576 * sqrt(0.25 / 2000))
    assert list(base.with_phi_estimates(phi=0.5, seed=4).rows()) == list(MODEL.generate(jobs=2000, seed=4, phi=0.5).rows())


@pytest.mark.parametrize(
    ("argument", "value"), [("jobs", 0), ("jobs", 1.5), ("seed", -1), ("run_time_factor", 0), ("run_time_factor", nan)]
)
def test_an_argument_out_of_range_is_named(argument: str, value: Any) -> None:
    with pytest.raises(cm.SpecificationError, match=argument.removesuffix("_factor")):
        MODEL.generate(**{argument: value})


def test_streams_too_long_for_the_clock_are_refused() -> None:
    slow = replace(MODEL, classes=(replace(SMALL, interarrival=cm.HyperErlang(order=1, p=1, stage_s=(1e10, 1e10))),))
    with pytest.raises(cm.SpecificationError, match=r"two classes: 10,000 jobs take .* s to arrive, too long for 64-bit ticks"):
        slow.generate()
    long = replace(MODEL, classes=(replace(SMALL, run_time=cm.HyperErlang(order=900, p=1, stage_s=(1e10, 1e10))),))
    assert long.generate(jobs=10).column("run").tolist() == [to_ticks(LONGEST_S)] * 10


def test_a_model_goes_into_json_and_comes_out_the_same(pacific: cm.WorkloadModel) -> None:
    for model in (MODEL, pacific, cm.fit_model(cm.synthetic_workload(jobs=2000))):
        assert cm.WorkloadModel.from_json(model.to_json()) == model
        assert list(cm.WorkloadModel.from_json(model.to_json()).generate(jobs=50).rows()) == list(
            model.generate(jobs=50).rows()
        )


NO_SIZES = "is not allowed; it must be a table with the weight of each size"


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    data = json.loads(MODEL.to_json())
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("format"), "format: it must be 'clustermodel workload model'; is this a file of `clustermodel trace "
         "fit`?"),
        (lambda m: m.update(version=2), "version: 2 is not known; this program reads 1"),
        (lambda m: m.update(version=True), "version: True is not known; this program reads 1"),
        (lambda m: m.pop("nodes"), "nodes: is missing"),
        (lambda m: m.update(node=3), "node: unknown key (did you mean 'nodes'?); known are name, source, "
         "nodes, classes, notes"),
        (lambda m: m.update(nodes="many"), "nodes: 'many' is not a whole number; it must be an integer >= 1"),
        (lambda m: m.update(name="\ud800"), "name: '\\ud800' is not allowed; it must be a line of text"),
        (lambda m: m.update(name=None), "name: None is not allowed; it must be a line of text"),
        (lambda m: m.update(notes="x"), "notes: 'x' is not allowed; it must be a list"),
        (lambda m: m.update(classes={}), "classes: {} is not allowed; it must be a list"),
        (lambda m: m.update(classes=[]), "classes: it must be one or more SizeClass(...)"),
        (lambda m: m["classes"].append(3), "classes[2]: 3 is not allowed; it must be a table with largest, sizes, interarrival "
         "and run_time"),
        (lambda m: m["classes"][1].pop("sizes"), "classes[1].sizes: is missing"),
        (lambda m: m["classes"][1].update(sizes=[5]), f"classes[1].sizes: [5] {NO_SIZES}"),
        (lambda m: m["classes"][1].update(sizes={"-5": 1}), f"classes[1].sizes: {{'-5': 1}} {NO_SIZES}"),
        (lambda m: m["classes"][1].update(sizes={"9" * 5000: 1}), None),
        (lambda m: m["classes"][1]["sizes"].update({"8": -3}), "classes[1]: SizeClass 5-8: weights: -3 is not allowed; it must "
         "be a number >= 1e-9 and <= 1e15"),
        (lambda m: m["classes"][1].update(largest=-8), "classes[1].largest: -8 is not allowed; it must be an integer >= 1"),
        (lambda m: m["classes"][1].update(run_time=None), "classes[1].run_time: is missing"),
        (lambda m: m["classes"][0]["run_time"].pop("p"), "classes[0].run_time.p: is missing"),
        (lambda m: m["classes"][0]["run_time"].update(q=1), "classes[0].run_time.q: unknown key; known are order, p, stage_s"),
        (lambda m: m["classes"][0]["run_time"].update(p=nan), "classes[0].run_time.p: nan is not allowed; it must be a number "
         "> 0 and <= 1"),
        (lambda m: m["classes"][0]["run_time"].update(order="1"), "classes[0].run_time.order: '1' is not a whole number; it "
         "must be an integer >= 1"),
        (lambda m: m["classes"][0]["interarrival"].update(stage_s=[1, 10**400]), None),
    ],
)  # fmt: skip
def test_json_that_is_no_model_is_refused_by_file_and_field(change: Callable[[dict[str, Any]], object], message: str) -> None:
    said = refusal(lambda: cm.WorkloadModel.from_json(edited(change), file="m.json"))
    assert said.startswith("m.json: ")
    assert "\n" not in said
    assert message is None or said == f"m.json: {message}"


@pytest.mark.parametrize("text", ["", "[1, 2", "3", "null", "[]", '"x"', "[" * 100_000, "9" * 5000, "{} {}"])
def test_text_that_is_not_a_json_object_is_refused(text: str) -> None:
    with pytest.raises(cm.SpecificationError, match=r"^m\.json:[0-9]*:? ?(not JSON|format): "):
        cm.WorkloadModel.from_json(text, file="m.json")


def test_models_are_loaded_by_name_or_from_a_file(tmp_path: Path, pacific: cm.WorkloadModel) -> None:
    path = tmp_path / "m.json"
    path.write_text(MODEL.to_json())
    assert cm.load_model(path) == cm.load_model(str(path)) == MODEL
    assert "blue-pacific" in shipped_models()
    assert pacific.name == "blue-pacific"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(cm.SpecificationError, match=r"cannot be read: .*utf-8"):
        cm.load_model(path)
    with pytest.raises(cm.SpecificationError, match="cannot be read: Is a directory"):
        cm.load_model(tmp_path)
    assert refusal(lambda: cm.load_model("blue-pacfic")) == (
        "model: 'blue-pacfic' is neither a file nor a shipped model (did you mean 'blue-pacific'?); shipped are blue-pacific, "
        "blue-pacific-2"
    )


def test_a_fit_has_the_rates_sizes_and_moments_of_the_trace() -> None:
    workload = cm.synthetic_workload(jobs=5000)
    model = cm.fit_model(workload)
    assert (model.name, model.nodes, model.notes) == ("synthetic-1", 128, ())
    assert [one.label for one in model.classes] == ["1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65-128"]
    nodes, run = workload.column("nodes"), workload.seconds("run")
    mean_gap = workload.span_s / (len(workload) - 1)
    for one, share in zip(model.classes, model.shares, strict=True):
        mine = (nodes >= one.smallest) & (nodes <= one.largest)
        assert dict(zip(one.sizes, one.weights, strict=True)) == {n: (nodes == n).sum() for n in set(nodes[mine].tolist())}
        assert share == pytest.approx(np.mean(mine))
        assert one.interarrival.mean_s == pytest.approx(mean_gap / np.mean(mine))
        assert one.run_time.moments() == pytest.approx([np.mean(run[mine] ** k) for k in (1, 2, 3)])
        gaps = np.diff(workload.seconds("submit")[mine])
        gaps = np.append(gaps, len(workload) * mean_gap - gaps.sum())
        assert one.interarrival.moments() == pytest.approx([np.mean(gaps**k) for k in (1, 2, 3)])
    # in the model, sizes and run times within a class do not depend on each other
    assert model.offered_load == pytest.approx(workload.offered_load(128, kill_at_estimate=False), rel=0.03)


def jobs(*given: tuple[float, int, float]) -> cm.Workload:
    """Jobs are (submit_s, nodes, run_s)."""
    made = [cm.Job(id=n, submit_s=s, nodes=size, run_s=run) for n, (s, size, run) in enumerate(given, 1)]
    return cm.Workload.from_jobs(made, name="few", machine_nodes=8)


def test_times_without_a_fit_are_replaced_and_noted() -> None:
    model = cm.fit_model(
        jobs((0, 1, 50), (10, 1, 50), (30, 2, 7), (60, 4, 5), (60, 4, 5), (60, 4, 5.01), (75, 9, 1), (80, 0, 1))
    )
    # period: 60 s and a mean gap of 12 s more
    one, two, four = model.classes
    assert (one.run_time.order, one.run_time.mean_s) == (1000, pytest.approx(50))
    assert (two.interarrival.order, two.interarrival.mean_s, two.interarrival.cv) == (1, pytest.approx(72), pytest.approx(1))
    assert (two.run_time.order, two.run_time.mean_s) == (1, pytest.approx(7))
    assert (four.interarrival.mean_s, four.interarrival.cv) == (pytest.approx(24), pytest.approx(sqrt(2)))
    assert model.notes == (
        "2 jobs left out: not of 1 to 8 nodes",
        "class 1 run time: moments 50 s, 2500 s^2, 125000 s^3 admit no fit: m2 is not above m1^2, as of times that do not "
        "vary; Erlang of order 1000 with that mean and a CV of 0.0316 (trace: 0) used instead",
        "class 2 interarrival: a single time of 72 s; exponential with that mean used instead",
        "class 2 run time: a single time of 7 s; exponential with that mean used instead",
        "class 3-4 interarrival: moments 24 s, 1728 s^2, 124416 s^3 admit no fit: m1 m3 is not above m2^2, as of times that "
        "are zero or one value; hyper-exponential with that mean and a CV of 1.41 (trace: 1.41) used instead",
        "class 3-4 run time: moments 5.00333 s, 25.0334 s^2, 125.251 s^3 admit no fit of an order up to 1,000 (CV 0.000942, "
        "m1 m3 / m2^2 = 1); Erlang of order 1000 with that mean and a CV of 0.0316 (trace: 0.000942) used instead",
    )
    assert cm.WorkloadModel.from_json(model.to_json()) == model
    assert len(model.generate(jobs=100)) == 100


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (jobs((0, 1, 50)), "few: 1 job of 1 to 8 nodes, submitted at one instant, give no interarrival time to fit a model to"),
        (jobs((3, 1, 50), (3, 2, 9)), "few: 2 jobs of 1 to 8 nodes, submitted at one instant, give no interarrival time to fit "
         "a model to"),
        (jobs((3, 9, 50), (4, 9, 9)), "few: 0 jobs of 1 to 8 nodes, submitted at one instant, give no interarrival time to fit "
         "a model to"),
        (cm.Workload.from_jobs([cm.Job(id=1, submit_s=0, nodes=1, run_s=1)], name="few"), "nodes: few does not say how large "
         "its machine is; give the machine's size"),
    ],
)  # fmt: skip
def test_a_workload_that_cannot_be_fitted_is_refused(workload: cm.Workload, message: str) -> None:
    assert refusal(lambda: cm.fit_model(workload)) == message


def test_jobs_drawn_from_the_fit_of_a_real_trace_are_like_it() -> None:
    kth = cm.read_swf(trace_path("KTH-SP2-1996-2.2"))
    model = cm.fit_model(kth)
    assert [sum(one.weights) for one in model.classes] == [9368, 3823, 4328, 4559, 3788, 1453, 839, 323]
    assert not model.notes
    drawn = model.generate(jobs=len(kth))
    nodes, run = drawn.column("nodes"), drawn.seconds("run")
    assert nodes.max() <= 100
    for one, share in zip(model.classes, model.shares, strict=True):
        mine = (nodes >= one.smallest) & (nodes <= one.largest)
        expected = share * len(kth)
        # the number of jobs of the class, and that of all others, vary by CV^2 jobs per job expected
        assert mine.sum() == pytest.approx(expected, abs=2.576 * sqrt(expected) * (one.interarrival.cv + sqrt(share) * 3))
        assert np.mean(run[mine]) == pytest.approx(one.run_time.mean_s, abs=2.576 * np.std(run[mine]) / sqrt(mine.sum()))
        gaps = np.diff(drawn.seconds("submit")[mine])
        assert np.mean(gaps) == pytest.approx(one.interarrival.mean_s, abs=2.576 * np.std(gaps) / sqrt(len(gaps)))
    assert drawn.span_s == pytest.approx(kth.span_s, rel=0.05)


@pytest.mark.parametrize(("name", "median_s"), [("blue-pacific", 680), ("blue-pacific-2", 680 / 1.5)])
def test_blue_pacific_expects_what_zhang_et_al_publish(name: str, median_s: float) -> None:
    pacific = cm.load_model(name)
    assert pacific.nodes == 320
    assert pacific.offered_load == pytest.approx(0.55, abs=1e-4)
    assert (pacific.classes[0].sizes[0], pacific.classes[-1].sizes[-1]) == (1, 256)
    work = [share * one.mean_nodes * one.run_time.mean_s for share, one in zip(pacific.shares, pacific.classes, strict=True)]
    assert sum(pacific.shares[6:]) == pytest.approx(0.30, abs=1e-4)  # over 32 nodes
    assert sum(work[6:]) / sum(work) > 0.82
    below = sum(share * one.run_time.cdf(median_s) for share, one in zip(pacific.shares, pacific.classes, strict=True))
    assert below == pytest.approx(0.5, abs=1e-4)
    for one in pacific.classes:
        assert one.interarrival.cv > 1
        assert one.run_time.cv > 1
    means = [one.run_time.mean_s for one in pacific.classes]
    assert means == sorted(means)


def test_the_second_calibration_has_nearly_the_smallest_third_moment_and_a_third_of_short_jobs() -> None:
    ratios = {}
    for name in ("blue-pacific", "blue-pacific-2"):
        model = cm.load_model(name)
        moments = [one.run_time.moments() for one in model.classes]
        ratios[name] = [m1 * m3 / m2**2 for m1, m2, m3 in moments]
    assert ratios["blue-pacific"] == pytest.approx([2.49] * 9, abs=0.005)
    assert max(ratios["blue-pacific-2"]) < 1.52  # 1.5 is the limit
    short = sum(share * (1 - one.run_time.p) for share, one in zip(model.shares, model.classes, strict=True))
    assert short == pytest.approx(0.345, abs=1e-4)
    longer, shorter = model.classes[0].run_time.stage_s
    assert longer / shorter == pytest.approx(100, rel=0.005)


@pytest.mark.long
def test_blue_pacific_draws_what_zhang_et_al_publish(pacific: cm.WorkloadModel) -> None:
    facts = []
    for seed in range(1, 21):
        workload = pacific.generate(seed=seed)
        nodes, run = workload.column("nodes"), workload.seconds("run")
        work, large = nodes * run, nodes > 32
        last_finish_s = (workload.seconds("submit") + run).max()  # at the earliest: nobody waits
        assert last_finish_s < 1.05 * workload.span_s
        rho = work.sum() / (320 * last_finish_s)  # Zhang et al. 2003, eq. (1)
        facts.append((np.mean(large), work[large].sum() / work.sum(), np.median(run), rho))
    low, high = np.min(facts, axis=0), np.max(facts, axis=0)
    assert np.mean(facts, axis=0) == pytest.approx([0.30, 0.86, 680, 0.55], rel=0.02)
    assert (low >= [0.28, 0.83, 640, 0.53]).all()
    assert (high <= [0.32, 0.89, 720, 0.551]).all()


@settings(max_examples=cases(20))
@given(jobs=st.integers(2, 400), seed=st.integers(0, 99), factor=st.sampled_from(RUN_TIME_FACTORS))
def test_the_jobs_drawn_offer_the_load_of_the_model(pacific: cm.WorkloadModel, jobs: int, seed: int, factor: float) -> None:
    workload = pacific.generate(jobs=jobs, seed=seed, run_time_factor=factor)
    assert workload.offered_load(320) == pytest.approx(factor * pacific.offered_load, rel=1e-6)
    natural = pacific.generate(jobs=jobs, seed=seed, run_time_factor=factor, match_load=False)
    assert np.array_equal(natural.column("run"), workload.column("run"))
    assert np.array_equal(natural.column("nodes"), workload.column("nodes"))
    stretch = workload.span_s / natural.span_s
    assert workload.seconds("submit") == pytest.approx(natural.seconds("submit") * stretch, abs=2e-6 * (1 + stretch))
