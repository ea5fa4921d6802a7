"""Policies by name and as objects, and the checker that tells a sound one from each kind of broken one."""

import pickle
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError
from typing import Any, Literal

import pytest

import clustermodel as cm
from clustermodel.policies.cheap_hours import CheapHours
from clustermodel.policies.conservative import Conservative
from clustermodel.policies.easy import Easy
from clustermodel.policies.fcfs import Fcfs
from clustermodel.policies.interface import Decision, Policy, decide_of
from clustermodel.policies.registry import policy_label, policy_parameters, policy_settings, policy_summary, unregister_policy
from tests.tiers import some

Decide = Callable[[cm.Batch, cm.View], Iterable[Any]]
PREDICTING = ("easy", "conservative", "pv-easy", "backfilling")
IN_ROWS = ("gs", "bgs", "mgs", "mbgs", "adaptive")


class Mine:
    """A policy that is one function."""

    name = "mine"

    def __init__(self, decide: Decide) -> None:
        self.decide = decide

    def start(self, setup: cm.Setup) -> object:
        """Nothing to remember."""
        return self


def fcfs(batch: cm.Batch, view: cm.View) -> list[Decision]:
    """Start jobs in queue order while they fit."""
    starts: list[Decision] = []
    idle = view.idle
    for job in view.waiting.values():
        if job.nodes > idle:
            break
        idle -= job.nodes
        starts.append(cm.Start(job=job))
    return starts


def test_the_shipped_policies_have_names() -> None:
    assert cm.policy_names()[:3] == ["fcfs", "easy", "conservative"]
    assert [type(cm.make_policy(name)) for name in ("fcfs", "easy", "conservative")] == [Fcfs, Easy, Conservative]
    assert cm.make_policy("easy") is not cm.make_policy("easy")


