"""What the pages say of the studies of Zhang et al. 2003, on the stored tables; and the study of real logs, small."""

from itertools import product

import pytest

from clustermodel import RUN_TIME_FACTORS
from clustermodel.experiment.exhibits import exhibits_of
from clustermodel.report.measure_table import published_table
from tests.scripts import SCENARIOS, defined_in, mean, stored, study_of
from tests.shared_data import SHARED

SCRIPTS = SCENARIOS / "papers" / "zhang_2003"
POLICIES = ("gs", "bgs", "mgs", "mbgs")
SLOWDOWN, WAIT = "mean_bounded_slowdown", "mean_wait_s"


def test_improvements_of_the_paper_follow_from_its_slowdowns() -> None:
    script, paper = (
        defined_in("papers/zhang_2003/table1_migration"),
        published_table(SCRIPTS / "table1_migration.py", "table 1"),
    )
    for without, policy in script.PAIRS.items():
        before_after = (paper.loc[policy]["slowdown"] for policy in (without, policy))
        for before, after, percent in zip(*before_after, paper.loc[policy]["lower (%)"], strict=True):
            least, most = 1 - (after + 0.05) / (before - 0.05), 1 - (after - 0.05) / (before + 0.05)  # rounded to 0.1
            assert 100 * least - 0.05 <= percent <= 100 * most + 0.05


def test_table_1() -> None:
    table = stored("table1_migration")
    for factor in table.levels("factor"):
        gs, bgs, mgs, mbgs = (mean(table, SLOWDOWN, policy=policy, factor=factor) for policy in POLICIES)
        assert mbgs < bgs < mgs < gs


def test_table_1_with_the_second_calibration() -> None:
    """All utilizations are within 3 % of the paper's, and the slowdowns of GS and MGS in workload 8 within 25 %."""
    table, paper = stored("table1_second_model"), published_table(SCRIPTS / "table1_migration.py", "table 1")
    for (policy, workload), published in paper.iterrows():
        here = {"policy": policy, "factor": RUN_TIME_FACTORS[workload]}
        assert mean(table, "utilization", **here) == pytest.approx(published["utilization"], rel=0.03)
        if workload == 8 and policy in ("gs", "mgs"):
            assert mean(table, SLOWDOWN, **here) == pytest.approx(published["slowdown"], rel=0.25)


def test_context_switches() -> None:
    """BGS has lower slowdowns and waits than GS; which strategies lose more capacity than BF at the highest load."""
    table = stored("context_switch")
    for switch in table.levels("switch"):
        for level in (2, 3, 5):
            for factor in table.levels("factor"):
                for measure in (SLOWDOWN, WAIT):
                    bgs, gs = (
                        mean(table, measure, strategy=f"{name}-{level}", switch=switch, factor=factor) for name in ("BGS", "GS")
                    )
                    assert bgs < gs
    full, bf = table.at(factor=1.8), {"strategy": "BF", "switch": 0.0}
    loses_more = set()
    for strategy, switch in product(("BGS-2", "BGS-3", "BGS-5"), (0.0, 0.02, 0.05)):
        more = full.difference("kappa", {"strategy": strategy, "switch": switch}, bf)
        if more.mean > more.half:
            loses_more.add((strategy, switch))
    assert loses_more == {("BGS-2", 0.02), ("BGS-2", 0.05), ("BGS-3", 0.05), ("BGS-5", 0.05)}


def test_figure_15() -> None:
    table = stored("migration").at(cost_s=10.0, limit=64)
    for factor in table.levels("factor"):
        for measure in ("kappa", SLOWDOWN, WAIT):
            found = {policy: mean(table, measure, policy=policy, factor=factor) for policy in POLICIES}
            assert min(found, key=found.__getitem__) == "mbgs"
            assert max(found, key=found.__getitem__) == "gs"
            if measure != "kappa" or factor >= 1.2:
                assert found["bgs"] < found["mgs"]


