"""Python scripts of users: reading and running them, and the scenarios or the study that they define."""

import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Final

from clustermodel.errors import ClusterModelError, SpecificationError, quoted
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.settings import scenario_with_settings
from clustermodel.experiment.study import Experiment, Study
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.user_code import SCRIPT_MODULES, failure_line, name_meant, origin_of_file
from clustermodel.experiment.worker import Origin
from clustermodel.plugins import is_plugin_code
from clustermodel.policies.registry import policy_names, unregister_policy

_OF_ANY_NUMBER: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# Endings of the names of traces and tables.
_OF_TRACES: Final = (".swf", ".gz", ".bz2", ".xz", ".sacct", ".pbs", ".acct", ".log", ".csv", ".tsv", ".txt", ".json")


def read_script(path: Path) -> str:
    """Return the text of a script; what is none, or by its name or its lines a trace, is refused."""
    exists = os.path.isfile(path)  # noqa: PTH113  Path.is_file raises an error for a name that is too long
    is_trace = path.suffix.lower() in _OF_TRACES
    if exists and path.suffix.lower() != ".py":
        from clustermodel.logs.trace_file import recognised  # noqa: PLC0415  with the readers of all formats

        with suppress(ClusterModelError):  # which the readers of scripts explain
            is_trace = is_trace or recognised(path) is not None
    if is_trace:
        simulate = f"clustermodel run --trace {path} simulates a trace"
        raise SpecificationError(f"{path}: neither a Python script nor a scenario file (.toml); {simulate}")
    if path.suffix.lower() == ".toml":
        raise SpecificationError(f"{path}: is a scenario file, not a Python script: clustermodel run {path}")
    if not exists:
        what = "is a directory, not a" if os.path.isdir(path) else "no such"  # noqa: PTH112  as above
        raise SpecificationError(f"{path}: {what} scenario script")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SpecificationError(f"{path}: cannot be read: {problem}") from None


def run_script(path: Path, text: str) -> Mapping[str, Any]:
    """Run a script, which need not exist any more, as a module of its own, and return its global names."""
    # Its folder is on the module path meanwhile, for modules beside it.  Errors of other packages become a SpecificationError.
    folder = str(path.parent.resolve())
    while SCRIPT_MODULES:  # another script's modules may have the same names, and this script's may have changed
        sys.modules.pop(SCRIPT_MODULES.pop(), None)
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
        raise SpecificationError(f"{path}:{line}: {type(problem).__name__}: {problem}{name_meant(problem)}") from problem
    finally:
        sys.dont_write_bytecode = compiled
        with suppress(ValueError):  # the script may have removed it
            sys.path.remove(folder)
        new = {name for name in set(sys.modules) - before if _is_of_user(sys.modules[name])}
        SCRIPT_MODULES.update(new - {module.__name__})
        _registered.update(set(policy_names()) - policies)
    return module.__dict__


def load_scenarios(path: Path) -> list[Scenario]:
    """Run a script and return the scenarios that it defines, at least one."""
    defined = run_script(path, read_script(path))
    scenarios = _scenarios_in(path, defined)
    if not scenarios and "study" in defined:
        raise SpecificationError(f"{path}: defines a study; run it with: clustermodel sweep {path} --out DIRECTORY")
    if not scenarios:
        raise SpecificationError(
            f"{path}: defines neither `scenario` (a Scenario) nor `scenarios` (a list of them) at module level{_near(defined)}"
        )
    return scenarios


def load_experiment(path: Path, text: str, settings: Mapping[str, str] = MappingProxyType({})) -> Experiment[Any]:
    """Run a script and return the experiment that it defines: ``study``, or a study of its ``scenarios``."""
    # settings are values, as texts, of the parameters of a function study, and of fields of all its scenarios by dotted names.
    defined = run_script(path, text)
    study = defined.get("study")
    of_scenarios = {name: value for name, value in settings.items() if "." in name}
    settings = {name: value for name, value in settings.items() if "." not in name}
    if study is None and (scenarios := _scenarios_in(path, defined)):
        study = Study.of_scenarios(path.stem, scenarios)
    if callable(study) and not isinstance(study, Experiment):
        known, called = inspect.signature(study).parameters, study
        if unknown := [name for name in settings if name not in known]:
            there = f"its parameters are {', '.join(known) or 'none'}"
            raise SpecificationError(f"{path}: --set: `study` has no parameter {unknown[0]!r}; {there}")
        values = {name: value_of(f"{path}: --set {name}", text, known[name].default) for name, text in settings.items()}
        if missing := [name for name in _required(called) if name not in values]:
            raise SpecificationError(f"{path}: `study` needs a value of {missing[0]!r}: --set {missing[0]}=VALUE")
        study = _guarded(path, "study", lambda: called(**values))
    elif settings:
        raise SpecificationError(f"{path}: --set: `study` is no function; it has no parameter {next(iter(settings))!r}")
    if not isinstance(study, Experiment):
        raise SpecificationError(
            f"{path}: defines neither `study` (a Study, or a function that returns one) nor `scenarios` (an iterable of "
            f"Scenario, or a function of none){_near(defined)}"
        )
    if of_scenarios:
        made = study.scenario

        def with_settings(**levels: Any) -> Scenario | None:
            scenario = made(**levels)
            return scenario_with_settings(scenario, of_scenarios) if isinstance(scenario, Scenario) else scenario

        study = replace(study, scenario=with_settings)
    return study if study.text else replace(study, text=inspect.cleandoc(defined.get("__doc__") or ""))


