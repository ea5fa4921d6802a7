"""Python scripts of users: reading and running them, and the scenarios or the study that they define."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from clustermodel.errors import ClusterModelError, SpecificationError
from clustermodel.experiment.code_origin import origin_of_file
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.study import Study
from clustermodel.experiment.user_code import failure_line
from clustermodel.policies.registry import policy_names, unregister_policy


def read_script(path: Path) -> str:
    """Return the text of a script.

    Raises:
        SpecificationError: the script does not exist, or is no text.
    """
    try:
        exists = path.is_file()
    except OSError:  # a name that is too long for any file, before Python 3.13
        exists = False
    if not exists:
        raise SpecificationError(f"{path}: no such scenario script")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SpecificationError(f"{path}: cannot be read: {problem}") from None


def run_script(path: Path, text: str) -> Mapping[str, Any]:
    """Run a script, as a module of its own, and return its global names.

    While the script runs its folder is on the module path, as for any script, so that it can import modules beside it.

    Args:
        path: of the script, which need not exist any more.
        text: of the script.

    Raises:
        SpecificationError: the script failed; the message starts with ``path:line:``.
        ClusterModelError: the package raised an error that the script did not catch.
    """
    folder = str(path.parent.resolve())
    while _imported:  # another script's modules may have the same names, and this script's may have changed
        sys.modules.pop(_imported.pop(), None)
    while _registered:
        unregister_policy(_registered.pop())
    # Classes of the script look up their module by its name, which therefore must not change when the script is edited.
    module = ModuleType(f"clustermodel_script_{path.stem}")
    module.__file__ = str(path)
    linecache.cache[str(path)] = len(text), None, text.splitlines(keepends=True), str(path)
    sys.modules[module.__name__] = module
    before, policies, compiled = set(sys.modules), set(policy_names()), sys.dont_write_bytecode
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True  # two edits within a second would leave a stale file beside the script
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except ClusterModelError:
        raise
    except SyntaxError as problem:
        raise SpecificationError(f"{problem.filename}:{problem.lineno}: {problem.msg}") from None
    except (Exception, SystemExit, GeneratorExit) as problem:
        lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == str(path)]
        line = lines[-1] if lines else "?"
        raise SpecificationError(f"{path}:{line}: {type(problem).__name__}: {problem}") from problem
    finally:
        sys.dont_write_bytecode = compiled
        with suppress(ValueError):  # the script may have removed it
            sys.path.remove(folder)
        new = {name for name in set(sys.modules) - before if _is_of_user(sys.modules[name])}
        _imported.update(new - {module.__name__})
        _registered.update(set(policy_names()) - policies)
    return module.__dict__


def load_scenarios(path: Path) -> list[Scenario]:
    """Run a script and return the scenarios that it defines.

    Raises:
        SpecificationError: the script cannot be read, fails, or defines no scenario.
    """
    defined = run_script(path, read_script(path))
    scenarios = _scenarios_in(path, defined)
    if not scenarios and isinstance(defined.get("study"), Study):
        raise SpecificationError(f"{path}: defines a study; run it with: clustermodel sweep {path} --out DIRECTORY")
    if not scenarios:
        raise SpecificationError(
            f"{path}: defines neither `scenario` (a Scenario) nor `scenarios` (a list of them) at module level"
        )
    return scenarios


def load_study(path: Path, text: str) -> Study:
    """Run a script and return the study that it defines, or a study of the scenarios that it defines.

    Args:
        path: of the script, which need not exist any more.
        text: of the script.

    Raises:
        SpecificationError: the script fails, or defines neither.
    """
    defined = run_script(path, text)
    study = defined.get("study")
    if study is None and (scenarios := _scenarios_in(path, defined)):
        study = Study(name=path.stem, scenarios=scenarios)
    if not isinstance(study, Study):
        raise SpecificationError(
            f"{path}: defines neither `study` (a Study) nor `scenarios` (an iterable of Scenario, or a function of none)"
        )
    return study


def _scenarios_in(path: Path, defined: Mapping[str, Any]) -> list[Scenario]:
    """Return the value of ``scenarios`` or ``scenario`` as a list: one scenario, several, or a function that returns them."""
    value = defined.get("scenarios", defined.get("scenario"))
    try:
        value = value() if callable(value) else value
        scenarios = list(value) if isinstance(value, Iterable) else [value]
    except ClusterModelError:
        raise
    except Exception as problem:  # of the script's function or generator
        raise SpecificationError(f"{path}: scenarios: {failure_line(problem)}") from problem
    return scenarios if all(isinstance(scenario, Scenario) for scenario in scenarios) else []


_imported: set[str] = set()
"""Modules of the user that the last script imported."""
_registered: set[str] = set()
"""Policies that the last script registered; the next script in this process may register them again."""


def _is_of_user(module: ModuleType) -> bool:
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", ()))
    return any(origin_of_file(str(place)) is None for place in places)
