"""Whether this installation of the package is compiled.

``CLUSTERMODEL_COMPILE=1 pip install .`` compiles the modules that a run spends its time in (hatch_build.py); the results are
the same to the last bit.  Other installations are pure Python.
"""

from importlib.util import find_spec
from typing import Final

LONG_S: Final = 20  # wall time of simulations after which a command tells what compiling would gain


def is_compiled() -> bool:
    """Return whether the inner modules of the simulator run as compiled code."""
    one_of_them = find_spec("clustermodel.plans.profile")
    return one_of_them is not None and not (one_of_them.origin or "").endswith(".py")


def advice(seconds: float) -> str | None:
    """Return the line that tells how to halve simulations of so many seconds in pure Python, if they were long."""
    if seconds <= LONG_S or is_compiled():
        return None
    how = "CLUSTERMODEL_COMPILE=1 pip install . in a clone"
    gain = f"compiled, it would take about half as long: {how} (CONTRIBUTING.md, Speed)"
    return f"{seconds:.0f} s of simulation in pure Python; {gain}"
