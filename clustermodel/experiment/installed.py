"""Whose code is it: the package's, the standard library's, an installed package's, or the user's own?"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Final

_PACKAGE: Final = str(Path(__file__).parents[1])


@cache
def _installed_in() -> tuple[tuple[str, str], ...]:
    """Return the folders of what is installed, with what it is called; the innermost first."""
    paths = sysconfig.get_paths()
    packages = {paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()}
    library = {paths["stdlib"], paths["platstdlib"], str(Path(os.__file__).parent)}
    folders = [(folder, "packages") for folder in packages] + [(folder, "python") for folder in library]
    return tuple((str(Path(folder).resolve()) + os.sep, what) for folder, what in folders)


@lru_cache(maxsize=10_000)
def origin_of_file(name: str) -> str | None:
    """Return what a file of code belongs to: ``"clustermodel"``, ``"python"``, a package with its version; ``None`` if it is
    the user's own.
    """
    if name.startswith("<"):
        return "python" if name.startswith("<frozen") or name == "<built-in>" else None
    path = str(Path(name).resolve())
    if path.startswith(_PACKAGE + os.sep):
        return "clustermodel"
    for folder, what in _installed_in():
        if path.startswith(folder):
            return "python" if what == "python" else _distribution(Path(path.removeprefix(folder)).parts[0])
    parts = Path(path).parts
    for kind in ("site-packages", "dist-packages"):
        if kind in parts:
            return _distribution(parts[parts.index(kind) + 1])
    return None


def origin_of_module(name: object) -> str | None:
    """Return what a module belongs to, by its name, in the same words."""
    if not isinstance(name, str) or name.startswith("_cython_"):  # classes written in C
        return "python"
    top = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None) or getattr(sys.modules.get(top), "__file__", None)
    if file is not None:
        return origin_of_file(file)
    return "python" if top in sys.stdlib_module_names and top != "__main__" else None


@cache
def _distribution(top: str) -> str:
    top = top.partition(".")[0]
    try:
        return f"{top} {version(top)}"
    except (PackageNotFoundError, ValueError):
        names = packages_distributions().get(top, ())
        return " ".join(f"{name} {version(name)}" for name in sorted(set(names))) or top
