"""The command line."""

from clustermodel.cli.main import cli, main

__all__ = ["cli", "main"]