def test_names_have_summaries_parameters_and_labels() -> None:
    assert policy_summary("easy") == "EASY backfilling."
    assert {key: one.default for key, one in policy_parameters("easy").items()} == {
        "backfill_order": "arrival",
        "reserve_depth": 1,
        "predictor": "estimate",
        "correction": None,
        "reservation": "renewed",
    }
    assert policy_parameters("fcfs") == {}
    assert policy_label("easy:reserve_depth=2") == "easy:reserve_depth=2"
    assert policy_label(Mine(fcfs)) == "mine"
    for function in (policy_summary, policy_parameters):
        with pytest.raises(cm.SpecificationError, match="policy: 'eazy' is unknown"):
            function("eazy")


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("any", {}),
        ("any:", {}),
        ("any:a=1", {"a": 1}),
        ("any:a=-1.5e3,b=x", {"a": -1500.0, "b": "x"}),
        ("any:a=true,b=False", {"a": True, "b": False}),
        ("any:a=1=2,b=x:y", {"a": "1=2", "b": "x:y"}),
    ],
)
def test_parameters_are_read_as_numbers_truth_values_or_words(
    forgetful_registry: None, text: str, parameters: dict[str, object]
) -> None:
    received: list[dict[str, object]] = []

    def factory(*, a: object = None, b: object = None) -> Policy:
        received.append({key: value for key, value in (("a", a), ("b", b)) if value is not None})
        return Fcfs()

    cm.register_policy("any", factory)
    cm.make_policy(text)
    assert received == [parameters]
    assert [type(value) for value in received[0].values()] == [type(value) for value in parameters.values()]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("", "policy: '' is unknown; 'clustermodel policies' lists all"),
        ("esay", "policy: 'esay' is unknown (did you mean 'easy'?); 'clustermodel policies' lists all"),
        ("Conservative", "policy: 'Conservative' is unknown (did you mean 'conservative'?); 'clustermodel policies' lists all"),
        (":a=1", "policy: '' is unknown; 'clustermodel policies' lists all"),
        ("easy:depth", "policy easy: 'depth' is not allowed; write key=value,key=value"),
        ("easy:reserve_depth=", "policy easy: 'reserve_depth=' is not allowed; write reserve_depth=value"),
        ("easy:reserve_depth=1,", "policy easy: '' is not allowed; write key=value,key=value"),
        ("easy:order=shortest", "policy easy: parameter 'order' is unknown (did you mean 'backfill_order'?); "
         "parameters: backfill_order, reserve_depth"),
        ("easy:backfil_order=shortest", "policy easy: parameter 'backfil_order' is unknown (did you mean 'backfill_order'?); "
         "parameters: backfill_order, reserve_depth"),
        ("fcfs:a=1", "policy fcfs: parameter 'a' is unknown; parameters: it has none"),
        ("easy:reserve_depth=0", "easy: reserve_depth: 0 is not allowed; it must be an integer >= 1"),
        ("easy:reserve_depth=2.0", "easy: reserve_depth: 2.0 is not a whole number; it must be an integer >= 1"),
        ("easy:reserve_depth=true", "easy: reserve_depth: True is not a whole number; it must be an integer >= 1"),
        ("easy:backfill_order=longest", "easy: backfill_order: 'longest' is not allowed; it must be one of arrival, shortest, "
         "or a callable"),
        ("easy:reservation=once", "easy: reservation: 'once' is not allowed; it must be one of renewed, kept"),
        *((f"{policy}:predictor=lsat", f"{policy}: predictor: 'lsat' is not allowed (did you mean 'last'?); it must be one of "
           "estimate, last, last-submitted, last-two, perfect") for policy in PREDICTING),
        *((f"{policy}:correction=no", f"{policy}: correction: 'no' is not allowed; it must be one of second, estimate, "
           "tsafrir, double, or a callable") for policy in PREDICTING),
        *((f"{policy}:mode=chekpoint", f"{policy}: mode: 'chekpoint' is not allowed (did you mean 'checkpoint'?); it must be "
           "one of kill, checkpoint, suspend") for policy in ("pv-easy", "ss", "srtf", "las")),
        ("bgs:urgent=stop", "bgs: urgent: 'stop' is not allowed; it must be one of kill, checkpoint, suspend"),
        ("pv-easy:slp=1", "pv-easy: slp: 1 is not allowed; it must be True or False"),
        ("pv-easy:vb=no", "pv-easy: vb: 'no' is not allowed; it must be True or False"),
        ("ss:sf=1", "ss: sf: 1 is not allowed; it must be a finite number > 1"),
        ("ss:sf=nan", "ss: sf: nan is not allowed; it must be a finite number > 1"),
        ("ss:sf=true", "ss: sf: True is not allowed; it must be a finite number > 1"),
        ("ss:interval_s=0", "ss: interval_s: 0 is not allowed; it must be a finite number of seconds > 0"),
        ("las:thresholds=0", "las: thresholds: 0 is not allowed; it must be a number of node-seconds > 0, or several"),
        ("las:thresholds=6/2", "las: thresholds: '6/2' is not allowed; it must be a number of node-seconds > 0"),
        ("las:promote=0", "las: promote: 0 is not allowed; it must be a finite number > 0, or None"),
        ("las:promote=2,mode=kill", "las: promote: 2 is not allowed with mode=kill, where jobs that return to the first queue"),
        ("srtf:victim=oldest", "srtf: victim: 'oldest' is not allowed (did you mean 'largest'?); it must be one of order, "),
        ("srsf:round_s=-1", "srsf: round_s: -1 is not allowed; it must be a finite number of seconds >= 0"),
        ("fifo-preempt:min_run_s=-1", "fifo-preempt: min_run_s: -1 is not allowed"),
        ("srtf:skip=1", "srtf: skip: 1 is not allowed; it must be True or False"),
        ("adaptive:threshold=2", "adaptive: threshold: 2 is not allowed; it must be a number >= 0 and <= 1"),
        ("adaptive:hysteresis=-0.1", "adaptive: hysteresis: -0.1 is not allowed; it must be a number >= 0 and <= 1"),
        ("adaptive:window_s=0", "adaptive: window_s: 0 is not allowed; it must be a finite number of seconds > 0 and <= 1e+10"),
        *((f"{policy}:queue_order=arival", f"{policy}: queue_order: 'arival' is not allowed (did you mean 'arrival'?); it must "
           "be one of arrival, shortest, narrowest, widest, or a callable") for policy in ("bf", "conservative", "gs", "mgs")),
        *((f"{policy}:mpl=0", f"{policy}: mpl: 0 is not allowed; it must be an integer >= 1") for policy in IN_ROWS),
        *((f"{policy}:mpl={mpl}", f"{policy}: mpl: {mpl!r} is not a whole number; it must be an integer >= 1")
          for policy in IN_ROWS for mpl in (2.5, "all")),
        ("mgs:rows=2", "policy mgs: parameter 'rows' is unknown; parameters: mpl, queue_order"),
        ("mbgs:rows=2", "policy mbgs: parameter 'rows' is unknown; parameters: mpl, queue_order, urgent"),
        ("R/L-NG:speculation=1.5", "backfilling: speculation: 1.5 is not allowed; it must be a number > 0 and <= 1"),
        ("R:width=-2", "backfilling: width: -2 is not allowed; it must be a finite number > 0"),
        ("R:width=haf", "backfilling: width: 'haf' is not allowed (did you mean 'half'?); it must be one of asked, half, "),
        ("R/L:sepculation=0.5", "policy R/L: parameter 'sepculation' is unknown (did you mean 'speculation'?)"),
        ("R-NG:levels=3", "policy R-NG: parameter 'levels' is unknown"),
        ("R-NG:guarantees=all", "policy R-NG: parameter 'guarantees' is unknown"),
        ("backfilling:order=shortest,starvation_weight=1", "backfilling: starvation_weight: 1.0 is not allowed with order"),
        ("R/N", "policy: 'R/N' is unknown"),
    ],
)  # fmt: skip
def test_a_description_that_means_nothing_is_refused(forgetful_registry: None, policy: str, message: str) -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        cm.make_policy(policy)
    # tests that register policies, and do not forget them, may have made the list of known ones longer
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("order", [3, None, 1.5, ["arrival"]])
def test_a_backfill_order_is_a_name_or_a_callable(order: object) -> None:
    with pytest.raises(
        cm.SpecificationError, match=r"easy: backfill_order: .* is not allowed; it must be one of arrival, shortest"
    ):
        Easy(backfill_order=order)  # type: ignore[arg-type]


