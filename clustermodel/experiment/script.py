"""Python scripts of users: loading them, and saying in one line what is wrong with them."""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from clustermodel.errors import ClusterModelError, SpecificationError
from clustermodel.experiment.code_origin import origin_of_file
from clustermodel.policies.registry import policy_names, unregister_policy


def read_script(path: Path) -> str:
    """Return the text of a script.

    Raises:
        SpecificationError: there is none, or it is no text.
    """
    try:
        found = path.is_file()
    except OSError:  # a name that is too long for any file, before Python 3.13
        found = False
    if not found:
        raise SpecificationError(f"{path}: no such scenario script")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise SpecificationError(f"{path}: cannot be read: {problem}") from None


def run_script(path: Path, text: str) -> Mapping[str, Any]:
    """Run a script, as a module of its own, and return what it defines.

    Its folder is on the path while it runs, as for any script, so that it can import what lies beside it.

    Args:
        path: where it is, or was.
        text: what is in it.

    Raises:
        SpecificationError: it fails; the message starts with ``path:line:``.
        ClusterModelError: as raised by the package from within it.
    """
    folder = str(path.parent.resolve())
    while _imported:  # beside another folder's script, or this one's: they may be others, or have changed since
        sys.modules.pop(_imported.pop(), None)
    while _registered:
        unregister_policy(_registered.pop())
    # A module that can be found, as classes of the script expect; its name, which they may use, changes with no edit.
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
        here = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == str(path)]
        line = here[-1] if here else "?"
        raise SpecificationError(f"{path}:{line}: {type(problem).__name__}: {problem}") from problem
    finally:
        sys.dont_write_bytecode = compiled
        with suppress(ValueError):  # it may have taken it away
            sys.path.remove(folder)
        new = {name for name in set(sys.modules) - before if _is_of_user(sys.modules[name])}
        _imported.update(new - {module.__name__})
        _registered.update(set(policy_names()) - policies)
    return module.__dict__


_imported: set[str] = set()
"""Modules of the user's own that the last script has imported."""
_LONGEST_LINE: Final = 500
"""Characters of an error that are shown."""
_registered: set[str] = set()
"""Policies that the last script has registered: it, or another one, may do so again in this process."""


def _is_of_user(module: ModuleType) -> bool:
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", ()))
    return any(origin_of_file(str(place)) is None for place in places)


def where_raised(exception: BaseException) -> str | None:
    """Return ``file:line`` of the user's code that an exception comes from; ``None`` where no file of a user took part.

    That is the innermost frame which is neither in this package nor in the standard library or an installed package.  SimPy
    raises copies of exceptions, so their causes count too.
    """
    for one in _with_causes(exception):
        for frame in reversed(traceback.extract_tb(one.__traceback__)):
            if not frame.filename.startswith("<") and origin_of_file(frame.filename) is None:
                return f"{frame.filename}:{frame.lineno}"
    return None


def failure_line(exception: BaseException) -> str:
    """Return one line of text: where code of a user failed, and how."""
    words = shortened(" ".join(f"{type(exception).__name__}: {_text(exception)}".rstrip(": ").split()), _LONGEST_LINE)
    where = where_raised(exception)
    return words if where is None else f"{where}: {words}"


def _text(exception: BaseException) -> str:
    try:
        return str(exception)
    except BaseException:  # whatever its own method does
        return "(it cannot say what is wrong)"


def shortened(text: str, longest: int) -> str:
    """Return text without its middle, if it is longer than that."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} ... ({len(text):,} characters) ... {text[-half:]}"


def _with_causes(exception: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    following: BaseException | None = exception
    while following is not None and following not in seen:
        yield following
        seen.append(following)
        following = following.__cause__ or following.__context__