def test_readings_of_q() -> None:
    """With the second calibration MGS loses less capacity than BGS where the tasks that move count, as in figure 15."""
    table = stored("readings").at(model="blue-pacific-2", limit=64)
    for factor in table.levels("factor"):
        here = table.at(factor=factor)
        bgs = mean(here, "kappa", policy="bgs")
        assert all(mean(here, "kappa", policy="mgs", counts=counts) < bgs for counts in ("moved", "spread"))
    assert mean(here, "kappa", policy="mgs", counts="gang") > bgs


def test_the_running_slice() -> None:
    """Keeping it saves costly switches; long slices that are cut let short jobs through sooner."""
    table, script = stored("running_slice"), defined_in("papers/zhang_2003/running_slice")
    found = script.nearer(table).set_index("numbers")
    assert found.loc["table 1, gs"].tolist() == [0, 6]
    assert abs(found.sum().diff().iloc[-1]) <= 2  # neither rule is nearer
    here = table.at(factor=1.5, policy="bgs")
    for quantum_s, switch_s, keep_is_lower in (
        (200.0, 10.0, True),
        (50.0, 10.0, True),
        (1000.0, 0.0, False),
        (1000.0, 4.0, False),
    ):
        ratio = script.both(here, SLOWDOWN, quantum_s=quantum_s, switch_s=switch_s)["keep / cut"]
        assert (ratio.high < 1, ratio.low > 1) == (keep_is_lower, not keep_is_lower)
    highest = script.highest(table)
    costly = highest[highest["switch"] == "5%"]
    assert all(ratio.low > 1 for ratio in costly["keep / cut"])


def test_figure_11() -> None:
    """BGS-5 is better for both sizes, and the difference between their waits is smaller, in every workload (section 5.3)."""
    table = stored("job_sizes")
    for factor in table.levels("factor"):
        found = {}
        for policy in ("bf", "bgs"):
            here = table.at(policy=policy, factor=factor)
            found[policy] = {
                f"{name}_{size}": mean(here, f"{name}_{size}") for name in (SLOWDOWN, WAIT) for size in ("small", "large")
            }
        assert all(found["bgs"][name] < found["bf"][name] for name in found["bf"])
        apart = [found[policy][f"{WAIT}_large"] - found[policy][f"{WAIT}_small"] for policy in ("bf", "bgs")]
        assert apart[1] < apart[0]


def test_standard_deviations() -> None:
    """BGS is better than GS with the same level, and than BF, also in the standard deviation (section 5.3)."""
    table = stored("fairness")
    for model, factor in product(table.levels("model"), table.levels("factor")):
        here = table.at(model=model, factor=factor)
        for measure in (f"{kind}_{name}_all" for kind in ("mean", "std") for name in ("bounded_slowdown", "wait_s")):
            found = {str(name): mean(here, measure, strategy=name) for name in table.levels("strategy")}
            assert found["BGS-5"] < found["BF"]
            assert all(found[f"BGS-{level}"] < found[f"GS-{level}"] for level in (2, 3, 5))


def test_loss_of_capacity_is_the_same_by_formula_and_ledger() -> None:
    frame = stored("capacity_loss").frame
    assert (frame["kappa_by_formula"] - frame["kappa"]).abs().max() < 1e-9
    assert (frame["utilization"] + frame["kappa"] <= 1 + 1e-12).all()
    overhead = frame[["context_switch_share", "migration_share", "blocked_share"]].sum(axis=1)
    assert ((overhead > 0) == ~frame["policy"].isin(["fcfs", "bf"])).all()


def test_adaptive_scheduling_is_nowhere_better_than_the_better_parent() -> None:
    table = stored("adaptive")
    for factor in table.levels("factor"):
        means = {str(name): mean(table, SLOWDOWN, strategy=name, factor=factor) for name in table.levels("strategy")}
        better = min(means["BF"], means["BGS-5"])
        assert all(value >= better for name, value in means.items() if name.startswith("adaptive"))


