"""What keeps a policy of a user from assigning to fields of jobs, of gangs and of the view: a refusal that names the field.

Compiled modules need none of this: attributes of their classes cannot be set from outside (``hatch_build.py``), which this
module says in the same words.  In pure Python the objects of a run whose policy, or a part of it, is a user's belong to
subclasses that refuse; runs of the policies of this package are as fast as without.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from clustermodel.errors import DecisionError
from clustermodel.policies.interface import Decide, Decision
from clustermodel.policies.predictors import PREDICTORS
from clustermodel.policies.view import Batch, QueuedJob, RunningJob, View, copy_of
from clustermodel.sim.compiled import is_compiled

_OURS: Final = "clustermodel.policies."


def _fields_of(kind: type, *others: str) -> frozenset[str]:
    return frozenset({*getattr(kind, "__slots__", ()), *others})  # a compiled class has no __slots__, and needs no guard


_FIELDS: Final = (
    (QueuedJob, _fields_of(QueuedJob), "jobs"),
    (RunningJob, _fields_of(RunningJob, "duration", "length", "outcome", "owner"), "running jobs"),
    (View, _fields_of(View), "what it is shown"),
)
"""Classes, which of their fields are refused, and what these are of, in words."""
_NOT_WRITABLE: Final = re.compile(
    r"attribute '(\w+)' of '[\w.]*?(QueuedJob|View|\w*Gang|Execution|RunningJob)' objects is not writable"
)


_END: Final = object()
_set_now, _set_idle, _set_up = (vars(View)[name].__set__ for name in ("now", "idle", "up"))


def is_shipped(part: object) -> bool:
    """Return whether a policy, or a part of one, and all its parts are of this package."""
    if part is None or isinstance(part, bool | int | float | str):
        return True
    if isinstance(part, tuple | list | frozenset):
        return all(map(is_shipped, part))
    if not (getattr(part, "__module__", "") or "").startswith(_OURS):
        return False
    fields = getattr(part, "__dict__", {})
    predictor = fields.get("predictor", "perfect")
    is_named = not isinstance(predictor, str) or predictor in PREDICTORS
    return is_named and (callable(part) or all(map(is_shipped, fields.values())))


class Guard:
    """Refuses what the policy of a run assigns while it decides; the mechanism goes on assigning."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._decides = False
        self._locked: dict[type, type] = {}

    def guarded(self, decide: Decide, view: View) -> Decide:
        """Return the ``decide`` of a policy that must not assign, which sees a copy of ``view`` that refuses."""
        shown = view if is_compiled() else copy_of(view)
        self.lock(shown)

        def guarded_decide(batch: Batch, view: View) -> Iterable[Decision]:
            if shown is not view:
                _set_now(shown, view.now)
                _set_idle(shown, view.idle)
                _set_up(shown, view.up)
            decided: Any = self._asked(lambda: decide(batch, shown))
            # A generator decides while it is listed, perhaps without end.
            return self._one_by_one(decided) if isinstance(decided, Iterator) else decided

        return guarded_decide

    def _one_by_one(self, decisions: Iterator[Decision]) -> Iterator[Decision]:
        while (decision := self._asked(lambda: next(decisions, _END))) is not _END:
            yield decision

    def _asked(self, ask: Callable[[], Any]) -> Any:
        """Return what code of the policy returns, which must not assign."""
        self._decides = True
        try:
            return ask()
        except DecisionError as problem:
            if str(problem).startswith("it sets "):
                raise DecisionError(f"policy {self._policy}: {problem}") from None
            raise
        except AttributeError as problem:
            if (said := _NOT_WRITABLE.search(str(problem))) is None:
                raise
            kind = {"QueuedJob": "jobs", "View": "what it is shown"}.get(said[2], "running jobs")
            raise self._refusal(said[1], kind) from problem
        finally:
            self._decides = False

    def lock(self, thing: object) -> None:
        """Let a job, a gang or a view refuse assignments while the policy decides."""
        if not is_compiled():
            kind = type(thing)
            thing.__class__ = self._locked.get(kind) or self._lock_class(kind)

    def _lock_class(self, kind: type) -> type:
        fields, of = next((fields, of) for base, fields, of in _FIELDS if issubclass(kind, base))
        assign: Callable[[object, str, object], None] = object.__setattr__

        def set_field(thing: Any, name: str, value: object) -> None:
            if self._decides and name in fields:
                raise self._refusal(name, of)
            assign(thing, name, value)

        def delete_field(thing: Any, name: str) -> None:
            if self._decides and name in fields:
                raise self._refusal(name, of, verb="deletes")
            object.__delattr__(thing, name)

        own = {"__slots__": (), "__setattr__": set_field, "__delattr__": delete_field, "__module__": kind.__module__}
        self._locked[kind] = locked = type(kind.__name__, (kind,), own)
        return locked

    def _refusal(self, field: str, of: str, verb: str = "sets") -> DecisionError:
        return DecisionError(f"policy {self._policy}: it {verb} {field}; a policy may not change {of}")