@pytest.mark.parametrize("nonsense", [Fcfs, 3, None, object(), ["easy"]])
def test_what_is_neither_a_name_nor_a_policy_is_refused(nonsense: Any) -> None:
    for use in (
        cm.make_policy,
        lambda policy: cm.Scenario(workload=cm.synthetic_workload(jobs=2), policy=policy),
        cm.check_policy,
    ):
        with pytest.raises(cm.SpecificationError) as refused:
            use(nonsense)
        allowed = "it must be a name, an object with name and start, or a function of setup"
        if nonsense is Fcfs:
            allowed = "it must be an object of the class, as Fcfs()"
        elif isinstance(nonsense, list):
            allowed = "a scenario has one policy; make a scenario for each"
        assert str(refused.value) == f"policy: {nonsense!r} is not allowed; {allowed}"


def test_a_registered_policy_is_made_with_its_parameters(forgetful_registry: None) -> None:
    class Part(Fcfs):
        """FCFS on a part of the machine."""

        def __init__(self, *, share: float, spare: int = 0) -> None:
            self.name = f"{share} of it, {spare} spare"

    cm.register_policy("part", Part)
    assert cm.policy_names()[-1] == "part"
    assert policy_summary("part") == "FCFS on a part of the machine."
    assert cm.make_policy("part:share=0.5,spare=2").name == "0.5 of it, 2 spare"
    with pytest.raises(cm.SpecificationError) as refused:
        cm.make_policy("part:spare=2")
    assert str(refused.value) == "policy part: parameter 'share' is missing; write part:share=value"
    with pytest.raises(cm.SpecificationError, match=r"policy: 'prt' is unknown \(did you mean 'part'\?\)"):
        cm.make_policy("prt")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("levels=abc", "policy typed: levels: 'abc' is not allowed; it must be an integer"),
        ("levels=2.5", "policy typed: levels: '2.5' is not allowed; it must be an integer"),
        ("levels=true", "policy typed: levels: 'true' is not allowed; it must be an integer"),
        ("share=half", "policy typed: share: 'half' is not allowed; it must be a number"),
        ("share=false", "policy typed: share: 'false' is not allowed; it must be a number"),
        ("strict=1", "policy typed: strict: '1' is not allowed; it must be true or false"),
        ("limit=none at all", "policy typed: limit: 'none at all' is not allowed; it must be an integer"),
        ("side=up", "policy typed: side: 'up' is not allowed; it must be 'left' or 'right' or an integer"),
        ("levels=-1", "policy typed:levels=-1: it cannot be made: ZeroDivisionError: no levels"),
        ("steps=3", "policy typed:steps=3: it cannot be made: TypeError: 'int' object is not iterable"),
    ],
)
def test_parameters_of_a_users_policy_are_of_the_declared_types(
    forgetful_registry: None, parameters: str, message: str
) -> None:
    cm.register_policy("typed", Typed)
    with pytest.raises(cm.SpecificationError) as refused:
        cm.make_policy(f"typed:{parameters}")
    assert str(refused.value) == message
    with pytest.raises(cm.SpecificationError):
        cm.Scenario(workload=cm.Workload([]), machine=cm.Machine(nodes=1), policy=f"typed:{parameters}")