def test_overestimation_counts_every_job() -> None:
    frame = stored("overestimation").frame
    jobs = frame[[f"jobs_{number}" for number in range(10)]]
    assert (jobs.sum(axis=1) == 10_000).all()
    # The mean wait of no jobs is unknown.
    waits = sum(frame[f"wait_s_{number}"].fillna(0) * frame[f"jobs_{number}"] for number in range(10)) / 10_000
    assert all((frame[f"wait_s_{number}"].isna() == (frame[f"jobs_{number}"] == 0)).all() for number in range(10))
    assert waits.tolist() == pytest.approx(frame[WAIT].tolist(), rel=1e-9)


def test_real_logs() -> None:
    """On every log BGS lowers slowdowns and raises response times, and MBGS lowers both."""
    table = stored("real_traces")
    for log in table.levels("log"):
        for load in table.levels("load"):
            here = table.at(log=log, load=load)
            bgs, mbgs = (
                {
                    name: here.difference(name, {"policy": policy}, {"policy": "bf"}, ratio=True)
                    for name in ("mean_response_s", SLOWDOWN)
                }
                for policy in ("bgs", "mbgs")
            )
            assert bgs["mean_response_s"].low > 1
            assert mbgs["mean_response_s"].mean < 1
            assert max(bgs[SLOWDOWN].high, mbgs[SLOWDOWN].high) < 1
            lost = here.difference("idle_beside_stopped_share", {"policy": "mbgs"}, {"policy": "bgs"}, ratio=True)
            assert lost.high < 0.5
            frame = here.frame.set_index("policy")
            stopped = (frame["mean_response_s"] - frame[WAIT] - frame["mean_run_s"]).groupby("policy").mean()
            assert stopped["bgs"] > mean(here, WAIT, policy="bf")
            assert stopped["mbgs"] < stopped["bgs"] / 2
            for policy in ("bgs", "mbgs"):
                overheads = sum(
                    mean(here, f"{name}_share", policy=policy)
                    for name in ("context_switch", "checkpoint", "restart", "blocked")
                )
                assert overheads < 0.02


def test_real_logs_in_one_piece() -> None:
    """At the higher load BGS has the smaller advantage in slowdown, and less idle capacity to spare than MBGS."""
    table = stored("real_traces_whole")
    lost = ["useful", "context_switch", "checkpoint", "restart", "blocked", "idle_waiting", "idle_beside_stopped"]
    for log in table.levels("log"):
        ratio = {
            (load, measure): table.at(log=log, load=load)
            .difference(measure, {"policy": "bgs"}, {"policy": "bf"}, ratio=True)
            .mean
            for load in table.levels("load")
            for measure in (SLOWDOWN, "mean_response_s")
        }
        recorded, scaled = table.levels("load")
        for measure in (SLOWDOWN, "mean_response_s"):
            assert ratio[recorded, measure] < ratio[scaled, measure]
        assert ratio[scaled, SLOWDOWN] < 1 < ratio[scaled, "mean_response_s"]
        spare = {
            policy: 1 - sum(mean(table, f"{name}_share", log=log, load=scaled, policy=policy) for name in lost)
            for policy in ("bgs", "mbgs")
        }
        assert spare["bgs"] < spare["mbgs"] / 2


def test_real_logs_small() -> None:
    traces = SHARED / "traces"
    if not (traces / "KTH-SP2-1996-2.2.swf.gz").exists():
        pytest.skip("the traces are not here; they are not part of the repository")
    settings = {"traces": str(traces), "logs": "KTH-SP2", "jobs": "400", "parts": "2"}
    study = study_of("papers/zhang_2003/real_traces", settings)
    table = study.run(workers=1)
    assert not exhibits_of(study, table).problems
    frame = table.frame
    accounts = ["useful", "lost", "context_switch", "checkpoint", "restart", "blocked", "idle"]
    assert frame[[f"{name}_share" for name in accounts]].sum(axis=1).tolist() == pytest.approx([1.0] * len(frame))
    assert (frame["idle_beside_stopped_share"] <= frame["idle_share"]).all()
    bf = frame[frame["policy"] == "bf"]
    assert (bf["mean_rows"] == 1).all()
    assert (bf["mean_wait_s"] + bf["mean_run_s"]).tolist() == pytest.approx(bf["mean_response_s"].tolist())
