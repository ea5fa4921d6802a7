"""``python -m clustermodel``: the command line."""

from clustermodel.cli import main

if __name__ == "__main__":
    main()
