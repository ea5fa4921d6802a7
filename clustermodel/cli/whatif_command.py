"""``clustermodel whatif``: the waits that a log has recorded, and those of simulated policies on the same jobs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import isnan, nan
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from rich.console import Console

import clustermodel.cli.options as opt
from clustermodel.arrays import dot
from clustermodel.cli.options import option, option_group, option_name
from clustermodel.cli.standard_streams import json_option, print_json, progress_of_run
from clustermodel.errors import SpecificationError, counted, shown
from clustermodel.experiment.comparisons import (
    Case,
    JobTimes,
    answers_of,
    blocks_of,
    comparisons_of,
    loads_of,
    machine_sizes,
    resampled,
    sizes_of,
    times_of,
)
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import Scenario
from clustermodel.figures.run_tables import HEADINGS, differs
from clustermodel.figures.terminal import literal, print_notes, print_table, standard_error
from clustermodel.figures.text_table import Column, TextTable, measure_columns
from clustermodel.machine.machine import Machine
from clustermodel.measure.answers import Answer
from clustermodel.measure.input_notes import Costs, notes_on_rejected, rule_notes, unused_costs_of_machines
from clustermodel.measure.metrics import ENERGY, SINCE_ELIGIBLE, Observed, observed_schedule, other_machine
from clustermodel.measure.recorded_groups import GROUPINGS, Group, RecordedGroups
from clustermodel.policies.registry import policy_label
from clustermodel.report.answer_page import AnswerPage
from clustermodel.site.inferred_site import InferredSite, inferred_site
from clustermodel.site.site import Site
from clustermodel.text.files import write_file
from clustermodel.workload.job_columns import SUSPENDED
from clustermodel.workload.streams_of_run import JobStreams
from clustermodel.workload.table import Workload
from clustermodel.workload.transforms import LoadScale, Unit

_MEASURES: Final = ("jobs", "mean_wait_s", "median_wait_s", "p95_wait_s", "mean_bounded_slowdown", "utilization")
_MOST_GROUPS: Final = 12  # rows of a table of groups
_WITHOUT_SITES: Final = 2  # what the rows are called where there are no rules: the empty text and "none"
SUSPENDING: Final = ("ss", "mgs")
"""Policies that suspend jobs, and that share nodes in time: they run beside, where a log shows that."""
_FEW_SUSPENDED: Final = 0.01  # of the node time for which jobs executed
_ALIKE: Final = 0.1  # difference of mean waits that needs no explanation


class _OfTrace(opt.GroupedCommand):
    """A command that tells those who forget ``--trace`` what to write."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter:
            _, others, _ = self.make_parser(ctx).parse_args(given)
            problem = f"{shown(others[0])}: a log is given with --trace" if others else "--trace: no log is given"
            log = shown(others[0] if others else "jobs.sacct")
            raise SpecificationError(f"{problem}: clustermodel whatif --trace {log}") from None


