"""A command with a clock: ``python -m tests.bench.run_in_parts FILE run ...`` writes the CPU time of each part to a file.

What is imported before the trace is read is *import*; what is imported later belongs to the part that needs it.
"""

import atexit
import json
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any

from clustermodel.cli import main

seconds: dict[str, float] = {}


def timed(owner: Any, name: str, part: str) -> None:
    """Let a function of a module or class add its CPU time to a part."""
    function: Callable[..., Any] = getattr(owner, name)

    @wraps(function)
    def measured(*args: Any, **options: Any) -> Any:
        began = process_time()
        try:
            return function(*args, **options)
        finally:
            seconds[part] = seconds.get(part, 0.0) + process_time() - began

    setattr(owner, name, measured)


def write() -> None:
    """Write the parts, and the whole until now."""
    Path(sys.argv[1]).write_text(json.dumps({**seconds, "whole": process_time()}))


def imported(name: str) -> ModuleType:
    """Import the module of the command, as the command line does, and start the clocks."""
    module = import_module(name)
    timed(module.opt, "load_workload", "read")
    timed(import_module("clustermodel.experiment.scenario").Scenario, "run", "simulate")
    timed(module, "_report", "measure")
    timed(import_module("clustermodel.experiment.result").Result, "to_csv", "write")
    seconds["import"] = process_time()
    return module


if __name__ == "__main__":
    atexit.register(write)
    import_module("clustermodel.cli.main").import_module = imported
    main(sys.argv[2:])
