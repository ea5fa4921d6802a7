"""clustermodel: a process-oriented simulator of parallel job scheduling.

>>> from clustermodel import Machine, Scenario, synthetic_workload
>>> result = Scenario(machine=Machine(nodes=128), workload=synthetic_workload(jobs=100), policy="easy").run()
>>> result.summary().jobs
100
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from clustermodel.experiment.executor import sweep
    from clustermodel.experiment.replicate import replicate, replicate_until, suggest_warm_up
    from clustermodel.experiment.result import Result
    from clustermodel.experiment.scenario import Scenario
    from clustermodel.experiment.store import Store
    from clustermodel.experiment.study import Study
    from clustermodel.figures.curves_bars import bars, curves, improvements
    from clustermodel.figures.run_tables import by_size
    from clustermodel.figures.terminal_tables import comparison_table
    from clustermodel.figures.workloads import distributions, estimates_used
    from clustermodel.job import Job, JobRow
    from clustermodel.machine import Checkpointing, ContextSwitch, Machine, TimeSlicing
    from clustermodel.measure.explanation import Explanation
    from clustermodel.measure.fairness import delays_by_later_jobs
    from clustermodel.measure.metrics import Summary, bounded_slowdown
    from clustermodel.policies.backfilling.scheduler import Backfilling
    from clustermodel.policies.interface import (
        Batch,
        Checkpoint,
        Decision,
        Kill,
        Migrate,
        Policy,
        QueuedJob,
        Reason,
        Replicate,
        Reserve,
        RunningJob,
        Setup,
        Start,
        Suspend,
        View,
        WakeAt,
        Withdraw,
    )
    from clustermodel.policies.predictors import Predictor
    from clustermodel.policies.quotas import Quotas
    from clustermodel.policies.registry import make_policy, policy_names, register_policy
    from clustermodel.policies.slack import Slack
    from clustermodel.recording.job_records import JobRecords
    from clustermodel.recording.ledger import Account, Ledger
    from clustermodel.recording.run_attempts import Status
    from clustermodel.report.html import write_report
    from clustermodel.schedule.profile import Profile
    from clustermodel.speedup import DowneySpeedup, LinearSpeedup, Speedup
    from clustermodel.statistics import Interval, batch_means, interval, paired_difference, paired_ratio
    from clustermodel.ticks import TICKS_PER_SECOND, to_seconds, to_ticks
    from clustermodel.workload.facts import trace_facts
    from clustermodel.workload.hyper_erlang import HyperErlang
    from clustermodel.workload.model import RUN_TIME_FACTORS, SizeClass, WorkloadModel, load_model
    from clustermodel.workload.model_fit import fit_model
    from clustermodel.workload.swf import SwfStream, read_swf, write_swf
    from clustermodel.workload.swf_line import SWF_FIELDS
    from clustermodel.workload.synthetic import synthetic_workload
    from clustermodel.workload.table import JobSource, Provenance, Workload
    from clustermodel.workload.transforms import JobFilter, LoadScale

_MODULES = {
    "ClusterModelError": "errors",
    "DecisionError": "errors",
    "ExecutionError": "errors",
    "LedgerError": "errors",
    "OutputError": "errors",
    "PolicyError": "errors",
    "SpecificationError": "errors",
    "StrandedJobsError": "errors",
    "TraceError": "errors",
    "Job": "job",
    "JobRow": "job",
    "Checkpointing": "machine",
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
    "Batch": "policies.interface",
    "Checkpoint": "policies.interface",
    "Decision": "policies.interface",
    "Kill": "policies.interface",
    "Migrate": "policies.interface",
    "Policy": "policies.interface",
    "QueuedJob": "policies.interface",
    "Reason": "policies.interface",
    "Replicate": "policies.interface",
    "Reserve": "policies.interface",
    "RunningJob": "policies.interface",
    "Setup": "policies.interface",
    "Start": "policies.interface",
    "Suspend": "policies.interface",
    "View": "policies.interface",
    "WakeAt": "policies.interface",
    "Withdraw": "policies.interface",
    "Quotas": "policies.quotas",
    "Slack": "policies.slack",
    "Predictor": "policies.predictors",
    "bars": "figures.curves_bars",
    "curves": "figures.curves_bars",
    "improvements": "figures.curves_bars",
    "write_report": "report.html",
    "by_size": "figures.run_tables",
    "comparison_table": "figures.terminal_tables",
    "trace_facts": "workload.facts",
    "distributions": "figures.workloads",
    "estimates_used": "figures.workloads",
    "Profile": "schedule.profile",
    "DowneySpeedup": "speedup",
    "LinearSpeedup": "speedup",
    "Speedup": "speedup",
    "BrokenRule": "experiment.conformance",
    "check_policy": "experiment.conformance",
    "sweep": "experiment.executor",
    "Result": "experiment.result",
    "Scenario": "experiment.scenario",
    "Interval": "statistics",
    "batch_means": "statistics",
    "interval": "statistics",
    "paired_difference": "statistics",
    "paired_ratio": "statistics",
    "replicate": "experiment.replicate",
    "replicate_until": "experiment.replicate",
    "suggest_warm_up": "experiment.replicate",
    "Store": "experiment.store",
    "Study": "experiment.study",
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
    "SwfStream": "workload.swf",
    "read_swf": "workload.swf",
    "write_swf": "workload.swf",
    "SWF_FIELDS": "workload.swf_line",
    "synthetic_workload": "workload.synthetic",
    "JobSource": "workload.table",
    "Provenance": "workload.table",
    "Workload": "workload.table",
    "JobFilter": "workload.transforms",
    "LoadScale": "workload.transforms",
}
"""The module that defines each public name; it is imported when the name is first used."""

__all__ = [
    "RUN_TIME_FACTORS",
    "SWF_FIELDS",
    "TICKS_PER_SECOND",
    "Account",
    "Backfilling",
    "Batch",
    "BrokenRule",
    "Checkpoint",
    "Checkpointing",
    "ClusterModelError",
    "ContextSwitch",
    "Decision",
    "DecisionError",
    "DowneySpeedup",
    "ExecutionError",
    "Explanation",
    "HyperErlang",
    "Interval",
    "Job",
    "JobFilter",
    "JobRecords",
    "JobRow",
    "JobSource",
    "Kill",
    "Ledger",
    "LedgerError",
    "LinearSpeedup",
    "LoadScale",
    "Machine",
    "Migrate",
    "OutputError",
    "Policy",
    "PolicyError",
    "Predictor",
    "Profile",
    "Provenance",
    "QueuedJob",
    "Quotas",
    "Reason",
    "Replicate",
    "Reserve",
    "Result",
    "RunningJob",
    "Scenario",
    "Setup",
    "SizeClass",
    "Slack",
    "SpecificationError",
    "Speedup",
    "Start",
    "Status",
    "Store",
    "StrandedJobsError",
    "Study",
    "Summary",
    "Suspend",
    "SwfStream",
    "TimeSlicing",
    "TraceError",
    "View",
    "WakeAt",
    "Withdraw",
    "Workload",
    "WorkloadModel",
    "bars",
    "batch_means",
    "bounded_slowdown",
    "by_size",
    "check_policy",
    "comparison_table",
    "crossover",
    "curves",
    "delays_by_later_jobs",
    "distributions",
    "estimates_used",
    "fit_model",
    "improvements",
    "interval",
    "load_model",
    "make_policy",
    "paired_difference",
    "paired_ratio",
    "policy_names",
    "read_swf",
    "register_policy",
    "replicate",
    "replicate_until",
    "suggest_warm_up",
    "sweep",
    "synthetic_workload",
    "to_seconds",
    "to_ticks",
    "trace_facts",
    "tradeoff_map",
    "write_report",
    "write_swf",
]

_EXTRAS = {"report.html": "report", "experiment.executor": "study", "experiment.store": "study"}
"""Modules that import packages of an extra, with its name."""

if not TYPE_CHECKING:  # for which any name would exist

    def __getattr__(name: str) -> Any:
        """Return what a public name stands for."""
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        except ModuleNotFoundError as problem:
            if module not in _EXTRAS:
                raise
            extra, package = _EXTRAS[module], str(problem.name).partition(".")[0]
            raise ImportError(
                f"clustermodel.{name} needs the package {package}, which is missing; "
                f"pip install 'clustermodel[{extra}]', or '.[{extra}]' in a checkout"
            ) from None
        return value


def __dir__() -> list[str]:
    """Return all public names, also those not imported yet."""
    return sorted({*globals(), *__all__})