def _required(function: Callable[..., object]) -> list[str]:
    """Return the parameters of a function that have no default."""
    with suppress(ValueError, TypeError):  # of a function that has no signature
        parameters = inspect.signature(function).parameters.values()
        return [each.name for each in parameters if each.default is each.empty and each.kind not in _OF_ANY_NUMBER]
    return []


def _near(defined: Mapping[str, Any]) -> str:
    """Return what a script defines that is nearly what is asked for, as the end of a message."""
    scenario, study = defined.get("scenarios", defined.get("scenario")), defined.get("study")
    if study is not None:
        return f"; `study` is {quoted(study)}"
    if others := [name for name, value in defined.items() if isinstance(value, Experiment)]:
        return f"; `{others[0]}` is a {type(defined[others[0]]).__name__}: call it `study`"
    if callable(scenario) and (needed := _required(scenario)):
        make = "study = Study(name=..., scenario=scenario, factors=...)"
        return f"; `scenario` is a function of {', '.join(needed)}, which a study calls: {make}"
    return ""


def _guarded(path: Path, name: str, make: Callable[[], object]) -> object:
    """Return what code of a script makes; a failure is one line."""
    try:
        return make()
    except ClusterModelError:
        raise
    except Exception as problem:
        raise SpecificationError(f"{path}: {name}: {failure_line(problem)}") from problem


def value_of(name: str, text: str, default: object) -> object:
    """Return a parameter's value from its text, of the type of its default; a sequence is written with commas."""
    if isinstance(default, list | tuple):
        values = [value_of(name, part.strip(), default[0] if default else "") for part in text.split(",")]
        return tuple(values) if isinstance(default, tuple) else values
    if isinstance(default, bool):
        allowed = {"true": True, "false": False, "yes": True, "no": False}
        if text.lower() not in allowed:
            raise SpecificationError(f"{name}: {text!r} is not allowed; it must be true or false")
        return allowed[text.lower()]
    if isinstance(default, int | float | Path):
        try:
            return type(default)(text)
        except ValueError:
            raise SpecificationError(f"{name}: {text!r} is not allowed; it must be a value like {default!r}") from None
    return None if default is None and text.lower() == "none" else text


def origin_of_script(path: Path, settings: Mapping[str, str] = MappingProxyType({})) -> Origin:
    """Return the origin of the experiment that a script defines."""
    return Origin(script=str(path), text=read_script(path), settings=dict(settings), load=load_experiment)


def sweep(
    source: Experiment[Any] | str | PathLike[str],
    directory: str | PathLike[str],
    *,
    settings: Mapping[str, str] = MappingProxyType({}),
    **options: Any,
) -> StudyTable:
    """Run the missing trials of an experiment, or of the experiment that a script defines, and return the finished ones.

    Stored runs are not repeated; failed runs are.  The directory is created if need be.  All workers run a script that is given
    by its path; ``settings`` are then values of the parameters of its function ``study``, and of fields of all scenarios by
    dotted names (``"machine.time_slicing.quantum_s"``), as texts.  ``options`` are fields of
    :class:`~clustermodel.experiment.executor.Options`.

    Raises:
        SpecificationError: the source is no experiment, a policy has no source, or the directory holds another experiment.
        OutputError: results cannot be written; stored results are complete, and no other run is recorded as failed.
        ExecutionError: no workers are left; unfinished runs remain pending.
        KeyboardInterrupt: a signal stopped the experiment; finished runs are kept.
    """
    from clustermodel.experiment.executor import Options, run_trials  # noqa: PLC0415  workers do without

    origin = Origin(design=source) if isinstance(source, Experiment) else origin_of_script(Path(source), settings)
    return run_trials(origin, directory, Options(**options))[1]


def _scenarios_in(path: Path, defined: Mapping[str, Any]) -> list[Scenario]:
    """Return the value of ``scenarios`` or ``scenario`` as a list: one scenario, several, or a function that returns them."""

    def made() -> list[Any]:
        value = defined.get("scenarios", defined.get("scenario"))
        if callable(value):
            value = [] if _required(value) else value()
        return list(value) if isinstance(value, Iterable) else [value]

    scenarios: Any = _guarded(path, "scenarios", made)
    return scenarios if all(isinstance(scenario, Scenario) for scenario in scenarios) else []


_registered: set[str] = set()  # policies of the last script, which the next one in this process may register again


def _is_of_user(module: ModuleType) -> bool:
    if is_plugin_code(module.__name__):
        return False
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", ()))
    return any(origin_of_file(str(place)) is None for place in places)