def test_text_is_text_where_it_is_declared(forgetful_registry: None) -> None:
    cm.register_policy("typed", Typed)
    made = cm.make_policy("typed:word=007,side=left,share=2,limit=4,strict=true,anything=1")
    assert isinstance(made, Typed)
    assert made.given == {"word": "007", "side": "left", "share": 2, "limit": 4, "strict": True, "anything": 1}
    assert policy_settings("typed:word=1.50") == {"word": "1.50"}


def test_a_type_that_is_imported_for_types_only_hides_no_other(forgetful_registry: None) -> None:
    def factory(*, levels: "int | None" = 3, other: "Missing | None" = None) -> Policy:  # type: ignore[name-defined]  # noqa: F821
        return Mine(fcfs)

    cm.register_policy("hiding", factory)
    cm.make_policy("hiding:levels=4,other=abc")
    with pytest.raises(cm.SpecificationError, match=r"^policy hiding: levels: 'abc' is not allowed; it must be an integer$"):
        cm.make_policy("hiding:levels=abc")


class Typed(Mine):
    """Has parameters of all types that can be written."""

    def __init__(
        self,
        *,
        levels: int = 3,
        share: float = 0.5,
        strict: bool = False,
        word: str = "a",
        limit: int | None = None,
        side: Literal["left", "right"] | int = "left",
        steps: list[int] | None = None,
        anything=None,  # type: ignore[no-untyped-def]
    ) -> None:
        super().__init__(fcfs)
        if levels < 0:
            raise ZeroDivisionError("no levels")
        self.given = {
            "word": word, "side": side, "share": share, "limit": limit, "strict": strict, "anything": anything,
        }  # fmt: skip
        self.steps = list(steps or ())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("easy", "policy name: 'easy' is already registered"),
        ("", "policy name: '' is not allowed; it must be non-empty, without ':', ',' or '='"),
        ("a:b", "policy name: 'a:b' is not allowed; it must be non-empty, without ':', ',' or '='"),
        ("a,b", "policy name: 'a,b' is not allowed; it must be non-empty, without ':', ',' or '='"),
        ("a=b", "policy name: 'a=b' is not allowed; it must be non-empty, without ':', ',' or '='"),
    ],
)
def test_a_name_that_is_taken_or_could_not_be_written_is_refused(forgetful_registry: None, name: str, message: str) -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        cm.register_policy(name, Fcfs)
    assert str(refused.value) == message


