"""clustermodel: a process-oriented simulator of parallel job scheduling.

>>> from clustermodel import Machine, Scenario, synthetic_workload
>>> machine, jobs = Machine(nodes=128), synthetic_workload(jobs=100)
>>> result = Scenario(machine=machine, workload=jobs, policy="easy").run()
>>> result.summary().jobs
100
"""

import lazy_loader

_imported, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are those of __init__.pyi


def __getattr__(name: str) -> object:
    if name in __all__ or name.startswith("__"):
        return _imported(name)
    from clustermodel.errors import did_you_mean  # noqa: PLC0415  few scripts need it

    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{did_you_mean(name, __all__)}")
