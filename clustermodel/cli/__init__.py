"""The command line."""

from clustermodel.cli.interrupts import leave_quietly_while_starting

leave_quietly_while_starting()

from clustermodel.cli.main import cli, main

__all__ = ["cli", "main"]
