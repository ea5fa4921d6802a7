"""``clustermodel crossover``: the value of a parameter of the machine, or the load, at which one policy overtakes another."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

import clustermodel.cli.options as opt
from clustermodel.cli.interrupts import leaving_quietly
from clustermodel.cli.options import FILE, Parsed, option, option_group
from clustermodel.cli.standard_streams import json_option, print_json, progress_of_sweep
from clustermodel.errors import SpecificationError, counted, did_you_mean, quoted
from clustermodel.experiment.design import MEASURED
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.worker import Origin
from clustermodel.figures.study_tables import notes_of_runs
from clustermodel.figures.terminal import literal, print_notes, print_table, standard_error, standard_output
from clustermodel.figures.text_table import frame_table
from clustermodel.machine.machine import Machine
from clustermodel.measure.quantities import named
from clustermodel.policies.registry import policy_names
from clustermodel.sim.compiled import advice as compiled_advice
from clustermodel.validation import choice
from clustermodel.workload.shipped import shipped_models
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import LoadScale

if TYPE_CHECKING:
    from clustermodel.experiment.crossover import Crossover, CrossoverStudy

_LOAD: Final = "load"
_JOBS_MADE: Final = 1000
_STEPS: Final = 40  # of the range, that the crossing is found to
_SWITCH: Final = "machine.context_switch.fraction"
_UNITS: Final = {
    _SWITCH: "of a slice", "machine.context_switch.seconds": "s", "machine.nodes": "nodes", "machine.time_slicing.mpl": "gangs",
}  # fmt: skip
"""Units of fields whose names do not end in one."""


class _Range(NamedTuple):
    """What ``--over`` says: the values of an option, of a field by its dotted name, or of the load."""

    name: str
    """As typed: ``context-switch``, ``machine.checkpointing.restart_s``, ``load``."""
    low: float
    high: float
    in_seconds: bool

    @classmethod
    def from_text(cls, text: str) -> _Range:
        """Return the range that a text gives."""
        name, _, values = text.replace(" ", "").removeprefix("--").partition("=")
        in_seconds = all(end.endswith("s") for end in values.split(":"))
        try:
            low, high = (_number(end.removesuffix("s") if in_seconds else end) for end in values.split(":"))
        except ValueError:
            name = ""
        if not name:
            raise ValueError(f"{quoted(text)} is not NAME=LOW:HIGH, as context-switch=0:0.1 or restart=0s:60s")
        if not (isfinite(low) and isfinite(high) and low < high):
            raise ValueError(f"{quoted(text)} is not allowed; LOW must be less than HIGH, both finite")
        return cls(name, low, high, in_seconds)

    @property
    def option(self) -> str:
        """The parameter of the command that has this name."""
        return self.name.replace("-", "_")

    @property
    def factor(self) -> str:
        """The name of the factor in tables: the option, or the last part of a dotted name."""
        return self.option.rpartition(".")[2]

    @property
    def field(self) -> str:
        """The dotted name of the field, empty for the load."""
        numbers = opt.numbers_of_machines()
        path = f"machine.{numbers[self.name][0]}" if self.name in numbers else self.name if "." in self.name else ""
        return "machine.context_switch.seconds" if self.in_seconds and path == _SWITCH else path

    @property
    def step(self) -> float:
        """The resolution: a fortieth of the range, or whole numbers."""
        of_field = [kind for path, kind in opt.numbers_of_machines().values() if f"machine.{path}" == self.field]
        whole = isinstance(self.low, int) and isinstance(self.high, int) and self.name != _LOAD and float not in of_field
        return max((self.high - self.low) // _STEPS, 1) if whole else (self.high - self.low) / _STEPS

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return _UNITS.get(self.field) or named(self.field.rpartition(".")[2]).unit or ("s" if self.in_seconds else "")

    def require_known(self, options: Mapping[str, Any]) -> None:
        """Refuse a name that is neither the load nor a number of the machine, and one whose option is given too."""
        names = [_LOAD, *opt.numbers_of_machines()]
        if "." not in self.name and self.name not in names:
            must = (
                f"it must be {_LOAD}, an option of the machine that is a number, or a field as machine.time_slicing.quantum_s"
            )
            raise SpecificationError(f"--over: {quoted(self.name)} is not allowed{did_you_mean(self.name, names)}; {must}")
        if self.in_seconds and not self.field.endswith(("_s", ".seconds")):
            raise SpecificationError(f"--over: {self.name} is not a number of seconds; leave out the s")
        if self.name == _LOAD and self.low <= 0:
            raise SpecificationError(f"--over: load={self.low:g} is not allowed; it must be > 0")
        if options.get(self.option) is not None:
            raise SpecificationError(f"--{self.name}: --over varies it; leave it out")


def _number(text: str) -> float:
    return int(text) if text.isdecimal() else float(text)


@dataclass(frozen=True, eq=False)
class _Scenarios:
    """Makes the scenario of a trial from the options of the command."""

    options: Mapping[str, Any]
    over: _Range

    def __call__(self, policy: str, seed: int, **values: float) -> Scenario:
        """Return the scenario of a policy at a value of the parameter, with the jobs that the seed draws."""
        (value,) = values.values()
        options = {**self.options, "policies": (policy,)}
        if self.over.option in options and not self.over.in_seconds:  # as typed in the option
            options[self.over.option] = value
        elif self.over.field:
            options["settings"] = (*options["settings"], f"{self.over.field}={value!r}")
        machine, is_given = opt.machine_of(options)
        workload = self.jobs(seed)
        if not is_given:
            machine = opt.machine_for(machine, workload, options["trace"])
        if self.over.name == _LOAD:
            offered = workload.offered_load(machine.processors, kill_at_estimate=machine.kill_at_estimate)
            workload = workload.scaled(LoadScale(interarrival=offered / value))
        (scenario,) = opt.scenarios_of(options, machine, workload, seed=seed)
        return scenario

    @lru_cache(maxsize=2)  # noqa: B019  the runs of a replication follow each other
    def jobs(self, seed: int) -> Workload:
        """Return the jobs of a replication: drawn anew, with the nodes of the smallest machine where it varies."""
        nodes = self.over.low if self.over.name == "nodes" else self.options["nodes"]
        return opt.load_workload({**self.options, "nodes": nodes, "seed": seed})


_QUESTION: Final = option_group(
    "Question",
    option("--between", "The two policies, each as NAME or NAME:key=value,key=value.", nargs=2, required=True,
           metavar="A B", shell_complete=opt.completion(policy_names)),
    option("--over", "The parameter and its range: an option of the machine that is a number, as context-switch=0:0.1; any "
           "field, as machine.time_slicing.quantum_s=10:600; or load=0.4:0.9.", Parsed("NAME=LOW:HIGH", _Range.from_text),
           required=True),
    option("--measure", "The column to compare (docs/outputs).", default="mean_bounded_slowdown", metavar="COLUMN"),
    option("--replications", "Runs of each policy at each value, each with its own jobs.", click.IntRange(2), 10),
)  # fmt: skip
_JOBS: Final = option_group(
    "Jobs",
    option("--trace", "SWF file, or a log of sacct, PBS, LSF or SGE; replications draw its weeks anew (--resample).", FILE),
    option("--model", f"Draw the jobs from a workload model: {', '.join(shipped_models())}, or a file of `trace fit`; default: "
           "a synthetic year.", shell_complete=opt.completion(shipped_models)),
    option("--jobs", f"Number of jobs to make in each replication; default: {_JOBS_MADE:,}.", click.IntRange(2, 1_000_000)),
)  # fmt: skip
_OUTPUT: Final = option_group(
    "Output",
    json_option("Print one JSON object: between, over, at, low, high, unit, found, and what they follow from."),
    option("--figure", "File (.png, .svg, .pdf) for a figure of the ratios over the parameter.", FILE),
    option("--out", "Directory to keep the runs in: the same command with more replications adds to them.", FILE),
    option("--workers", "Processes of this machine; default: one for each processor that it may use.", click.IntRange(1)),
)  # fmt: skip


@click.command(cls=opt.GroupedCommand)
@_QUESTION
@_JOBS
@_OUTPUT
@option_group(
    "Machine", option("--nodes", "Size of the machine; default: that of the trace (MaxProcs) or of the model, else 128.", int),
    opt.SITE, opt.ORDER, opt.RESERVATION, opt.MALLEABLE, opt.SEED,
)  # fmt: skip
@opt.machine_options
@opt.trace_options
def crossover(between: tuple[str, str], over: _Range, measure: str, replications: int, **options: Any) -> int:
    """Find the value of a parameter at which one policy overtakes another.

    The two policies run the same jobs at a few values of the parameter, in several replications; bisection finds where the
    mean of their ratio is 1, and the values between which that may be (95 %).  It belongs to these jobs on this machine: on
    others the crossing lies elsewhere.

    \b
    Examples:
      clustermodel crossover --model blue-pacific --between bf bgs
          --over context-switch=0:0.1
      clustermodel crossover --between fcfs easy --over load=0.3:0.9 --figure a.png
      clustermodel crossover --trace kth.swf.gz --between easy pv-easy
          --over checkpoint=0:600 --measure mean_wait_s
    """
    over.require_known(options)
    choice("--measure", measure, MEASURED)
    if between[0] == between[1]:
        raise SpecificationError(f"--between: {quoted(between[0])} is given twice; a crossover is of two policies")
    trace, figure = options["trace"], options.pop("figure")
    out, workers, as_json, seed = (options.pop(name) for name in ("out", "workers", "as_json", "seed"))
    if trace is not None and (both := [name for name in ("model", "jobs") if options[name] is not None]):
        raise SpecificationError(f"--{both[0]}: the jobs come from --trace {trace}; give one of the two")
    opt.require_writable({"figure": figure})
    if trace is not None:
        options["resample"] = options["resample"] or "weeks"
    options["jobs"] = options["jobs"] or _JOBS_MADE
    make = _Scenarios(options, over)
    for policy, value in product(between, (over.high, over.low)):  # what is wrong with an option is said before the first run
        machine = make(policy, seed, value=value).used_machine
    about: dict[str, Any] = {"step": over.step, "unit": over.unit, "replications": replications, "seed": seed}
    with leaving_quietly():
        from clustermodel.experiment.crossover import crossover as search  # noqa: PLC0415  with pandas

    found = _searched(search(make, over.factor, over.low, over.high, between, measure, ratios=True, **about), out, workers)
    if figure is not None:
        from clustermodel.figures.style import save  # noqa: PLC0415  matplotlib takes a second to import

        save(found.plot, figure)
        standard_error().print(f"figure: {literal(figure)}")
    if as_json:
        print_json(json.dumps(_whole(found, between, over.name), indent=2))
        return 0
    answer = f"{named(measure).name}: {found}"
    advice = found.advice.replace("replications=", "--replications ")
    for line in filter(None, (answer, advice, _setting(machine, make.jobs(seed), over, replications))):
        standard_output().print(literal(line))
    print_table(frame_table(found.frame.rename_axis(over.factor), " / ".join(between)))
    return 0


def _searched(study: CrossoverStudy, out: Path | None, workers: int | None) -> Crossover:
    """Run the search and return its answer; notes on the runs go to standard error."""
    with leaving_quietly():
        from clustermodel.experiment.executor import Options, run_trials  # noqa: PLC0415  with pyarrow

    notes, remarks = standard_error(), list[str]()
    kept = tempfile.TemporaryDirectory(prefix="clustermodel-") if out is None else nullcontext(str(out))
    with kept as folder, progress_of_sweep(notes) as advance:
        running = Options(workers=workers, progress=advance, note=remarks.append)
        _, table = run_trials(Origin(design=study), folder, running)
    for remark in filter(None, (*remarks, compiled_advice(table.spent.in_runs_s if table.spent else 0.0))):
        notes.print(literal(remark))
    print_notes(notes_of_runs(table), notes)
    return study.conclude(table)


def _setting(machine: Machine, jobs: Workload, over: _Range, replications: int) -> str:
    """Return the machine, the load and the jobs to which the answer belongs."""
    load = f", load {jobs.offered_load(machine.processors, kill_at_estimate=machine.kill_at_estimate):.2f}"
    size = "" if over.name == "nodes" else f" on {counted(machine.nodes, 'node')}"
    what = f"{counted(len(jobs), 'job')} of {jobs.name}{size}{'' if over.name in (_LOAD, 'nodes') else load}"
    return f"for {what}, {replications} replications; with other jobs or another machine the crossing lies elsewhere"


def _whole(found: Crossover, between: tuple[str, str], name: str) -> dict[str, object]:
    """Return the answer as one object for JSON; bounds that do not exist are null."""
    numbers = {key: value if isfinite(value) else None for key in ("at", "low", "high") for value in [getattr(found, key)]}
    answer: dict[str, object] = {"between": list(between), "over": name, **numbers, "unit": found.unit}
    answer |= {"found": isfinite(found.at), "measure": found.measure, "certain": found.certain, "sentence": str(found)}
    answer |= {"lower_before": found.lower_before, "lower_after": found.lower_after, "sign_changes": found.changes}
    rows = found.frame.rename_axis("value").reset_index().to_dict("records")
    return answer | {"advice": found.advice or None, "ratios": rows}
