"""Compile the inner modules of the simulator, the same source, by mypyc, where ``CLUSTERMODEL_COMPILE=1`` asks for it.

Which modules stands in pyproject.toml.  Without the variable a wheel is pure Python, which takes seconds to build.  Editable
installations are never compiled, so that what is edited is what runs.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAM = """
import json, sys
from hatch_build import add_docstrings, close_fields
from mypyc.build import mypycify
from setuptools import Distribution
from setuptools.command.build_ext import build_ext

options, modules, folder = json.loads(sys.argv[1])
# Level 3 makes more code, which is no faster here, perhaps as the processor's cache of instructions holds less of it.  Of what
# it adds, only operations on several digits of an integer at a time matter, where sets of nodes of wide machines are compared.
extensions = mypycify([*options, *modules], opt_level="2", debug_level="0", multi_file=True, group_name="clustermodel",
                      target_dir=folder + "/source")
for module in modules:
    source = folder + "/source/__native_" + module.removesuffix(".py").replace("/", "___") + ".c"
    add_docstrings(source, module)
    close_fields(source)
if sys.platform != "win32":
    for extension in extensions:
        # The second option lets modules call each other directly, not through the linker's table.
        extension.extra_compile_args = [*extension.extra_compile_args, "-ftree-vectorize", "-fvisibility=hidden"]
command = build_ext(Distribution({"name": "clustermodel", "ext_modules": extensions}))
command.build_lib, command.build_temp = folder + "/compiled", folder + "/objects"
command.ensure_finalized()
command.run()
"""


def add_docstrings(c_file: str, python_file: str) -> None:
    """Add the docstrings of a module to the C source that mypyc has made of it, which has none: ``help()`` shows them.

    If a release of mypyc writes its source otherwise, they stay out, and a test of tests/unit/test_compiled.py fails.
    """
    source = Path(c_file).read_text("utf-8")
    texts = dict(_docstrings(ast.parse(Path(python_file).read_text("utf-8"))))
    module = r"\w+?"  # as names in C begin
    if definition := re.search(r"struct PyModuleDef (\w+)module = ", source):
        module = re.escape(definition[1])

    def text_of(*names: str) -> str:
        plain = set(map(chr, range(32, 127))) - set('"\\?')
        text = texts.get(".".join(names), "")
        return "".join(chr(byte) if chr(byte) in plain else f"\\{byte:03o}" for byte in text.encode())

    def with_signature(match: re.Match[str]) -> str:
        before, name, signature = match.groups()
        literals = (signature or "") + (f'"{text}"' if (text := text_of(*name.split("___", 1))) else "")
        return f"{before}PyDoc_STR({literals or 'NULL'})"

    signature = r'PyDoc_STR\((?:NULL|("(?:[^"\\]|\\.)*"))\)'
    for before in (rf'\(PyCFunction\)CPyPy_{module}___(\w+),[^{{}}"]*', r'\.tp_name = "(\w+)",[^{}"]*\.tp_doc = '):
        source = re.sub(f"({before}){signature}", with_signature, source)
    attribute = rf"(\(getter\){module}___(\w+?)_get_(\w+),\s*(?:\(setter\)\w+|NULL),\s*)NULL(?=, NULL}})"
    source = re.sub(attribute, lambda match: f'{match[1]}"{text_of(match[2], match[3])}"', source)
    # Enumerations and named tuples are classes of Python, whose text is an object.
    filler = r"CPyStatics\[\d+\](?=; /\* 'mypyc filler docstring' \*/.*?\bCPyType_\w+?___(\w+) = \(PyTypeObject)"
    source = re.sub(filler, lambda match: f'PyUnicode_FromString("{text_of(match[1])}")', source, flags=re.DOTALL)
    source = source.replace("NULL, /* docstring */", f'PyDoc_STR("{text_of("")}"), /* docstring */')
    Path(c_file).write_text(source, "utf-8")


READ_ONLY = ("QueuedJob", "RunningJob", "Execution", "View")
"""Classes whose fields only compiled modules set: policies, which see the objects, may not (clustermodel/sim/guard.py)."""


def close_fields(c_file: str) -> None:
    """Take the setters of read-only classes away from Python: compiled modules write to the fields themselves."""
    source = Path(c_file).read_text("utf-8")
    classes = rf"(?:\w+___)?(?:{'|'.join(READ_ONLY)})"  # behind the name of the module, where several are compiled
    setter = rf"\(setter\){classes}_set_\w+"
    Path(c_file).write_text(re.sub(setter, "NULL", source), "utf-8")


def _docstrings(node: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield (dotted name, text) of a module, its functions and classes, and the methods and slots of these."""
    yield name, ast.get_docstring(node) or ""
    for each in node.body if not isinstance(node, ast.FunctionDef) else ():
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            yield from _docstrings(each, f"{name}.{each.name}".removeprefix("."))
        elif isinstance(each, ast.Assign) and isinstance(each.value, ast.Dict) and ast.unparse(each.targets[0]) == "__slots__":
            yield from ((f"{name}.{slot}", " ".join(text.split())) for slot, text in ast.literal_eval(each.value).items())


_LONGEST_REASON = 300
"""Characters of what a compiler says last, which may be a whole command line."""


class CompileHook(BuildHookInterface[Any]):
    """Puts the compiled modules of ``modules`` (glob patterns) without ``interpreted`` into the wheel, beside their source."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what compiling needs; pip installs it for the time of the build."""
        return ["mypy>=1.14", "setuptools>=77"] if self._is_wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together; end the build in one line where that is impossible."""
        if not self._is_wanted or version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="clustermodel-"))
        try:
            compiled = self._compile()
        except (OSError, subprocess.CalledProcessError) as problem:
            said = (getattr(problem, "stdout", None) or str(problem)).strip()
            self.app.display_info(said)
            self._refuse(said.splitlines()[-1][-_LONGEST_REASON:])
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update({str(self._folder / "compiled" / name): name for name in compiled})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was made on the way."""
        shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)

    @property
    def _is_wanted(self) -> bool:
        return os.environ.get("CLUSTERMODEL_COMPILE", "0") not in ("", "0")

    def _refuse(self, why: str) -> NoReturn:
        self.app.abort(f"CLUSTERMODEL_COMPILE is set, and clustermodel cannot be compiled: {why}")
        raise AssertionError("the build goes on after it has been ended")

    def _compile(self) -> list[str]:
        """Return the compiled files, relative to the root of the wheel."""
        root = Path(self.root)
        interpreted = set(self.config.get("interpreted", ()))
        paths = (path.relative_to(root).as_posix() for pattern in self.config["modules"] for path in root.glob(pattern))
        modules = sorted(path for path in paths if path not in interpreted and not path.endswith("__init__.py"))
        # Libraries are not looked into: what comes from them is checked when it is used.
        settings = self._folder / "mypy.ini"
        settings.write_text("[mypy]\nfollow_imports = silent\nignore_missing_imports = True\n")
        options = ["--config-file", str(settings), "--no-site-packages", "--cache-dir", str(self._folder / "cache")]
        argument = json.dumps([options, modules, str(self._folder)])
        command = [sys.executable, "-c", PROGRAM, argument]
        subprocess.run(command, cwd=root, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        compiled = self._folder / "compiled"
        return sorted(path.relative_to(compiled).as_posix() for path in compiled.rglob("*") if path.is_file())
