"""Whether this installation of the package is compiled.

``CLUSTERMODEL_COMPILE=1 pip install`` compiles the modules that a run spends its time in (hatch_build.py); the results are the
same to the last bit.  Other installations are pure Python.
"""

from __future__ import annotations

import clustermodel.schedule.profile as _one_of_them


def is_compiled() -> bool:
    """Return whether the inner modules of the simulator run as compiled code."""
    return not (_one_of_them.__file__ or "").endswith(".py")
