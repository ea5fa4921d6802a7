"""clustermodel: a process-oriented simulator of parallel job scheduling.

>>> from clustermodel import Machine, Scenario, synthetic_workload
>>> machine, jobs = Machine(nodes=128), synthetic_workload(jobs=100)
>>> result = Scenario(machine=machine, workload=jobs, policy="easy").run()
>>> result.summary().jobs
100
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)  # the names are those of __init__.pyi
