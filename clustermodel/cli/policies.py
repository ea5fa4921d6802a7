"""``clustermodel policies``: the policies with their parameters."""

from __future__ import annotations

import click

from clustermodel.figures.terminal import literal, standard_output
from clustermodel.policies.registry import policy_names, policy_parameters, policy_summary


@click.command()
def policies() -> None:
    """List the policies with their parameters and defaults."""
    out = standard_output()
    for name in policy_names():
        parameters = ",".join(
            f"{key}={'...' if value.default is value.empty else value.default}"
            for key, value in policy_parameters(name).items()
        )
        out.print(f"[bold]{literal(name)}[/]{literal(':' + parameters) if parameters else ''}")
        out.print(f"    {literal(policy_summary(name))}")
