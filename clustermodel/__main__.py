"""``python -m clustermodel``: the command line."""

from clustermodel.cli import main

main()
