"""What policies declare to depend on: it decides which trials of a study share a run."""

from pathlib import Path

import pytest

import clustermodel as cm
from clustermodel.experiment.store import Store
from clustermodel.policies.easy import Easy
from clustermodel.policies.interface import PARTS, RANDOM_NUMBERS, dependencies_of
from clustermodel.policies.predictors import UserEstimate

EVERYTHING = {*PARTS, RANDOM_NUMBERS}


class Coin:
    """Starts the first job that fits, from the head of the queue or from its tail."""

    name = "coin"
    depends_on = frozenset[str]()

    def start(self, setup: cm.Setup) -> object:
        self._rng = setup.rng
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[cm.Decision]:
        fitting = [job for job in view.waiting.values() if job.nodes <= view.idle]
        return [cm.Start(job=fitting[0 if self._rng.random() < 0.5 else -1])] if fitting else []


class Quantum(Coin):
    """Starts the shortest or the longest job, as the length of a time slice tells."""

    name = "quantum"
    depends_on = frozenset({RANDOM_NUMBERS})

    def start(self, setup: cm.Setup) -> object:
        self._sign = 1 if setup.machine.time_slicing.quantum_s < 1 else -1
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[cm.Decision]:
        fitting = [job for job in view.waiting.values() if job.nodes <= view.idle]
        return [cm.Start(job=min(fitting, key=lambda job: (self._sign * job.estimate, job.id)))] if fitting else []


@pytest.mark.parametrize("policy", cm.policy_names())
def test_every_shipped_policy_declares_what_it_uses(policy: str) -> None:
    assert dependencies_of(cm.make_policy(policy)) < EVERYTHING


@pytest.mark.parametrize(
    ("policy", "uses"),
    [
        ("bf", set()),
        ("bgs", {"time_slicing", "context_switch", "node_memory_gib"}),
        ("mbgs", {"time_slicing", "context_switch", "checkpointing", "node_memory_gib"}),
        ("bgs:urgent=suspend", {*PARTS}),
        ("pv-easy", set()),
        ("pv-easy:mode=checkpoint", {"checkpointing"}),
        ("ss", {*PARTS}),
        ("R/L", {RANDOM_NUMBERS}),
        ("easy:predictor=virtual:0.2", {RANDOM_NUMBERS}),
    ],
)
def test_declarations_follow_from_parameters(policy: str, uses: set[str]) -> None:
    assert dependencies_of(cm.make_policy(policy)) == uses


@pytest.mark.parametrize(("policy", "part"), [(Coin(), RANDOM_NUMBERS), (Quantum(), "time_slicing")])
def test_a_policy_that_uses_more_than_it_declares_breaks_a_rule(policy: Coin, part: str) -> None:
    rules = {broken.rule: broken.detail for broken in cm.check_policy(policy)}
    assert part in rules["depends only on what it declares"]


def test_a_subclass_and_parts_of_ones_own_use_everything_unless_they_say() -> None:
    class Mine(Easy):
        """May do anything."""

    class MyPredictor(UserEstimate):
        """May do anything."""

    assert dependencies_of(Mine()) == EVERYTHING
    assert dependencies_of(Easy(predictor=MyPredictor())) == EVERYTHING


def test_an_unknown_part_is_one_line() -> None:
    policy = Coin()
    policy.depends_on = frozenset({"memory"})
    with pytest.raises(cm.SpecificationError, match=r"^policy Coin: depends_on 'memory' is not allowed; it must be among "):
        dependencies_of(policy)


def test_trials_that_cannot_differ_are_run_once() -> None:
    study = cm.Study(
        name="shared",
        factors={"switch": [0.0, 0.1], "cost": [0.0, 50.0], "policy": ["easy", "bgs", "mbgs", "R"]},
        scenario=lambda switch, cost, policy, seed: cm.Scenario(
            machine=cm.Machine(
                nodes=32, context_switch=cm.ContextSwitch(fraction=switch), checkpointing=cm.Checkpointing(checkpoint_s=cost)
            ),
            workload=cm.synthetic_workload(jobs=40, nodes=32, seed=1),
            policy=policy,
            seed=seed,
        ),
        replications=3,
    )
    table = study.run(workers=1)
    assert len(table) == 48
    runs = table.frame.groupby("policy")["run"].nunique().to_dict()
    assert runs == {"easy": 1, "bgs": 2, "mbgs": 4, "R": 3}
    assert table.interval("mean_wait_s", switch=0.1, cost=50.0, policy="easy").count == 1
    assert table.interval("mean_wait_s", switch=0.1, cost=50.0, policy="R").count == 3


def test_machines_of_other_memory_share_runs_of_policies_that_do_not_use_it_unless_a_job_is_refused() -> None:
    jobs = cm.synthetic_workload(jobs=40, nodes=32, seed=1).with_default_memory(2)
    study = cm.Study(
        name="memory",
        factors={"memory_gib": [1.0, 2.0, 4.0, None], "policy": ["easy", "bgs"]},
        scenario=lambda memory_gib, policy, seed: cm.Scenario(
            machine=cm.Machine(nodes=32, node_memory_gib=memory_gib), workload=jobs, policy=policy, seed=seed
        ),
        replications=1,
    )
    table = study.run(workers=1)
    assert table.frame.groupby("policy")["run"].nunique().to_dict() == {"easy": 2, "bgs": 4}
    assert table.frame.set_index(["policy", "memory_gib"])["rejected"].to_dict()["easy", 1.0] == 40


@pytest.mark.parametrize("memory_gib", [(None, 4.0, 8.0), (8.0, 4.0, None)])
def test_a_run_that_machines_of_other_memory_share_keeps_no_share_of_it(
    tmp_path: Path, memory_gib: tuple[float | None, ...]
) -> None:
    jobs = cm.synthetic_workload(jobs=40, nodes=32, seed=1).with_default_memory(2)
    study = cm.Study(
        name="memory",
        factors={"memory_gib": memory_gib, "policy": ["easy", "bgs"]},
        scenario=lambda memory_gib, policy, seed: cm.Scenario(
            machine=cm.Machine(nodes=32, node_memory_gib=memory_gib), workload=jobs, policy=policy, seed=seed
        ),
    )
    frame = study.run(tmp_path, workers=1).frame
    with Store.read(tmp_path) as store:
        has_share = ["memory_share" in store.states_over_time(key) for key in frame["run"]]
    assert has_share == [row.policy == "bgs" and row.memory_gib == row.memory_gib for row in frame.itertuples()]
    assert sum(has_share) == 2


def test_a_run_that_writes_no_checkpoints_keeps_no_share_of_the_store(tmp_path: Path) -> None:
    jobs = cm.synthetic_workload(jobs=40, nodes=32, seed=1).with_default_memory(2)
    store = cm.CheckpointStore(bandwidth_gib_s=1)
    study = cm.Study(
        name="store",
        factors={"interval_s": [None, 600.0]},
        scenario=lambda interval_s, seed: cm.Scenario(
            machine=cm.Machine(nodes=32, checkpointing=cm.Checkpointing(interval_s=interval_s, store=store)),
            workload=jobs,
            policy="easy",
            seed=seed,
        ),
    )
    frame = study.run(tmp_path, workers=1).frame
    with Store.read(tmp_path) as results:
        states = dict(zip(frame["interval_s"], map(results.states_over_time, frame["run"]), strict=True))
    assert ["store_share" in table for table in states.values()] == [False, True]
    assert states[600.0]["store_share"].max() == 1