@click.command(cls=_OfTrace)
@option_group("Jobs", option("--trace", "Log of sacct, PBS, LSF or SGE, or SWF file.", opt.FILE, required=True))
@option_group(
    "Rules of the site",
    option("--site sites", "Rules of the site, as limits of users: a TOML file (docs/site); repeat to compare several.",
           opt.FILE, multiple=True),
    opt.ORDER, opt.RESERVATION, opt.MALLEABLE,
    option("--infer-site", "Find out which limits and priorities the log shows, and simulate with them too.",
           is_flag=True),
    option("--write-site", "Write the rules that the log shows to a site file, for --site.", opt.FILE),
)  # fmt: skip
@option_group(
    "Runs", opt.POLICY, opt.SPEEDUP, opt.SEED,
    option("--load loads", "Compare with other loads too: 1.2 submits the same jobs 1.2 times as densely; several: 1.1,1.2.",
           opt.Parsed("LOAD,...", loads_of), ()),
    option("--replications", "With --resample: how many resamples of the log tell how certain an answer is.",
           click.IntRange(2, 10_000), 20),
)  # fmt: skip
@option_group(
    "Output",
    option("--by", "Show the waits of each user, group, account, partition, QOS, queue or size too; repeat for several.",
           click.Choice(GROUPINGS), multiple=True),
    option("--figure", "File (.png, .svg, .pdf) for a figure of which job held which nodes, recorded above simulated under the "
           "first policy, with the rules of the site if there are any: the last row of this policy.", opt.FILE),
    option("--report", "File (.html) for a page with the answers, the table, pictures, and the machine and its rules in words.",
           opt.FILE),
    json_option("Print a JSON list, an object per row, instead of the table; one object with the answers where machines, loads "
                "or rules of a site are compared, or with --by or --resample."),
)  # fmt: skip
@option_group(
    "Machine",
    option("--nodes sizes", "Size of the machine; default: MaxProcs of an SWF header, else the most nodes in use at the same "
           "time.  Several are compared with the first one: 64,76; +20% is so much more than the first, or than the default.  "
           "Nodes that a site gives as shares (\"all\", \"0%-80%\") grow with it.", opt.Parsed("NODES|+N%,...", sizes_of), ()),
)  # fmt: skip
@opt.machine_options
@opt.trace_options
def whatif(trace: Path, *, as_json: bool, infer_site: bool, write_site: Path | None, by: Sequence[str], **options: Any) -> None:
    """Compare the waits that a log has recorded with those of simulated policies, machines and rules on the same jobs.

    The first row is the log's own schedule.  Its utilization is of the machine that is simulated, or of the most nodes in use
    at the same time, if these are more.  Waits are from submission to start, and, where that differs, since jobs were eligible;
    job slowdowns are bounded at 10 s.  With rules of a site (--site, --infer-site), each policy runs without them and with
    them.  Where the log has suspended jobs, ss, which suspends jobs, and mgs, which shares nodes in time, are among the
    policies by default.  The last lines say in words what each change does to the mean wait, and how certain that is.

    \b
    Examples:
      clustermodel whatif --trace jobs.sacct
      clustermodel whatif --trace jobs.sacct --nodes 60,72 --policy easy
      clustermodel whatif --trace jobs.sacct --nodes +20% --resample weeks
      clustermodel whatif --trace jobs.sacct --policy easy --infer-site --by user
      clustermodel whatif --trace jobs.sacct --policy easy --site site.toml
      clustermodel whatif --trace KTH-SP2-1996-2.2.swf.gz --nodes 100
    """
    notes = standard_error()
    options |= {"trace": trace, "policies": tuple(dict.fromkeys(options["policies"]))}
    sizes, loads, resampling = options.pop("sizes"), options.pop("loads"), options.pop("resample")
    options |= {"nodes": sizes[0] if sizes and isinstance(sizes[0], int) else None, "resample": None}
    machine, is_given = opt.machine_of(options)
    _require_recorded_jobs({**options, "write_site": write_site})
    sites = dict(_sites(options))
    options |= {"order": None, "reservations": (), "malleable": ()}  # each policy runs without them too
    workload = opt.load_workload(options, waits=True)
    _print_lines((f"{workload.name}: {line}" for line in workload.provenance.lines()), notes)
    peak = observed_schedule(workload).peak_nodes
    own_size = workload.machine_nodes or peak
    machine = machine if is_given else replace(machine, nodes=-(-own_size // machine.node_sizes[0]))
    size = machine.processors
    recorded = observed_schedule(workload, max(size, own_size))
    infers = infer_site or write_site is not None
    inferred = _inferred(workload, max(size, own_size), write_site, notes) if infers else None
    sites |= {"inferred": inferred.site} if inferred else {}
    groups = [RecordedGroups(workload, name) for name in dict.fromkeys(by)]
    asked = options["policies"] or ("easy",)  # about which the answers are
    options["policies"] = options["policies"] or (*opt.POLICIES, *_policies_that_suspend(workload, machine, sites.values()))
    sizes, loads = machine_sizes(machine.nodes, sizes), tuple(dict.fromkeys((1.0, *loads)))
    simulations = _Simulations(options, machine, sites, sizes, loads, notes)
    runs = _Runs(sites, groups, workload, keep_all=options["report"] is not None)
    for case, result in simulations.of(workload, history=options["figure"] is not None):
        runs.take(case, result)
    answers = _answers(runs, simulations, asked, resampling)
    rows, kept = runs.rows, runs.kept
    names = [case.label(sizes, loads) for case in runs.times]
    _print_lines(_about_machine(workload, size, peak, is_given=is_given), notes)
    about_rows = (*_remarks(runs, recorded), *_about_gap(*runs.compared(), recorded))
    _print_lines((*_about_suspended(workload, options["policies"]), *about_rows), notes)
    print_notes((note.with_option() for note in unused_costs_of_machines(runs.costs)), notes)
    _note_rules(sites, kept, notes)
    table = [{"site": "", **_observed(recorded)}, *rows]
    try:
        if runs.all is not None:
            _write_page(options["report"], workload, table, answers, runs.of_answers(names, asked), names, notes)
        if options["figure"] is not None:  # before the answer, whose reader may have gone (| head)
            _draw(kept[list(sites)[-1]][0], names[len(sites) - 1], options["figure"], notes)
    finally:  # which a log that cannot be drawn does not cost
        several = by or resampling is not None or max(len(sites), len(sizes), len(loads)) > 1
        if as_json:
            print_json(json.dumps(_for_json(recorded, inferred, rows, groups, answers if several else None), indent=2))
        else:
            of_machine = f" on {counted(size, kept['none'][0].scenario.unit)}" if len(sizes) == 1 else ""
            _print_tables(f"{workload.name}{of_machine}", table, names, groups)
            _print_lines((answer.sentence for answer in answers), notes)


def _observed(recorded: Observed) -> dict[str, Any]:
    """Return the row of the log's own schedule."""
    return {"policy": "observed", **{name: getattr(recorded, name) for name in (*_MEASURES, *SINCE_ELIGIBLE)}}


class _Simulations:
    """The runs of each machine, load, policy and site, on any jobs."""

    def __init__(
        self, options: Mapping[str, Any], machine: Machine, sites: Mapping[str, Site | None], sizes: Sequence[int],
        loads: Sequence[float], notes: Console,
    ) -> None:  # fmt: skip
        self._options, self._machine, self._sites, self._notes = options, machine, sites, notes
        self._sizes, self._loads = sizes, loads

    def of(self, workload: Workload, *, history: bool = False) -> Iterator[tuple[Case, Result]]:
        """Yield the runs on these jobs; that of the first case keeps its history if asked for."""
        options, fields = self._options, {name: self._options[name] for name in ("seed", "speedup")}
        for nodes, load in product(self._sizes, self._loads):
            jobs = workload if load == 1 else workload.scaled(LoadScale(interarrival=1 / load))
            scenarios = opt.scenarios_of(options, replace(self._machine, nodes=nodes), jobs, **fields)
            scenarios[0], history = replace(scenarios[0], history=history), False
            for label, result in _results(scenarios, self._sites, self._notes):
                yield Case(nodes, load, label, policy_label(result.scenario.policy)), result

    def of_resamples(self, workload: Workload, of: Unit) -> Iterator[dict[Case, JobTimes]]:
        """Yield the waits in each case, of resamples of the jobs."""
        for jobs in resampled(workload, of, self._options["seed"], self._options["replications"]):
            yield {case: times_of(jobs.column("id"), result) for case, result in self.of(jobs)}


class _Runs:
    """The rows of the runs, and what notes and a figure need of these."""

    def __init__(
        self, sites: Mapping[str, Site | None], groups: Sequence[RecordedGroups], workload: Workload, *, keep_all: bool
    ) -> None:
        self.all: dict[Case, Result] | None = {} if keep_all else None  # for a page
        self._sites, self._groups, self.workload = sites, groups, workload
        self.times: dict[Case, JobTimes] = {}
        self.rows: list[dict[str, Any]] = []
        self.costs: list[Costs] = []
        self.kept: dict[str, list[Result]] = {label: [] for label in sites}
        self.most_rejected: Result  # of those without rules

    def take(self, case: Case, result: Result) -> None:
        """Add a run; notes and figures are of those on the first machine, with the first load."""
        self.times[case] = times_of(self.workload.column("id"), result)
        if self.all is not None:
            self.all[case] = result
        self.rows.append(row := _row(result, case, self._groups))
        self.costs.append(Costs.of_run(result))
        if case[:2] != next(iter(self.times))[:2]:
            return
        label = case.site
        is_first = not self.kept[label]
        if label == "none" and (is_first or row["rejected"] > self.most_rejected.summary().rejected):
            self.most_rejected = result
        if is_first or self._sites[label] is not None:  # for a figure, and for notes on rules
            self.kept[label].append(result)

    def of_answers(self, names: Sequence[str], policies: Sequence[str]) -> dict[str, Result]:
        """Return the runs that answers compare, by their names, or all where nothing is compared."""
        assert self.all is not None
        compared = {case for each in comparisons_of(self.times, policies) for case in (each.before, each.after)}
        return {
            name: result
            for name, (case, result) in zip(names, self.all.items(), strict=True)
            if case in compared or not compared
        }

    def compared(self) -> tuple[list[dict[str, Any]], list[Result]]:
        """Return the rows whose waits may be those of the log, with rules if there are any, and their runs that are kept."""
        with_rules = len(self._sites) > 1
        first = next(iter(self.times))
        rows = [row for row in self.rows if (row["site"] != "none") == with_rules]
        rows = [row for row in rows if (row["nodes"], row["load"]) == first[:2]]
        return rows, [run for label, runs in self.kept.items() if (label != "none") == with_rules for run in runs]


def _answers(runs: _Runs, simulations: _Simulations, policies: Sequence[str], of: Unit | None) -> list[Answer]:
    """Return what the changes do, by resamples of the log's weeks, users or blocks if asked for."""
    comparisons, workload = list(comparisons_of(runs.times, policies)), runs.workload
    answers = answers_of(comparisons, runs.times, workload.span_s)
    if of is None:
        return answers
    resamples, blocks = list(simulations.of_resamples(workload, of)), blocks_of(workload, of)
    return [each.of_resamples(answer, resamples, *blocks) for each, answer in zip(comparisons, answers, strict=True)]


def _sites(options: Mapping[str, Any]) -> Iterator[tuple[str, Site | None]]:
    """Yield the sites to compare, with their labels: none, then each site file with the other rules."""
    yield "none", None
    for path in options["sites"] or [None]:
        if (site := opt.site_of({**options, "site": path})) is not None:
            given = (path, options["order"], *options["reservations"], *options["malleable"])
            yield " ".join(str(each) for each in given if each is not None), site


def _print_tables(
    title: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str], groups: Sequence[RecordedGroups]
) -> None:
    print_table(_table_of_rows(title, rows, ["observed", *names]))
    for each in groups:
        print_table(_table_of_groups(each, names))


def _note_rules(sites: Mapping[str, Site | None], kept: Mapping[str, Sequence[Result]], notes: Console) -> None:
    for label, site in sites.items():
        if site is not None:
            print_notes((f"{label}: {note.with_option()}" for note in rule_notes(kept[label])), notes)
            for source in kept[label][0].scenario.streams if site.malleable else ():
                _print_lines((f"{label}: {line}" for line in source.provenance.notes[-len(site.malleable) :]), notes)


def _results(scenarios: Sequence[Scenario], sites: Mapping[str, Site | None], notes: Console) -> Iterator[tuple[str, Result]]:
    """Yield the runs of each policy without rules and with those of each site, which has a label."""
    for scenario in scenarios:
        without: Result | None = None
        for label, site in sites.items():
            if without is None or site != Site():  # no rules make no other schedule
                ran = replace(scenario, site=site)
                with progress_of_run(ran, notes) as advance:
                    result = ran.run(progress=advance)
                without = without or result
            else:
                result = without
            yield label, result


def _row(result: Result, case: Case, groups: Sequence[RecordedGroups]) -> dict[str, Any]:
    """Return the row of a run, and note its waits in the groups."""
    for each in groups:
        each.add(result.records)
    summary = result.summary().as_dict()
    energy: dict[str, object] = {name: summary[name] for name in ENERGY if name in summary}
    since = {name: summary.get(name, summary[name.replace("_since_eligible", "")]) for name in SINCE_ELIGIBLE}
    measures = {name: summary[name] for name in (*_MEASURES, "rejected")}
    return {"policy": case.policy, "site": case.site, "nodes": case.nodes, "load": case.load, **measures, **since, **energy}


def _for_json(
    recorded: Observed, inferred: InferredSite | None, rows: Sequence[Mapping[str, Any]], groups: Sequence[RecordedGroups],
    answers: Sequence[Answer] | None,
) -> object:  # fmt: skip
    """Return the answer for JSON: a list of rows, or one object where there are ``answers``."""
    if answers is None:
        alone = [{key: value for key, value in row.items() if key not in ("site", "nodes", "load")} for row in rows]
        return [_observed(recorded), *alone]
    whole: dict[str, object] = {
        "recorded_mean_wait_s": recorded.mean_wait_s,
        **{f"recorded_{name}": getattr(recorded, name) for name in SINCE_ELIGIBLE[:1]},
        "rules": [each.as_json() for each in inferred.rules] if inferred else [],
    }
    whole |= {"windows": [each.as_json() for each in inferred.windows]} if inferred else {}
    whole |= {"rows": rows, "answers": [each.as_json() for each in answers]}
    return whole | ({"groups": [group for each in groups for group in each.as_json()]} if groups else {})


def _inferred(workload: Workload, nodes: int, path: Path | None, notes: Console) -> InferredSite:
    """Return the rules that a log shows, print them, and write them to a site file, which says so where there are none."""
    inferred = inferred_site(workload, nodes)
    has_dependencies = JobStreams([workload]).has_dependencies
    _print_lines(_about_site(inferred, has_dependencies=has_dependencies), notes)
    if path is not None and inferred.rules:
        inferred.site.to_toml(path)
    elif path is not None:
        write_file(path, "# The log shows no limits, and no priorities of partitions, QOS or queues.\n")
    return inferred


def _require_recorded_jobs(options: Mapping[str, Any]) -> None:
    """Refuse options that make other jobs of those in the log, and files that cannot be written."""
    for name in opt.SCALES:
        if options[name] != 1:
            because = f"{options[name]:g} is not allowed; the recorded waits belong to the recorded load"
            raise SpecificationError(f"{option_name(name)}: {because}")
    opt.require_writable({name: options[name] for name in ("figure", "report", "write_site")})


def _suspended_share(workload: Workload) -> float:
    """Return how much node time jobs were suspended for, per node time for which they executed."""
    nodes, suspended = workload.column("nodes"), np.maximum(workload.column(SUSPENDED), 0)
    return dot(nodes, suspended) / dot(nodes, workload.column("run"))


def _policies_that_suspend(workload: Workload, machine: Machine, sites: Iterable[Site | None]) -> tuple[str, ...]:
    """Return the policies to compare with on a log of a machine that suspends jobs or shares nodes in time."""
    in_pools = machine.partitions or any(site is not None and site.partitions for site in sites)
    if _suspended_share(workload) < _FEW_SUSPENDED or in_pools or JobStreams([workload]).has_shapes:
        return ()
    return SUSPENDING


def _about_suspended(workload: Workload, policies: Sequence[str]) -> Iterator[str]:
    if share := _suspended_share(workload):
        hint = "" if {*SUSPENDING} & {*policies} else f"; {' and '.join(SUSPENDING)} are policies that do so (--policy)"
        yield (
            f"suspended: jobs were suspended for {100 * share:.1f} % as much node time as they executed, in which their nodes "
            f"could be others'{hint}"
        )


def _print_lines(lines: Iterable[str], notes: Console) -> None:
    for line in lines:
        notes.print(literal(line))


def _draw(result: Result, row: str, path: Path, notes: Console) -> None:
    """Draw the jobs of a run below those that the log has recorded."""
    from clustermodel.figures.style import save  # noqa: PLC0415  matplotlib takes a second to import

    try:
        figure = result.plot.recorded()
    except SpecificationError as problem:
        raise SpecificationError(f"--figure: {problem}") from None
    save(figure, path)
    notes.print(f"figure: {literal(path)} ({literal(row)})")


def _write_page(
    path: Path, workload: Workload, rows: Sequence[Mapping[str, Any]], answers: Sequence[Answer],
    runs: Mapping[str, Result], names: Sequence[str], notes: Console,
) -> None:  # fmt: skip
    """Write the page."""
    questions = list(dict.fromkeys(answer.question for answer in answers))
    title = questions[0] if len(questions) == 1 else f"What would change for the jobs of {workload.name}?"
    page = AnswerPage(
        title=title, answers=answers, names=["recorded", *names], rows=rows, runs=runs, left_out=workload.provenance.lines()
    )
    page.write(path)
    notes.print(f"report: {literal(path)}")


def _table_of_rows(title: str, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> TextTable:
    energy = [name for name in ENERGY if any(name in row for row in rows)]
    values = {name: [row.get(name) for row in rows] for name in ("policy", *_MEASURES, *SINCE_ELIGIBLE, *energy)}
    seen = [*_MEASURES, *(SINCE_ELIGIBLE[:1] if differs(rows) else ()), *energy]
    columns = measure_columns({name: values[name] for name in seen}, headings=HEADINGS, share_places=2)
    if len({row["site"] for row in rows}) > _WITHOUT_SITES:
        values["site"] = [row["site"] for row in rows]
    for name in ("nodes", "load"):
        if len({row[name] for row in rows[1:]}) > 1:
            values[name] = [row.get(name) for row in rows]
    return TextTable(title, [Column("policy", names, number=False)], [list(columns.values())], values)


def _table_of_groups(groups: RecordedGroups, names: Sequence[str]) -> TextTable:
    """Return the table of groups; the smallest ones are summed up, unless they are sizes."""
    every = groups.groups()
    shown, others = (every, []) if len(every) <= _MOST_GROUPS else (every[: _MOST_GROUPS - 1], every[_MOST_GROUPS - 1 :])
    if others:
        sizes = [group.jobs for group in others]
        recorded, since = (
            _mean(sizes, [getattr(group, f"recorded_{name}") for group in others])
            for name in ("mean_wait_s", SINCE_ELIGIBLE[0])
        )
        means, means_since = (
            [_mean(sizes, [getattr(group, name)[run] for group in others]) for run in range(len(names))]
            for name in ("mean_wait_s", SINCE_ELIGIBLE[0])
        )
        gap_share = sum(group.gap_share for group in others)
        shown = [*shown, Group(f"{len(others)} others", sum(sizes), recorded, means, since, means_since, gap_share)]
    key = [
        Column(groups.by, [group.who for group in shown], number=False),
        Column("jobs", [f"{each.jobs:,}" for each in shown]),
    ]

    def waits_of(groups: Sequence[Group], of: str) -> list[list[float]]:
        """Return the recorded mean waits of groups, and those of each run."""
        return [[getattr(each, f"recorded_{of}"), *getattr(each, of)] for each in groups]

    measures = {"mean_wait_s": "mean wait"}
    if any(group.was_held for group in every):
        measures[SINCE_ELIGIBLE[0]] = "since eligible"
    waits, headings = {}, {}
    for of, text in measures.items():
        for name, column in zip(("recorded", *names), zip(*waits_of(shown, of), strict=True), strict=True):
            waits[f"{name}: {of}"], headings[f"{name}: {of}"] = column, f"{name}\n{text}"
    columns = measure_columns(waits, headings=headings)
    gap = Column("share of the\ndifference (%)", [f"{100 * each.gap_share:.1f}" for each in shown])
    values: dict[str, list[Any]] = {
        groups.by: [each.who for each in every],
        "jobs": [each.jobs for each in every],
        "recorded_mean_wait_s": [each.recorded_mean_wait_s for each in every],
        **{name: [each.mean_wait_s[run] for each in every] for run, name in enumerate(names)},
        f"recorded_{SINCE_ELIGIBLE[0]}": [each.recorded_mean_wait_since_eligible_s for each in every],
        **{
            f"{name}, since eligible": [each.mean_wait_since_eligible_s[run] for each in every]
            for run, name in enumerate(names)
        },
        "gap_share": [each.gap_share for each in every],
    }
    return TextTable(f"by {groups.by}", key, [[*columns.values(), gap]], values)


def _mean(jobs: Sequence[int], means: Sequence[float]) -> float:
    """Return the mean of groups of so many jobs together, of those that have one."""
    known = [(number, mean) for number, mean in zip(jobs, means, strict=True) if not isnan(mean)]
    return sum(number * mean for number, mean in known) / sum(number for number, _ in known) if known else nan


def _about_machine(workload: Workload, size: int, peak: int, *, is_given: bool) -> Iterator[str]:
    """Yield where the size of the machine comes from; the report of an import has said it, if it comes from there."""
    unit, own_size = workload.provenance.unit, workload.machine_nodes or peak
    if workload.provenance.report is None or is_given:
        source = "as asked for" if is_given else "by the header of the trace" if workload.machine_nodes else "as none is given"
        yield f"machine: {counted(size, unit)}, {source}; the most in use at the same time were {peak:,} (--nodes)"
        if is_given and other_machine(workload, own_size, size):
            sizes = f"the recorded row is of {counted(own_size, unit)}, the simulated ones of {size:,}"
            yield f"observed: {sizes}: do not compare them"


def _about_site(inferred: InferredSite, *, has_dependencies: bool) -> Iterator[str]:
    """Yield the rules that the log shows, each with its evidence, and what a log cannot show."""
    if not inferred.rules:
        yield "site: the log shows no limits, and no priorities of partitions, QOS or queues"
    for line in inferred.lines():
        yield f"site: {line}"
    if inferred.windows:
        yield (
            "site: windows in which nothing starts are reservations, maintenance or outages; they are not among the rules, "
            "but --reservation simulates them"
        )
    shares = "fair shares" if has_dependencies else "fair shares, dependencies"
    few = "priorities and reservations for a few jobs"
    yield f"site: a log does not show limits that were never reached, nor {shares}, and {few}"


def _not_simulated(runs: Sequence[Result]) -> list[str]:
    """Return what shapes the waits of real machines and was in none of these runs."""
    sites = [run.scenario.used_site or Site() for run in runs]
    simulated = {
        "reservations": any(run.machine.reservations for run in runs),
        "downtime": any(run.machine.failures is not None for run in runs),
        "priorities": any(site.order is not None for site in sites)
        or any(run.records.column("priority").any() for run in runs),
        "limits per user": any(site.limits or site.array_limits for site in sites),
        "dependencies": any(run.scenario.streams.has_dependencies for run in runs),
    }
    return [name for name, was_simulated in simulated.items() if not was_simulated]


def _close(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) <= _ALIKE * max(one, 1.0)


def _about_gap(rows: Sequence[Mapping[str, Any]], runs: Sequence[Result], recorded: Observed) -> Iterator[str]:
    """Yield why recorded and simulated mean waits may differ, if they do in each row: what was not simulated."""
    simulated = [row["mean_wait_s"] for row in rows if row["mean_wait_s"] is not None]
    if not simulated or any(_close(recorded.mean_wait_s, wait) for wait in simulated):
        return
    gap = "observed and simulated mean waits differ by more than 10 %"
    if any(_close(recorded.mean_wait_since_eligible_s, row["mean_wait_since_eligible_s"]) for row in rows):
        yield f"{gap}, those since eligible do not: the jobs were held (dependencies, holds, begin times)"
    elif missing := _not_simulated(runs):
        *others, last = missing
        inferable = rows[0]["site"] == "none" and {"priorities", "limits per user"} & {*missing}
        hint = " (--infer-site looks for some)" if inferable else ""
        yield f"{gap}: not simulated {'are' if others else 'is'} {', '.join(others)}{' and ' * bool(others)}{last}{hint}"
    else:
        yield gap


def _remarks(runs: _Runs, recorded: Observed) -> Iterator[str]:
    """Yield what the reader of the table should know."""
    if recorded.without_wait:
        yield f"observed: without {counted(recorded.without_wait, 'job')} of unknown wait"
    for label in runs.kept:
        fewest = max((row for row in runs.rows if row["site"] == label), key=lambda row: row["rejected"])
        if (rejected := fewest["rejected"]) and label == "none":
            yield from (f"simulated: {note.with_option()}" for note in notes_on_rejected(runs.most_rejected))
        elif rejected:
            of = fewest["jobs"] + rejected
            yield f"{label}: its rows compare {fewest['jobs']:,} of {counted(of, 'job')}; the others are rejected"
