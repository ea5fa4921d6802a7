"""Code of users: whether code is theirs or installed, their exceptions in one line, and the time that a run may take.

An exception of a user's code fails its run only; an interrupt of the process that runs the study stops the study.
"""

import inspect
import multiprocessing
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from types import FrameType, FunctionType
from typing import Final

from clustermodel.errors import ClusterModelError, did_you_mean
from clustermodel.plugins import is_plugin_code

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_CLASS_FACTORIES: Final = ("abc", "collections", "dataclasses", "enum", "functools", "types", "typing")
"""Standard modules that a user's class names as its own module when a call made the class."""
SCRIPT_MODULES: Final[set[str]] = set()  # modules of the user that the last script of this process imported
_STOPPING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_LONGEST_TRACEBACK: Final = 100_000  # characters of a recorded failure
_LONGEST_LINE: Final = 500
_INSISTING_S: Final = 0.5  # a run that catches the exception of its timeout gets it again after this time,
_MOST_CATCHES: Final = 10  # and after so many of them its worker process ends


class RunTimeoutError(BaseException):
    """A run exceeded its timeout; a base exception, which the user's ``except Exception`` does not catch."""


def in_main_thread() -> bool:
    """Return whether this thread is the one in which Python handles signals."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold signals to stop back until the end of the block; processes started in it never receive Ctrl-C."""
    # Blocking is not enough: the kernel then gives a signal of the process to a thread that does not block it, such as one of
    # OpenBLAS, and Python calls the handler in the main thread all the same.
    if not in_main_thread():
        yield
        return
    received: list[int] = []
    before = {number: signal.getsignal(number) for number in _STOPPING}
    handled = [number for number, handler in before.items() if callable(handler)]
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    for number in handled:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number in handled:
            signal.signal(number, before[number])
        if received:
            signal.raise_signal(received[0])


def as_failure(problem: BaseException) -> str:
    """Return a failure of a run: a line for an error of this package, else traceback and line; raise what stops the study."""
    if isinstance(problem, KeyboardInterrupt) and in_main_thread() and multiprocessing.parent_process() is None:
        raise problem
    if isinstance(problem, ClusterModelError | RunTimeoutError):
        return shortened(str(problem), _LONGEST_TRACEBACK)
    whole = "".join(traceback.format_exception(problem)).rstrip()
    return f"{shortened(whole, _LONGEST_TRACEBACK)}\n\n{failure_line(problem)}"


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise :class:`RunTimeoutError` in a block of the main thread that takes longer than ``seconds``; ``None`` is no limit."""
    if seconds is None:
        yield
        return
    said = RunTimeoutError(f"it ran longer than {seconds:g} s (--run-timeout), and was stopped")
    rung = 0

    def ring(_number: int, _frame: FrameType | None) -> None:
        nonlocal rung
        rung += 1
        if rung > _MOST_CATCHES and multiprocessing.parent_process() is not None:
            os._exit(1)
        raise said

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, _INSISTING_S)
    try:
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        if rung:  # the run caught the exception, and completed
            raise said
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def failure_line(exception: BaseException) -> str:
    """Return a failure in one line, after ``file:line`` of the innermost code of the user that took part."""
    try:
        text = str(exception)
        with suppress(Exception):  # of an object's own __dir__
            text += name_meant(exception)
    except BaseException:  # of the exception's own method
        text = "(it cannot say what is wrong)"
    words = shortened(" ".join(f"{type(exception).__name__}: {text}".rstrip(": ").split()), _LONGEST_LINE)
    seen: list[BaseException] = []
    cause: BaseException | None = exception
    while cause is not None and cause not in seen:  # SimPy copies exceptions; their causes have the places
        for frame in reversed(traceback.extract_tb(cause.__traceback__)):
            if not frame.filename.startswith("<") and origin_of_file(frame.filename) is None:
                return f"{frame.filename}:{frame.lineno}: {words}"
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
    return words


def name_meant(exception: BaseException) -> str:
    """Return ``" (did you mean 'replications'?)"`` for an exception about a name that does not exist, or an empty text."""
    import clustermodel  # noqa: PLC0415  the public names

    if isinstance(exception, AttributeError) and exception.name:
        return did_you_mean(exception.name, [name for name in dir(exception.obj) if not name.startswith("_")])
    if isinstance(exception, NameError) and exception.name:
        return did_you_mean(exception.name, dir(clustermodel))
    if missing := re.match(r"cannot import name '(\w+)' from 'clustermodel' ", str(exception)):
        return did_you_mean(missing[1], dir(clustermodel))
    argument = re.fullmatch(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'", str(exception))
    if argument is None or argument[1] not in dir(clustermodel):
        return ""
    return did_you_mean(argument[2], inspect.signature(getattr(clustermodel, argument[1])).parameters)


def shortened(text: str, longest: int) -> str:
    """Return text without its middle, if it has more characters than ``longest``."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} ... ({len(text):,} characters) ... {text[-half:]}"


