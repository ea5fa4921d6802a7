"""Whether this installation of the package is compiled.

``pip install`` compiles the modules that a run spends its time in where there is a C compiler (hatch_build.py); the results are
the same to the last bit.  Editable installations are pure Python.
"""

from __future__ import annotations

from importlib.util import find_spec


def is_compiled() -> bool:
    """Return whether the inner modules of the simulator run as compiled code."""
    one_of_them = find_spec("clustermodel.schedule.profile")
    return one_of_them is not None and not (one_of_them.origin or "").endswith(".py")
