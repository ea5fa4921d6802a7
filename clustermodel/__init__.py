"""clustermodel: a process-oriented simulator of parallel job scheduling.

>>> from clustermodel import Machine, Scenario, synthetic_workload
>>> result = Scenario(machine=Machine(nodes=128), workload=synthetic_workload(jobs=100), policy="easy").run()
>>> result.summary().jobs
100
"""

from clustermodel.interrupts import leave_quietly_while_starting

leave_quietly_while_starting()

from clustermodel.errors import (
    ClusterModelError,
    DecisionError,
    LedgerError,
    OutputError,
    SpecificationError,
    StrandedJobsError,
    TraceError,
)
from clustermodel.job import Job
from clustermodel.machine import Checkpointing, ContextSwitch, Machine, TimeSlicing
from clustermodel.policies import make_policy, policy_names, register_policy
from clustermodel.policies.base import (
    Batch,
    Checkpoint,
    Kill,
    Migrate,
    QueuedJob,
    Reason,
    Rehome,
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
from clustermodel.predict import Predictor
from clustermodel.speedup import DowneySpeedup, LinearSpeedup
from clustermodel.study.check import BrokenRule, check_policy
from clustermodel.study.scenario import Result, Scenario
from clustermodel.study.statistics import interval, paired_difference, replicate
from clustermodel.study.tradeoff import crossover, tradeoff_map
from clustermodel.workload.hyper_erlang import HyperErlang
from clustermodel.workload.model import WorkloadModel, fit_model, load_model
from clustermodel.workload.swf import SwfStream, read_swf
from clustermodel.workload.synthetic import synthetic_workload
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import JobFilter, LoadScale

__all__ = [
    "Batch",
    "BrokenRule",
    "Checkpoint",
    "Checkpointing",
    "ClusterModelError",
    "ContextSwitch",
    "DecisionError",
    "DowneySpeedup",
    "HyperErlang",
    "Job",
    "JobFilter",
    "Kill",
    "LedgerError",
    "LinearSpeedup",
    "LoadScale",
    "Machine",
    "Migrate",
    "OutputError",
    "Predictor",
    "QueuedJob",
    "Reason",
    "Rehome",
    "Replicate",
    "Reserve",
    "Result",
    "RunningJob",
    "Scenario",
    "Setup",
    "SpecificationError",
    "Start",
    "StrandedJobsError",
    "Suspend",
    "SwfStream",
    "TimeSlicing",
    "TraceError",
    "View",
    "WakeAt",
    "Withdraw",
    "Workload",
    "WorkloadModel",
    "check_policy",
    "crossover",
    "fit_model",
    "interval",
    "load_model",
    "make_policy",
    "paired_difference",
    "policy_names",
    "read_swf",
    "register_policy",
    "replicate",
    "synthetic_workload",
    "tradeoff_map",
]