@lru_cache(maxsize=10_000)
def origin_of_file(name: str) -> str | None:
    """Return the origin of a source file: ``"clustermodel"``, ``"python"``, or an installed package with its version."""
    # None for code of the user, and for packages with plug-ins, which people edit as they edit scripts.
    if name.startswith("<"):
        return "python" if name.startswith("<frozen") or name == "<built-in>" else None
    path = Path(name).resolve()
    of_compiled = name.startswith("clustermodel/") and name.removesuffix(".py").replace("/", ".") in sys.modules
    if path.is_relative_to(_PACKAGE) or of_compiled:
        return "clustermodel"
    for folder in ("site-packages", "dist-packages"):
        if folder in path.parts:
            top = path.parts[path.parts.index(folder) + 1]
            return None if is_plugin_code(top) else _distribution(top.partition(".")[0])
    return "python" if any(map(path.is_relative_to, _standard_library())) else None


@cache
def _standard_library() -> tuple[Path, ...]:
    """Return the folders of the standard library."""
    import sysconfig  # noqa: PLC0415  with a table of all settings of Python

    return Path(sysconfig.get_path("stdlib")).resolve(), Path(os.__file__).resolve().parent


@cache
def _distribution(top: str) -> str:
    """Return the name and the version of the installed package that has a top-level module."""
    try:
        return f"{top} {version(top)}"
    except (PackageNotFoundError, ValueError):
        names = packages_distributions().get(top, ())
        return " ".join(f"{name} {version(name)}" for name in sorted(set(names))) or top


def origin_of_module(name: object) -> str | None:
    """Return the origin of a module by its name, as :func:`origin_of_file` does."""
    if not isinstance(name, str) or name.startswith("_cython_"):  # classes written in C
        return "python"
    if name == "__main__":  # a notebook's too, whose file is that of its kernel
        return None
    top = name.partition(".")[0]
    file = getattr(sys.modules.get(name), "__file__", None) or getattr(sys.modules.get(top), "__file__", None)
    if file is not None:
        return origin_of_file(file)
    return "python" if top in sys.stdlib_module_names else None


def origin_of(thing: object) -> str | None:
    """Return the origin of a function, a class, or the class of an object, as :func:`origin_of_file` does."""
    if isinstance(thing, FunctionType):
        file, name = thing.__code__.co_filename, thing.__name__
        generated = file.startswith("<") and name.startswith("__") and name.endswith("__")  # of a dataclass, for instance
        return "python" if generated else origin_of_file(file)
    kind = thing if isinstance(thing, type) else type(thing)
    origin = origin_of_module(kind.__module__)
    of_factory = origin == "python" and kind.__module__ in _CLASS_FACTORIES and not kind.__qualname__.startswith("_")
    return None if of_factory and named(kind.__module__, kind.__qualname__) is not kind else origin


def named(module: str, name: str) -> object:
    """Return what a qualified name leads to in an imported module, ``None`` if to nothing."""
    thing: object = sys.modules.get(module)
    for part in name.split("."):
        thing = getattr(thing, part, None)
    return thing


def is_ours(thing: object) -> bool:
    """Return whether a class or function is unchanged code of this package."""
    if not isinstance(thing, type | FunctionType) or origin_of(thing) != "clustermodel":
        return False
    above = thing.__mro__ if isinstance(thing, type) else ()
    return not any(origin_of(value) is None for kind in above for value in vars(kind).values())