def test_an_object_of_ones_own_runs_in_a_scenario_under_its_own_name() -> None:
    workload = cm.synthetic_workload(jobs=200, nodes=16, load=0.9)
    mine, ours = (cm.Scenario(workload=workload, policy=policy).run() for policy in (Mine(fcfs), "fcfs"))
    assert mine.jobs.equals(ours.jobs)
    assert mine.summary().policy == "mine"
    assert cm.Scenario(workload=workload, policy=Mine(fcfs), name="better").run().summary().policy == "better"


def test_one_object_can_run_several_scenarios_in_turn() -> None:
    policy = Conservative()
    workloads = [cm.synthetic_workload(jobs=100, nodes=nodes, load=0.9, seed=nodes) for nodes in (8, 16, 8)]
    runs = [cm.Scenario(workload=workload, policy=policy).run() for workload in workloads]
    assert runs[0].jobs.equals(runs[2].jobs)


def test_decisions_may_be_a_generator() -> None:
    def one_by_one(batch: cm.Batch, view: cm.View) -> Iterable[Decision]:
        yield from fcfs(batch, view)

    assert cm.check_policy(Mine(one_by_one)) == []


def test_a_policy_is_told_the_machine_and_given_the_scenarios_own_random_stream() -> None:
    setups: list[tuple[Any, ...]] = []

    class Drawing(Mine):
        def start(self, setup: cm.Setup) -> object:
            setups.append((setup.nodes, setup.kill_at_estimate, setup.explain, setup.rng.random()))
            return self

    workload = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=1)])
    for seed in (5, 5, 6):
        cm.Scenario(
            machine=cm.Machine(nodes=7, kill_at_estimate=False), workload=workload, policy=Drawing(fcfs), seed=seed
        ).run()
    assert setups[0][:3] == (7, False, False)
    assert setups[0] == setups[1] != setups[2]


def widest(setup: cm.Setup, *, most: int = 99) -> Decide:
    """Start the widest job that fits, of at most so many nodes."""

    def decide(batch: cm.Batch, view: cm.View) -> list[Decision]:
        fitting = [job for job in view.waiting.values() if job.nodes <= min(view.idle, most)]
        return [cm.Start(job=max(fitting, key=lambda job: job.nodes))] if fitting else []

    return decide


def test_a_function_of_the_setup_is_a_policy_by_itself_or_by_a_name_with_parameters() -> None:
    workload = cm.Workload.from_jobs([cm.Job(id=n, nodes=n, submit_s=n, run_s=1) for n in (1, 2)])
    assert cm.make_policy(widest).name == "widest"
    assert cm.make_policy(widest) == cm.make_policy(widest)
    cm.register_policy("by-width", widest)
    try:
        assert list(policy_parameters("by-width")) == ["most"]
        assert policy_summary("by-width").startswith("Start the widest job")
        for policy in (widest, "by-width", "by-width:most=2"):
            assert cm.Scenario(machine=cm.Machine(nodes=2), workload=workload, policy=policy).run().summary().jobs == 2
        with pytest.raises(cm.StrandedJobsError, match="policy by-width:most=1: 1 job left waiting"):
            cm.Scenario(machine=cm.Machine(nodes=2), workload=workload, policy="by-width:most=1").run()
        with pytest.raises(cm.SpecificationError, match="policy by-width: most: 'many' is not allowed; it must be an integer"):
            cm.make_policy("by-width:most=many")
    finally:
        unregister_policy("by-width")


@pytest.mark.parametrize("name", cm.policy_names())
def test_shipped_policies_are_specifications(name: str) -> None:
    policy = cm.make_policy(name)
    assert policy == cm.make_policy(name) == pickle.loads(pickle.dumps(policy))
    assert hash(policy) == hash(cm.make_policy(name))
    with pytest.raises(FrozenInstanceError):
        policy.anything = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", some([1, 2], one_in=2))
