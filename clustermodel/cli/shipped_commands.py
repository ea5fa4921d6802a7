"""``clustermodel init`` and ``clustermodel scenarios``: files to start from, and the studies that come with the package."""

import ast
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import fill
from typing import Final

import click

from clustermodel.cli.options import FILE
from clustermodel.errors import OutputError, SpecificationError, did_you_mean, quoted
from clustermodel.figures.terminal import literal, standard_error, standard_output
from clustermodel.text.files import make_folder, write_file

_FIRST: Final = "first_cluster"
_FIRST_FILES: Final = ("README.md", "jobs.sacct", "site.toml", "policy.py", "study.py")
_RUNNABLE: Final = {"study", "scenario", "scenarios"}
"""What a script defines that commands run."""


def shipped_folder() -> Path:
    """Return the folder of the shipped scenarios: in the installed package, or beside the package in a clone."""
    package = Path(__file__).parents[1]
    for folder in (package / "scenarios", package.parent / "scenarios"):
        if (folder / _FIRST).is_dir():
            return folder
    raise OutputError(f"{package / 'scenarios'}: this installation has no scenarios; install clustermodel anew")


@click.command()
@click.argument("folder", type=FILE, default=_FIRST)
def init(folder: Path) -> None:
    """Write a small cluster to start from: log, site, policy, study.

    FOLDER, by default first_cluster, gets jobs.sacct (made, not taken: two weeks of twelve users on 60 nodes), site.toml,
    policy.py, study.py, and README.md with commands to try.  Nothing is written if a file of one of these names is there.

    \b
    Examples:
      clustermodel init
      clustermodel init my_cluster
    """
    _copy([shipped_folder() / _FIRST / name for name in _FIRST_FILES], folder)
    notes = standard_error()
    notes.print("next, with more in README.md:")
    notes.print(f"  cd {literal(shlex.quote(str(folder)))}")
    notes.print("  clustermodel whatif --trace jobs.sacct")


@click.command()
@click.argument("name", default="")
@click.argument("folder", type=FILE, default=".")
def scenarios(name: str, folder: Path) -> None:
    """List the studies of the package, or copy one to a folder.

    NAME is a study as listed, or the end of its name if no other one ends so.  FOLDER, by default the present one, gets its
    script, the scripts that this imports, and the data that lie beside it.  Nothing is written if a file of one of these names
    is there.

    \b
    Examples:
      clustermodel scenarios
      clustermodel scenarios slice_length
      clustermodel scenarios papers/zhang_2003/migration zhang
    """
    shipped = shipped_folder()
    studies = dict(_studies(shipped))
    if not name:
        out = standard_output()
        for study, question in studies.items():
            line = f"{study}: {question}"
            if out.is_terminal:
                line = fill(line, out.width, subsequent_indent="    ", break_on_hyphens=False)
            out.print(line, markup=False)
        return
    script = shipped / f"{_name_meant(name, studies)}.py"
    data = [path for path in sorted(script.parent.iterdir()) if path.is_file() and path.suffix not in (".py", ".pyc")]
    _copy([*_with_imports(script), *data], folder)
    verb = "validate" if "clustermodel validate" in script.read_text(encoding="utf-8") else "sweep"
    path = literal(shlex.quote(str(folder / script.name)))
    standard_error().print(f"next: clustermodel {verb} {path} --out results (its first lines say more)")


def _studies(shipped: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the question of each script that defines something to run."""
    for path in sorted(shipped.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        defined = {part.name for part in module.body if isinstance(part, ast.FunctionDef)}
        targets = [target for part in module.body if isinstance(part, ast.Assign) for target in part.targets]
        if _RUNNABLE & (defined | {target.id for target in targets if isinstance(target, ast.Name)}):
            yield path.relative_to(shipped).with_suffix("").as_posix(), (ast.get_docstring(module) or "").partition("\n")[0]


def _name_meant(name: str, names: Iterable[str]) -> str:
    """Return the one of ``names`` that is ``name`` or ends in it."""
    asked = Path(name.removeprefix("scenarios/")).with_suffix("").as_posix()
    found = [each for each in names if each == asked] or [each for each in names if each.endswith(f"/{asked}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise SpecificationError(f"NAME: {quoted(name)} is the end of several: {', '.join(found)}")
    ends = {each.rpartition("/")[2]: each for each in names}
    near = did_you_mean(asked, [*names, *ends])
    raise SpecificationError(f"NAME: there is no scenario {quoted(name)}{near}; clustermodel scenarios lists them")


def _with_imports(script: Path) -> list[Path]:
    """Return a script and the scripts of its folder that it imports, and these in turn."""
    found = [script]
    for path in found:
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in part.names] if isinstance(part, ast.Import) else []
            modules += [part.module] if isinstance(part, ast.ImportFrom) and part.module else []
            beside = [script.with_name(f"{module}.py") for module in modules]
            found += [each for each in dict.fromkeys(beside) if each.is_file() and each not in found]
    return found


def _copy(files: Iterable[Path], folder: Path) -> None:
    """Copy files to a folder, which is made if need be; refuse if it has a file of one of their names."""
    targets = {folder / file.name: file.read_bytes() for file in files}
    for target in targets:
        if target.exists() or target.is_symlink():
            raise SpecificationError(f"{target}: exists; nothing is written; give another folder")
    make_folder(folder)
    for target, content in targets.items():
        write_file(target, content)
    names = ", ".join(target.name for target in targets)
    standard_error().print(f"{literal(folder)}: {literal(names)}")
