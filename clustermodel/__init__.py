"""clustermodel: a process-oriented simulator of parallel job scheduling.

>>> from clustermodel import Machine, Scenario, synthetic_workload
>>> machine, jobs = Machine(nodes=128), synthetic_workload(jobs=100)
>>> result = Scenario(machine=machine, workload=jobs, policy="easy").run()
>>> result.summary().jobs
100
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustermodel.equivalence import Equivalence, equivalence_test
    from clustermodel.errors import (
        ClusterModelError,
        DecisionError,
        ExecutionError,
        LedgerError,
        OutputError,
        PolicyError,
        SpecificationError,
        StrandedJobsError,
        TraceError,
    )
    from clustermodel.experiment.conformance import BrokenRule, check_policy
    from clustermodel.experiment.crossover import crossover, tradeoff_map
    from clustermodel.experiment.result import Result
    from clustermodel.experiment.scenario import Scenario
    from clustermodel.experiment.script import sweep
    from clustermodel.experiment.store import Store
    from clustermodel.experiment.study import Precision, Study, replicate_until
    from clustermodel.experiment.study_table import StudyTable
    from clustermodel.experiment.validate import Validation, Verdicts, validate
    from clustermodel.experiment.warm_up import suggest_warm_up
    from clustermodel.failures.failure import Failure, NodeFailures
    from clustermodel.failures.outage_files import read_outages
    from clustermodel.failures.outages import Outages, outage_facts
    from clustermodel.failures.weibull import fit_weibull
    from clustermodel.figures.curves_bars import bars, curves, improvements
    from clustermodel.figures.run_tables import by_size
    from clustermodel.figures.tables import comparison_table
    from clustermodel.figures.workloads import distributions, estimates_used
    from clustermodel.job import Job, JobRow
    from clustermodel.machine import Checkpointing, CheckpointStore, ContextSwitch, Machine, TimeSlicing
    from clustermodel.measure.explanation import Explanation
    from clustermodel.measure.fairness import delays_by_later_jobs
    from clustermodel.measure.metrics import Summary, bounded_slowdown
    from clustermodel.policies.backfilling.scheduler import Backfilling
    from clustermodel.policies.interface import (
        Checkpoint,
        Decision,
        Kill,
        Migrate,
        Policy,
        Reason,
        Replicate,
        Reserve,
        Setup,
        Start,
        Suspend,
        WakeAt,
        Withdraw,
    )
    from clustermodel.policies.predictors import Predictor
    from clustermodel.policies.quotas import Quotas
    from clustermodel.policies.registry import make_policy, policy_names, register_policy
    from clustermodel.policies.slack import Slack
    from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View
    from clustermodel.recording.job_records import JobRecords
    from clustermodel.recording.ledger import Account, Ledger
    from clustermodel.recording.run_attempts import Status
    from clustermodel.report.write import write_report
    from clustermodel.schedule.profile import Profile
    from clustermodel.speedup import DowneySpeedup, LinearSpeedup, Speedup
    from clustermodel.statistics import Interval, batch_means, interval, paired_difference, paired_ratio
    from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks
    from clustermodel.workload.arrivals import ArrivalProcess, Bursts, Cycle, MarkovModulated, Poisson
    from clustermodel.workload.csv_jobs import read_csv
    from clustermodel.workload.distributions import BySize, Exponential, Lognormal, LogUniform, TwoStageUniform, Zipf
    from clustermodel.workload.estimates import FactorEstimates, PhiEstimates, RoundedEstimates
    from clustermodel.workload.facts import trace_facts
    from clustermodel.workload.hyper_erlang import HyperErlang
    from clustermodel.workload.import_report import ImportReport
    from clustermodel.workload.job_stream import JobStream
    from clustermodel.workload.lsf import read_lsf
    from clustermodel.workload.merging import merge
    from clustermodel.workload.model import RUN_TIME_FACTORS, SizeClass, WorkloadModel, load_model
    from clustermodel.workload.model_fit import fit_model
    from clustermodel.workload.pbs import read_pbs
    from clustermodel.workload.sacct import read_sacct
    from clustermodel.workload.schedule import Schedule, read_schedule
    from clustermodel.workload.sessions import ClosedUsers, Sessions
    from clustermodel.workload.swf import SWF_FIELDS, SwfStream, read_swf, write_swf, write_trace
    from clustermodel.workload.synthetic import synthetic_workload
    from clustermodel.workload.table import JobSource, Provenance, Workload
    from clustermodel.workload.trace_file import read_trace
    from clustermodel.workload.transforms import JobFilter, LoadScale

_MODULES = {  # the module that defines each public name; it is imported when the name is first used
    "ClusterModelError": "errors",
    "DecisionError": "errors",
    "ExecutionError": "errors",
    "LedgerError": "errors",
    "OutputError": "errors",
    "PolicyError": "errors",
    "SpecificationError": "errors",
    "StrandedJobsError": "errors",
    "TraceError": "errors",
    "Failure": "failures.failure",
    "NodeFailures": "failures.failure",
    "Outages": "failures.outages",
    "fit_weibull": "failures.weibull",
    "outage_facts": "failures.outages",
    "read_outages": "failures.outage_files",
    "Job": "job",
    "JobRow": "job",
    "Checkpointing": "machine",
    "CheckpointStore": "machine",
    "ContextSwitch": "machine",
    "Machine": "machine",
    "TimeSlicing": "machine",
    "Explanation": "measure.explanation",
    "delays_by_later_jobs": "measure.fairness",
    "Account": "recording.ledger",
    "Ledger": "recording.ledger",
    "Summary": "measure.metrics",
    "bounded_slowdown": "measure.metrics",
    "JobRecords": "recording.job_records",
    "Status": "recording.run_attempts",
    "make_policy": "policies.registry",
    "policy_names": "policies.registry",
    "register_policy": "policies.registry",
    "Backfilling": "policies.backfilling.scheduler",
    "Batch": "policies.view",
    "Checkpoint": "policies.interface",
    "Decision": "policies.interface",
    "Kill": "policies.interface",
    "Migrate": "policies.interface",
    "Policy": "policies.interface",
    "QueuedJob": "policies.view",
    "Reason": "policies.interface",
    "Replicate": "policies.interface",
    "Reserve": "policies.interface",
    "RunningJob": "policies.view",
    "Setup": "policies.interface",
    "Start": "policies.interface",
    "Suspend": "policies.interface",
    "View": "policies.view",
    "WakeAt": "policies.interface",
    "Withdraw": "policies.interface",
    "Quotas": "policies.quotas",
    "Slack": "policies.slack",
    "Predictor": "policies.predictors",
    "bars": "figures.curves_bars",
    "curves": "figures.curves_bars",
    "improvements": "figures.curves_bars",
    "write_report": "report.write",
    "by_size": "figures.run_tables",
    "comparison_table": "figures.tables",
    "trace_facts": "workload.facts",
    "distributions": "figures.workloads",
    "estimates_used": "figures.workloads",
    "Profile": "schedule.profile",
    "DowneySpeedup": "speedup",
    "LinearSpeedup": "speedup",
    "Speedup": "speedup",
    "BrokenRule": "experiment.conformance",
    "check_policy": "experiment.conformance",
    "sweep": "experiment.script",
    "Result": "experiment.result",
    "Scenario": "experiment.scenario",
    "Equivalence": "equivalence",
    "equivalence_test": "equivalence",
    "Validation": "experiment.validate",
    "Verdicts": "experiment.validate",
    "validate": "experiment.validate",
    "Interval": "statistics",
    "batch_means": "statistics",
    "interval": "statistics",
    "paired_difference": "statistics",
    "paired_ratio": "statistics",
    "replicate_until": "experiment.study",
    "suggest_warm_up": "experiment.warm_up",
    "Store": "experiment.store",
    "Precision": "experiment.study",
    "Study": "experiment.study",
    "StudyTable": "experiment.study_table",
    "crossover": "experiment.crossover",
    "tradeoff_map": "experiment.crossover",
    "TICKS_PER_SECOND": "ticks",
    "to_seconds": "ticks",
    "to_ticks": "ticks",
    "HyperErlang": "workload.hyper_erlang",
    "RUN_TIME_FACTORS": "workload.model",
    "SizeClass": "workload.model",
    "WorkloadModel": "workload.model",
    "fit_model": "workload.model_fit",
    "load_model": "workload.model",
    "BySize": "workload.distributions",
    "Exponential": "workload.distributions",
    "LogUniform": "workload.distributions",
    "Lognormal": "workload.distributions",
    "TwoStageUniform": "workload.distributions",
    "Zipf": "workload.distributions",
    "ArrivalProcess": "workload.arrivals",
    "Bursts": "workload.arrivals",
    "Cycle": "workload.arrivals",
    "MarkovModulated": "workload.arrivals",
    "Poisson": "workload.arrivals",
    "FactorEstimates": "workload.estimates",
    "PhiEstimates": "workload.estimates",
    "RoundedEstimates": "workload.estimates",
    "ClosedUsers": "workload.sessions",
    "Sessions": "workload.sessions",
    "ImportReport": "workload.import_report",
    "JobStream": "workload.job_stream",
    "merge": "workload.merging",
    "read_csv": "workload.csv_jobs",
    "read_lsf": "workload.lsf",
    "read_pbs": "workload.pbs",
    "read_sacct": "workload.sacct",
    "Schedule": "workload.schedule",
    "read_schedule": "workload.schedule",
    "SwfStream": "workload.swf",
    "read_swf": "workload.swf",
    "read_trace": "workload.trace_file",
    "write_swf": "workload.swf",
    "write_trace": "workload.swf",
    "SWF_FIELDS": "workload.swf",
    "synthetic_workload": "workload.synthetic",
    "JobSource": "workload.table",
    "Provenance": "workload.table",
    "Workload": "workload.table",
    "JobFilter": "workload.transforms",
    "LoadScale": "workload.transforms",
}

__all__ = [
    "RUN_TIME_FACTORS", "SWF_FIELDS", "TICKS_PER_SECOND", "Account", "ArrivalProcess", "Backfilling", "Batch",
    "BrokenRule", "Bursts", "BySize", "Checkpoint", "CheckpointStore", "Checkpointing", "ClosedUsers",
    "ClusterModelError", "ContextSwitch", "Cycle", "Decision", "DecisionError", "DowneySpeedup", "Equivalence",
    "ExecutionError", "Explanation", "Exponential", "FactorEstimates", "Failure", "HyperErlang", "ImportReport",
    "Interval", "Job", "JobFilter", "JobRecords", "JobRow", "JobSource", "JobStream", "Kill", "Ledger", "LedgerError",
    "LinearSpeedup", "LoadScale", "LogUniform", "Lognormal", "Machine", "MarkovModulated", "Migrate", "NodeFailures",
    "Outages", "OutputError", "PhiEstimates", "Poisson", "Policy", "PolicyError", "Precision", "Predictor", "Profile",
    "Provenance", "QueuedJob", "Quotas", "Reason", "Replicate", "Reserve", "Result", "RoundedEstimates", "RunningJob",
    "Scenario", "Schedule", "Sessions", "Setup", "SizeClass", "Slack", "SpecificationError", "Speedup", "Start", "Status",
    "Store", "StrandedJobsError", "Study", "StudyTable", "Summary", "Suspend", "SwfStream", "TimeSlicing", "TraceError",
    "TwoStageUniform", "Validation", "Verdicts", "View", "WakeAt", "Withdraw", "Workload", "WorkloadModel", "Zipf",
    "bars", "batch_means", "bounded_slowdown", "by_size", "check_policy", "comparison_table", "crossover", "curves",
    "delays_by_later_jobs", "distributions", "equivalence_test", "estimates_used", "fit_model", "fit_weibull",
    "improvements", "interval", "load_model", "make_policy", "merge", "outage_facts", "paired_difference", "paired_ratio",
    "policy_names", "read_csv", "read_lsf", "read_outages", "read_pbs", "read_sacct", "read_schedule", "read_swf", "read_trace",
    "register_policy", "replicate_until", "suggest_warm_up", "sweep", "synthetic_workload", "to_seconds", "to_ticks",
    "trace_facts", "tradeoff_map", "validate", "write_report", "write_swf", "write_trace",
]  # fmt: skip

if not TYPE_CHECKING:  # for which any name would exist

    def __getattr__(name: str) -> Any:
        """Return what a public name stands for."""
        if (module := _MODULES.get(name)) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return value


def __dir__() -> list[str]:
    """Return all public names, also those not imported yet."""
    return sorted({*globals(), *__all__})