@pytest.mark.parametrize(
    "policy",
    [
        "fcfs", "easy", "conservative", "easy:backfill_order=shortest", "easy:reserve_depth=2", "easy:reserve_depth=1000",
        "easy:backfill_order=shortest,reserve_depth=3", "easy:predictor=last", "easy:predictor=last-two,reserve_depth=3",
        "easy:predictor=virtual:0.5,backfill_order=shortest", "conservative:predictor=last", "conservative:predictor=perfect",
        "backfilling:predictor=last,guarantees=none,order=R/L,speculation=0.3,width=greedy,widening=2",
        "pv-easy", "pv-easy:predictor=estimate", "pv-easy:predictor=perfect", "pv-easy:predictor=virtual:0.4",
        "pv-easy:vb=false", "pv-easy:slp=false", "pv-easy:slp=false,vb=false", "pv-easy:mode=checkpoint",
        "pv-easy:mode=suspend", "pv-easy:mode=checkpoint,vb=false,predictor=estimate",
        "easy:reservation=kept", "easy:reservation=kept,reserve_depth=3,predictor=last",
        "easy:predictor=last-two,correction=tsafrir,backfill_order=shortest",
        "easy:predictor=last-two,correction=double,reserve_depth=3", "conservative:predictor=last,correction=tsafrir",
        "backfilling:predictor=last,correction=second,guarantees=none", "pv-easy:correction=tsafrir",
        "pv-easy:predictor=last-submitted", "bf", "bf:queue_order=widest", "adaptive", "adaptive:threshold=0.4,window_s=30",
        *(f"{policy}:urgent={mode}" for policy in ("bgs", "mbgs") for mode in ("kill", "checkpoint", "suspend")),
        "equipartition", "equipartition:min_gain=-inf,predictor=last", "expand", "expand:order=age,min_interval_s=7",
        "shrink-to-admit", "shrink-to-admit:order=fcfs,expand=no", "shrink-to-admit:fewer=false,victim=largest,predictor=last",
        "cheap-hours", "ss", "ss:mode=checkpoint,sf=1.5", "ss:mode=kill", "server-filling",
        pytest.param("ss:sf=1.01,interval_s=1", marks=pytest.mark.whole),
        pytest.param("ss:sf=1.01,interval_s=1,mode=kill", marks=pytest.mark.whole),
    ],
)  # fmt: skip
@pytest.mark.long
def test_every_shipped_policy_keeps_every_rule(policy: str, seed: int) -> None:
    assert cm.check_policy(policy, seed=seed, failures=True) == []


@pytest.mark.long
@pytest.mark.parametrize("max_delay_s", [20, 500])
def test_cheap_hours_keep_every_rule(max_delay_s: float) -> None:
    price = cm.Price(time_s=[0, 7, 30], price=[3, 1, 2], every_s=60)
    assert cm.check_policy(CheapHours(price=price, max_delay_s=max_delay_s), failures=True) == []


@pytest.mark.long
def test_so_do_objects_of_them_and_an_order_of_ones_own() -> None:
    for policy in (Conservative(), Easy(backfill_order=lambda job, now: (-job.nodes, now - job.submit, job.id))):
        assert cm.check_policy(policy, failures=True) == []


IMPOSSIBLE = "never asks for the impossible, leaves no job behind"
SECOND = 1_000_000


def starts_and(more: Callable[[cm.Batch, cm.View], list[Any]]) -> Decide:
    """Decide as FCFS, and then more."""
    return lambda batch, view: [*fcfs(batch, view), *more(batch, view)]


def does_nothing(batch: cm.Batch, view: cm.View) -> list[Decision]:
    return []


def breaks_its_promise(batch: cm.Batch, view: cm.View) -> list[Decision]:
    starts = fcfs(batch, view)
    started = {start.job for start in starts if isinstance(start, cm.Start)}
    return starts + [cm.Reserve(job=job, start=view.now) for job in view.waiting.values() if job not in started]


