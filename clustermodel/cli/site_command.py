"""``clustermodel site``: a site file from Slurm's own output."""

from collections.abc import Sequence
from pathlib import Path

import click

from clustermodel.cli.options import FILE, GroupedCommand, option
from clustermodel.errors import counted
from clustermodel.figures.terminal import literal, standard_error
from clustermodel.logs.slurm.configuration import UNITS
from clustermodel.logs.slurm.slurm_site import read_slurm_site
from clustermodel.workload.provenance import Provenance


@click.command(cls=GroupedCommand)
@click.argument("files", type=FILE, nargs=-1, required=True)
@option("-o --output", "File to write the rules to, for --site, instead of standard output.", FILE)
@option("--start", "When the log begins, as 2025-01-01T00:00:00 (StartTime of `trace info`): reservations need it.")
@option("--timezone", "Time zone of the reservations, as Europe/Paris, if the log is read with it; --start is then in UTC.")
@option("--unit", "What a node of the simulation is, as of the log.", click.Choice(UNITS), "nodes")
def site(files: Sequence[Path], output: Path | None, start: str | None, timezone: str | None, unit: str) -> None:
    """Make a site file of Slurm's own output: partitions, limits, and the order of the queue.

    FILES are a slurm.conf, and what scontrol show partition, node, config and reservation, sacctmgr show qos -P and sacctmgr
    show assoc tree -P print; what each is, its content tells.  Settings that the model has no rule for are listed.

    \b
    Examples:
      clustermodel site slurm.conf qos.txt assoc.txt -o site.toml
      clustermodel whatif --trace jobs.sacct --site site.toml --nodes 128
    """
    slurm, notes = read_slurm_site(*files, unit=unit, start=start, timezone=timezone), standard_error()
    for line in slurm.read:
        notes.print(literal(line), soft_wrap=True)
    if slurm.nodes:
        what = counted(slurm.nodes, Provenance(source="", options={"unit": unit}).unit)
        notes.print(f"machine: {what} (--nodes {slurm.nodes})", soft_wrap=True)
    for line in slurm.left_out:
        notes.print(f"left out: {literal(line)}", soft_wrap=True)
    text = slurm.site.to_toml(output)
    if output is None:
        click.echo(text, nl=False)
    else:
        notes.print(f"site: {literal(output)}", soft_wrap=True)
