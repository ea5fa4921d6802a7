"""A command with a clock: ``python -m tests.bench.run_in_parts FILE run ...`` writes the CPU time of each part to a file.

What is imported before the trace is read is *import*; what is imported later belongs to the part that needs it.
"""

import atexit
import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from time import process_time
from typing import Any

from clustermodel.cli import main, run
from clustermodel.experiment.result import Result
from clustermodel.experiment.scenario import Scenario

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


if __name__ == "__main__":
    timed(run.opt, "load_workload", "read")
    timed(Scenario, "run", "simulate")
    timed(run, "_report", "measure")
    timed(Result, "to_csv", "write")
    atexit.register(write)
    seconds["import"] = process_time()
    main(sys.argv[2:])