def raises(batch: cm.Batch, view: cm.View) -> list[Decision]:
    raise RuntimeError("out of ideas")


BROKEN: dict[str, tuple[Decide, str, str]] = {
    "does nothing": (does_nothing, IMPOSSIBLE, "left waiting for ever on an idle machine"),
    "starts too wide": (
        lambda _, view: [cm.Start(job=job) for job in view.waiting.values()], IMPOSSIBLE, "cannot start: it needs",
    ),
    "starts what has ended": (
        starts_and(lambda batch, _: [cm.Start(job=gang.job) for gang in batch.ended]),
        IMPOSSIBLE, "cannot start: it is not in the queue",
    ),
    "starts a part": (
        lambda _, view: [cm.Start(job=job, columns=(0, 1)) for job in view.waiting.values()][:1],
        IMPOSSIBLE, "cannot start on 1 columns (0): its gang needs",
    ),
    "promises the running": (
        starts_and(lambda _, view: [cm.Reserve(job=gang.job, start=view.now) for gang in view.running.values()]),
        IMPOSSIBLE, "cannot hold a reservation: it does not wait",
    ),
    "resizes a rigid job": (
        starts_and(lambda _, view: [cm.Resize(job=gang.job, nodes=1) for gang in view.running.values()]),
        IMPOSSIBLE, "cannot be resized to 1 nodes: its job is not malleable",
    ),
    "resizes too far": (
        starts_and(
            lambda _, view: [
                cm.Resize(job=gang.job, nodes=gang.job.sizes[0] - 1) for gang in view.running.values() if gang.job.sizes
            ]
        ),
        IMPOSSIBLE, "cannot be resized to",
    ),
    "alarm in the past": (
        starts_and(lambda _, view: [cm.WakeAt(time=view.now - SECOND)]), IMPOSSIBLE, "the alarm clock cannot be set",
    ),
    "answers in words": (
        lambda *_: ["start"],
        IMPOSSIBLE, "'start' is not a decision; it must be one of Start, Kill, Checkpoint, Suspend, Reserve, WakeAt",
    ),
    "alarms for ever": (
        lambda _, view: [cm.WakeAt(time=view.now + 1)],
        "comes to an end", "called more than 200 times per job without an end in sight",
    ),
    "breaks its promise": (breaks_its_promise, "keeps guaranteed starts", "started after its first guaranteed start"),
    "raises": (raises, "raises nothing", "RuntimeError: out of ideas"),
    "returns nothing": (
        lambda *_: None, "raises nothing", "TypeError: 'NoneType' object is not iterable",  # type: ignore[dict-item, return-value]
    ),
}  # fmt: skip


@pytest.mark.parametrize(("decide", "rule", "detail"), BROKEN.values(), ids=BROKEN)
def test_a_broken_policy_is_told_which_rule_it_breaks(decide: Decide, rule: str, detail: str) -> None:
    found = cm.check_policy(Mine(decide))
    assert any(detail in one.detail for one in found if one.rule == rule)
    assert {one.rule for one in found} == {rule}


class Counting(Fcfs):
    """FCFS that keeps count of the idle nodes itself."""

    name = "counting"
    takes_partitions = takes_reservations = takes_shapes = False

    def __init__(self, *, failures: bool) -> None:
        self._failures = failures

    def start(self, setup: cm.Setup) -> object:
        self._idle = self._nodes = setup.nodes
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
        self._idle += sum(gang.nodes for gang in batch.ended)
        if self._failures:
            self._idle += len(batch.repaired) - len(batch.failed)
            assert (self._idle, self._nodes - len(view.down)) == (view.idle, view.up)
            assert {outage.node for outage in batch.failed} <= view.down.keys() | {one.node for one in batch.repaired}
        starts: list[Decision] = []
        for job in view.waiting.values():
            if job.nodes > self._idle:
                break
            self._idle -= job.nodes
            starts.append(cm.Start(job=job))
        return starts


