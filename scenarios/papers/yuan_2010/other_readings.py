"""Would another reading of EASY, or of the Last Model, give the published numbers of Yuan et al. 2010 that differ most?

In table 4 of Yuan et al. 2010 (section 5.2.1) EASY backfills more jobs and blocks fewer than here, and the paper's PV-EASY has
slowdowns like EASY's, which it has not here (strict_fairness.py).  The study has EASY whose extra nodes are not used up, so
that each backfilled job may take all of them; the same with running jobs that have outlived their estimates expected to run for
ever; and PV-EASY with other readings of "the last job of the same user".  Run times are as recorded.

    clustermodel sweep scenarios/papers/yuan_2010/other_readings.py --out results --set jobs=2000
"""

from functools import partial

from clustermodel import Batch, Decision, Machine, Policy, Profile, QueuedJob, Scenario, Setup, Start, Study, View
from clustermodel.experiment.measure_table import Columns, Scaled, measure_table, published_table
from clustermodel.policies.predictors import LastModel
from clustermodel.policies.pv_easy import PVEasy
from clustermodel.workload.study_jobs import study_jobs

SECOND, FOR_EVER = 1_000_000, 2**60
"""Ticks."""
SHOWN = ("mean_bounded_slowdown", "mean_weighted_bounded_slowdown", "backfilled", "blocked", "delayed")
COLUMNS: Columns = {
    **dict(zip(("MBS", "MWBS", *SHOWN[2:]), SHOWN, strict=True)),
    "mean delay (min)": Scaled("mean_delay_by_later_s", 1 / 60),
    "wasted load (%)": Scaled("wasted_load", 100),
}


class Generous:
    """EASY whose extra nodes are not used up; a job that outlives its estimate is expected to run for ``late`` ticks more."""

    def __init__(self, late: int) -> None:
        self.name = "generous EASY"
        self._late = late

    def begin(self, setup: Setup) -> None:
        """Note the size of the machine."""
        self._nodes = setup.nodes

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        """Start what fits; backfill as shadow time and extra nodes allow."""
        now, idle = view.now, view.idle
        running = [(gang.expected_end, gang.nodes) for gang in view.running.values()]
        load = [(end if end > now else now + self._late, nodes) for end, nodes in running]
        starts: list[Decision] = []
        waiting = iter(view.waiting.values())
        for head in waiting:
            if head.nodes > idle:
                break
            starts.append(Start(job=head))
            load.append((now + head.estimate, head.nodes))
            idle -= head.nodes
        else:
            return starts
        profile = Profile.of_running(self._nodes, now, load)
        shadow = profile.earliest(head.nodes, 1)
        extra = profile.free_at(shadow) - head.nodes
        for job in waiting if idle else ():
            if job.nodes <= idle and (now + job.estimate <= shadow or job.nodes <= extra):
                starts.append(Start(job=job))
                idle -= job.nodes
        return starts


class PredictedAtSubmission(LastModel):
    """The Last Model, asked when a job is submitted and not again."""

    def begin(self, setup: Setup) -> None:
        """Forget all users and jobs."""
        super().begin(setup)
        self._predicted: dict[int, int] = {}

    def submitted(self, job: QueuedJob) -> None:
        """Predict."""
        self._predicted[job.id] = super().predict(job)

    def predict(self, job: QueuedJob) -> int:
        """Return the prediction made at submission."""
        return self._predicted[job.id]


class LastSubmitted(PredictedAtSubmission):
    """The accuracy of the user's last submitted job, completed or not; no real scheduler knows it."""

    def begin(self, setup: Setup) -> None:
        """Take the run times from the setup."""
        super().begin(setup)
        self._run_time = setup.run_time

    def submitted(self, job: QueuedJob) -> None:
        """Predict; from now on this is the user's last job."""
        super().submitted(job)
        super().ended(job, self._run_time(job))

    def ended(self, job: QueuedJob, run: int) -> None:
        """Do nothing: the submission has counted."""


class WithoutLimit(LastModel):
    """The Last Model without the limit at the estimate."""

    def predict(self, job: QueuedJob) -> int:
        """Return the estimate times the accuracy."""
        run, estimate = self._last.get(job.user, (1, 1))
        return max(job.estimate * run // estimate, 1)


READINGS: dict[str, str | Policy] = {
    "EASY": "easy",
    "EASY, extra nodes not used up": Generous(SECOND),
    "EASY, and late jobs run for ever": Generous(FOR_EVER),
    "PV-EASY": "pv-easy",
    "PV-EASY, predicted at submission": PVEasy(predictor=PredictedAtSubmission()),
    "PV-EASY, last submitted job": PVEasy(predictor=LastSubmitted()),
    "PV-EASY, no limit at the estimate": PVEasy(predictor=WithoutLimit()),
}


def study(trace: str | None = None, nodes: int = 128, jobs: int = 0, replications: int = 1) -> Study:
    """Return the study; ``jobs`` is 0 for all jobs of the trace, or 20,000 synthetic ones."""
    paper = published_table(__file__, "table 1", "table 4", "tables 5 and 6", trace=trace)

    def scenario(policy: str | Policy, seed: int) -> Scenario:
        workload = study_jobs(trace, jobs=jobs or None, nodes=nodes, seed=seed)
        return Scenario(machine=Machine(nodes=nodes, kill_at_estimate=False), workload=workload, policy=policy, seed=seed)

    return Study(
        name="other readings",
        factors={"policy": READINGS},
        scenario=scenario,
        replications=replications,
        shown=(*SHOWN, "mean_delay_by_later_s", "wasted_load"),
        tables={"Other readings": partial(measure_table, columns=COLUMNS, by=["policy"], published=paper)},
        figures={"Other readings": lambda table: table.plot.bars(y=["backfilled", "blocked", "mean_bounded_slowdown"])},
    )
