"""The public names, for type checkers and editors; ``__init__.py`` reads them from here and imports each on first use."""

# fmt: off
from .machine.costs import SizeCost as SizeCost
from .measure.equivalence import Equivalence as Equivalence, equivalence_test as equivalence_test
from .errors import (
    ClusterModelError as ClusterModelError, DecisionError as DecisionError, ExecutionError as ExecutionError,
    LedgerError as LedgerError, OutputError as OutputError, PolicyError as PolicyError,
    SpecificationError as SpecificationError, StrandedJobsError as StrandedJobsError, TraceError as TraceError,
)
from .experiment.conformance import BrokenRule as BrokenRule, check_policy as check_policy
from .experiment.crossover import crossover as crossover, tradeoff_map as tradeoff_map
from .experiment.result import Result as Result, suggest_warm_up as suggest_warm_up
from .experiment.scenario import Scenario as Scenario
from .experiment.script import sweep as sweep
from .experiment.store import Store as Store
from .experiment.study import Precision as Precision, Study as Study, replicate_until as replicate_until
from .experiment.study_table import StudyTable as StudyTable
from .experiment.validate import Validation as Validation, Verdicts as Verdicts, validate as validate
from .machine.failure import Failure as Failure, NodeFailures as NodeFailures
from .machine.recorded_outages import read_outages as read_outages, Outages as Outages, outage_facts as outage_facts
from .machine.weibull_fit import fit_weibull as fit_weibull
from .figures.curves_bars import (
    bars as bars, by_size as by_size, curves as curves, differences as differences, improvements as improvements,
    ratios as ratios,
)
from .figures.tables import comparison_table as comparison_table
from .figures.workloads import distributions as distributions, estimates_used as estimates_used
from .workload.job import Job as Job, JobRow as JobRow
from .machine.checkpoints import Checkpointing as Checkpointing, CheckpointStore as CheckpointStore
from .machine.context_switch import ContextSwitch as ContextSwitch
from .machine.machine import Machine as Machine
from .machine.node_type import NodeType as NodeType
from .machine.partition import Partition as Partition
from .machine.reservation import Reservation as Reservation
from .machine.time_slicing import TimeSlicing as TimeSlicing
from .measure.explanation import Explanation as Explanation
from .measure.fairness import delays_by_later_jobs as delays_by_later_jobs
from .measure.job_table import bounded_slowdown as bounded_slowdown
from .measure.metrics import Summary as Summary
from .policies.agent import AgentPolicy as AgentPolicy
from .policies.backfilling.scheduler import Backfilling as Backfilling
from .policies.cheap_hours import CheapHours as CheapHours
from .policies.interface import (
    Checkpoint as Checkpoint, Decision as Decision, Kill as Kill, Migrate as Migrate, Place as Place, Policy as Policy,
    Reason as Reason, Reserve as Reserve, Resize as Resize, Rows as Rows, Setup as Setup, Start as Start, Suspend as Suspend,
    WakeAt as WakeAt,
)
from .policies.predictors import Predictor as Predictor
from .policies.registry import make_policy as make_policy, policy_names as policy_names, register_policy as register_policy
from .policies.slack import Quotas as Quotas, Slack as Slack
from .policies.view import (
    Batch as Batch, Outage as Outage, QueuedJob as QueuedJob, RunningJob as RunningJob, View as View,
)
from .machine.power import Power as Power
from .machine.price import Price as Price, read_price as read_price
from .recording.job_records import JobRecords as JobRecords
from .recording.ledger import Account as Account, Ledger as Ledger
from .recording.run_attempts import Status as Status
from .report.write import write_report as write_report
from .plans.profile import Profile as Profile
from .site.limits import Limits as Limits
from .site.order import FairShare as FairShare, Multifactor as Multifactor
from .site.qos import QOS as QOS
from .site.site import Site as Site
from .workload.speedup import DowneySpeedup as DowneySpeedup, LinearSpeedup as LinearSpeedup, Speedup as Speedup
from .measure.statistics import (
    Interval as Interval, batch_means as batch_means, interval as interval, paired_difference as paired_difference,
    paired_ratio as paired_ratio,
)
from .ticks import TICKS_PER_SECOND as TICKS_PER_SECOND, to_seconds as to_seconds, to_ticks as to_ticks
from .logs.csv_jobs import read_csv as read_csv
from .workload.distributions import (
    BySize as BySize, Exponential as Exponential, HyperErlang as HyperErlang, LogUniform as LogUniform, Lognormal as Lognormal,
    TwoStageUniform as TwoStageUniform, Zipf as Zipf,
)
from .workload.estimate_models import (
    FactorEstimates as FactorEstimates, PhiEstimates as PhiEstimates, RoundedEstimates as RoundedEstimates,
)
from .workload.provenance import ImportReport as ImportReport, Provenance as Provenance
from .workload.table import JobSource as JobSource, Workload as Workload
from .workload.trace_facts import trace_facts as trace_facts
from .workload.job_stream import (
    ArrivalProcess as ArrivalProcess, Bursts as Bursts, ClosedUsers as ClosedUsers, Cycle as Cycle, JobStream as JobStream,
    MarkovModulated as MarkovModulated, Poisson as Poisson, Sessions as Sessions,
)
from .logs.lsf import read_lsf as read_lsf
from .workload.malleable import Malleable as Malleable
from .workload.model import (
    RUN_TIME_FACTORS as RUN_TIME_FACTORS, SizeClass as SizeClass, WorkloadModel as WorkloadModel, fit_model as fit_model,
    load_model as load_model,
)
from .logs.pbs import read_pbs as read_pbs
from .logs.sge import read_sge as read_sge
from .logs.sacct import read_sacct as read_sacct
from .logs.slurm.slurm_site import SlurmSite as SlurmSite, read_slurm_site as read_slurm_site
from .workload.schedule import Schedule as Schedule, read_schedule as read_schedule
from .workload.merged import merge as merge
from .workload.swf import (
    SWF_FIELDS as SWF_FIELDS, SwfStream as SwfStream, read_swf as read_swf, write_swf as write_swf, write_trace as write_trace,
)
from .workload.synthetic import synthetic_workload as synthetic_workload
from .logs.trace_file import read_trace as read_trace
from .workload.transforms import JobFilter as JobFilter, LoadScale as LoadScale
