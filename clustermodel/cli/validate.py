"""``clustermodel validate``: does a formula agree with the simulation?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clustermodel.cli.interrupts import leaving_quietly
from clustermodel.cli.study import run_experiment, settings_of, shard_of, show_exhibits
from clustermodel.errors import SpecificationError

NOT_ALL_AGREE = 1
"""Exit code of a validation that differs or is undecided somewhere."""


@click.command()
@click.argument("studies", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Directory of the results; created if need be.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the script's function `study`; repeat."
)
@click.option("--workers", type=click.IntRange(1), help="Processes of this machine; default: one for each processor.")
@click.option("--dask", metavar="ADDRESS", help="Run on the Dask cluster with this scheduler, e.g. tcp://host:8786.")
@click.option("--shard", metavar="I/N", help="Run the points of part I of N in a folder of their own; for job arrays.")
@click.option("--stored", is_flag=True, help="Run nothing: compare with the finished runs, those of all shards.")
def validate(
    studies: tuple[Path, ...],
    out: Path,
    settings: tuple[str, ...],
    workers: int | None,
    dask: str | None,
    shard: str | None,
    *,
    stored: bool,
) -> int:
    """Compare the formulas of STUDIES with simulated means.

    Each of STUDIES is a Python script that defines `study`: what `validate` of the package returns, or a function that
    returns it, whose parameters --set changes.  At each point of its factors the formula agrees, differs, or is undecided:
    then the replications that are missing for a verdict are given.  Finished runs are kept: the same command again runs
    only missing and failed runs.  With several STUDIES each has a folder in the directory, with the name of its script.

    Exit code: 0 if the formula agrees at every point, otherwise 1; 0 after a shard, which has no verdict, unless runs failed.

    \b
    Examples:
      clustermodel validate queueing.py --out results
      clustermodel validate queueing.py --out results --set jobs=1000
      clustermodel validate scenarios/validation/*.py --out results
      clustermodel validate queueing.py --out results --shard 3/10
      clustermodel validate queueing.py --out results --stored
    """
    if dask is not None and workers is not None:
        raise SpecificationError("--workers: a Dask cluster has its own workers; give one of --workers and --dask")
    if stored and (shard or dask or workers):
        raise SpecificationError("--stored: nothing is run; give it without --workers, --dask and --shard")
    folders = {study: out if len(studies) == 1 else out / study.stem for study in studies}
    if len(set(folders.values())) < len(studies):
        raise SpecificationError("STUDIES: two scripts of one name are not allowed; validate them in different directories")
    given = settings_of(settings)
    options: dict[str, Any] = {"workers": workers, "dask": dask, "shard": shard_of(shard)}
    code = 0
    for study, folder in folders.items():
        found = _compared(study, folder, given) if stored else _run(study, folder, given, options)
        if found > NOT_ALL_AGREE:  # stopped by a signal
            return found
        code = max(code, found)
    return code


def _run(study: Path, folder: Path, settings: dict[str, str], options: dict[str, Any]) -> int:
    """Run a validation, show its verdicts, and return the exit code."""
    with leaving_quietly():
        from clustermodel.experiment.script import read_script  # noqa: PLC0415
        from clustermodel.experiment.validate import Validation, load_validation  # noqa: PLC0415
        from clustermodel.experiment.worker import Origin  # noqa: PLC0415  needs packages of an extra

    origin = Origin.of_script(study, read_script(study), settings, load_validation)
    done = run_experiment(origin, folder, options, whole_tracebacks=False)
    if done.table is None or options["shard"] is not None:
        return done.code
    assert isinstance(done.design, Validation)
    return max(done.code, _code(done.design, done.table))


def _compared(study: Path, folder: Path, settings: dict[str, str]) -> int:
    """Show the verdicts of a validation from its finished runs, and return the exit code."""
    with leaving_quietly():
        from clustermodel.experiment.script import read_script  # noqa: PLC0415
        from clustermodel.experiment.validate import load_validation  # noqa: PLC0415  needs packages of an extra

    design = load_validation(study, read_script(study), settings)
    table = design.stored_table(folder)
    show_exhibits(design, table, folder)
    return _code(design, table)


def _code(design: Any, table: Any) -> int:
    return 0 if design.conclude(table).holds else NOT_ALL_AGREE