def test_a_policy_that_does_not_follow_failures_is_found() -> None:
    assert cm.check_policy(Counting(failures=True), failures=True) == []
    found = cm.check_policy(Counting(failures=False), failures=True)
    assert {one.rule for one in found} == {IMPOSSIBLE}
    assert {one.case for one in found} >= {"a node fails under a job", "all nodes are down when jobs arrive"}
    assert "cannot start: it needs 4 nodes and 3 are idle" in str(found)


def test_a_policy_that_starts_a_job_on_a_node_that_is_down_is_found() -> None:
    def on_the_first_nodes(batch: cm.Batch, view: cm.View) -> list[Decision]:
        if view.running or not view.waiting:
            return []
        job = next(iter(view.waiting.values()))
        return [cm.Start(job=job, columns=(0, job.nodes))] if job.nodes <= view.up else []

    found = cm.check_policy(Mine(on_the_first_nodes), failures=True)
    assert {one.rule for one in found} == {IMPOSSIBLE}
    assert all("fail" in one.case or "down" in one.case for one in found)
    assert "not all of them are idle" in str(found)


def test_jobs_left_behind_are_noticed_even_if_the_last_thing_that_happens_is_a_rejection() -> None:
    jobs = [cm.Job(id=1, nodes=1, submit_s=0, run_s=1), cm.Job(id=2, nodes=9, submit_s=5, run_s=1)]
    scenario = cm.Scenario(machine=cm.Machine(nodes=4), workload=cm.Workload.from_jobs(jobs), policy=Mine(does_nothing))
    with pytest.raises(cm.StrandedJobsError, match="policy mine: 1 job left waiting for ever on an idle machine"):
        scenario.run()


def test_a_policy_that_cannot_even_start_is_a_finding() -> None:
    class Unready(Fcfs):
        name = "unready"

        def start(self, setup: cm.Setup) -> object:
            raise KeyError("no such setting")

    (first, *_) = found = cm.check_policy(Unready())
    assert {one.rule for one in found} == {"raises nothing"}
    assert first.detail == "KeyError: 'no such setting'"


def test_a_policy_that_changes_the_size_of_a_job_is_found() -> None:
    def shrinks(batch: cm.Batch, view: cm.View) -> list[Decision]:
        starts = fcfs(batch, view)
        for start in starts:
            start.job.nodes = 1  # type: ignore[union-attr]
        return starts

    found = cm.check_policy(Mine(shrinks))
    assert any("it sets nodes; a policy may not change jobs" in one.detail for one in found)


def test_a_malleable_job_that_starts_outside_its_sizes_is_found() -> None:
    class Outside:
        """Equipartition that starts malleable jobs on one node."""

        name = "outside"

        def start(self, setup: cm.Setup) -> object:
            self._decide = decide_of(cm.make_policy("equipartition"), setup)
            return lambda batch, view: [self._changed(decision) for decision in self._decide(batch, view)]

        def _changed(self, decision: Any) -> Any:
            malleable = isinstance(decision, cm.Start) and decision.job.sizes is not None
            return cm.Start(job=decision.job, nodes=1) if malleable else decision

    found = cm.check_policy(Outside())
    assert {one.rule for one in found} >= {"keeps malleable jobs within their sizes"}
    assert any(" had 1 nodes; it may have " in one.detail for one in found)


def test_a_finding_reads_as_a_line_with_the_case_that_shows_it() -> None:
    found = cm.check_policy(Mine(does_nothing))
    assert found[0].case == "one job on one node"
    assert str(found[0]) == (
        "never asks for the impossible, leaves no job behind [one job on one node]: policy mine: 1 job left waiting for ever "
        "on an idle machine (job 1): the policy must start them or return WakeAt(...)"
    )
    assert all(isinstance(one, cm.BrokenRule) for one in found)


def test_the_same_seed_finds_the_same() -> None:
    found = [cm.check_policy(Mine(breaks_its_promise), seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]
