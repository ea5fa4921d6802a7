"""Decisions as values: given by name, without other attributes, and equal only to decisions of the same type."""

import copy
import pickle
from dataclasses import fields
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import Checkpoint, Kill, Reason, Start, Suspend
from clustermodel.policies.interface import Decision
from clustermodel.policies.view import QueuedJob

TYPES: tuple[type[Any], ...] = get_args(Decision)
FEW: dict[str, st.SearchStrategy[Any]] = {
    # Few values, so that decisions of different types often have the same ones.
    "columns": st.sampled_from([None, (0, 1)]),
    "reason": st.sampled_from([None, Reason("first in the queue")]),
    "requeue": st.booleans(),
    "guaranteed": st.booleans(),
}


def a_job(number: int) -> QueuedJob:
    return QueuedJob(number, 1, 0, 1, -1, -1, 0)


JOBS = [a_job(1), a_job(2)]


@st.composite
def decisions(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(TYPES))
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name == "job":
            values["job"] = draw(st.sampled_from(JOBS))
        elif field.name in ("moves", "blocked"):
            values[field.name] = draw(st.sampled_from([(), (JOBS[0],)]))
        else:
            values[field.name] = draw(FEW.get(field.name, st.integers(0, 1)))
    return kind(**values)


def content(decision: Any) -> list[tuple[str, Any]]:
    return [(field.name, getattr(decision, field.name)) for field in fields(decision)]


@given(st.lists(decisions(), max_size=30))
def test_decisions_are_equal_if_and_only_if_type_and_fields_are(drawn: list[Any]) -> None:
    for one in drawn:
        for other in drawn:
            assert (one == other) is (type(one) is type(other) and content(one) == content(other))
    in_order = {(type(one).__name__, tuple(content(one))) for one in drawn}
    assert len(set(drawn)) == len(in_order)


def test_the_same_fields_in_another_type_are_another_decision() -> None:
    job = a_job(1)
    assert len({Checkpoint(job=job), Suspend(job=job), Kill(job=job), Start(job=job)}) == 4
    assert Checkpoint(job=job) != Suspend(job=job)
    assert Checkpoint(job=job) != (job,)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_fields_are_given_by_name_and_there_are_no_other_attributes(kind: type[Any]) -> None:
    names = [field.name for field in fields(kind)]
    with pytest.raises(TypeError, match=r"takes 1 positional argument but 2 were given"):
        kind(a_job(1))
    made = kind(**dict.fromkeys(names, 1))
    with pytest.raises(AttributeError):
        made.jbo = 2
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
