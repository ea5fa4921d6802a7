"""``clustermodel policies``: the policies with their parameters."""

from __future__ import annotations

import click

from clustermodel.errors import SpecificationError
from clustermodel.figures.terminal import literal, standard_error, standard_output
from clustermodel.plugins import POLICIES, plugins
from clustermodel.policies.registry import plugin_problems, policy_names, policy_parameters, policy_summary


@click.command()
def policies() -> None:
    """List the policies with their parameters and defaults.

    Those of other installed packages are listed too; one that cannot be used is a line on standard error.
    """
    out, installed, problems = standard_output(), plugins(POLICIES), plugin_problems()
    for name in policy_names():
        try:
            known = policy_parameters(name)
        except SpecificationError as problem:  # of a plug-in
            problems.append(str(problem))
            continue
        parameters = ",".join(
            f"{key}={'...' if value.default is value.empty else value.default}" for key, value in known.items()
        )
        origin = f"  [dim]({literal(installed[name].package)})[/]" if name in installed else ""
        out.print(f"[bold]{literal(name)}[/]{literal(':' + parameters) if parameters else ''}{origin}")
        out.print(f"    {literal(policy_summary(name))}")
    for line in problems:
        standard_error().print(literal(line))
