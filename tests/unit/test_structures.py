"""Node sets, profile and plan against plain models: a Python set, an array with one entry per second."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel.errors import DecisionError
from clustermodel.schedule.nodeset import IdleNodes, NodeSet, as_mask, count, text
from clustermodel.schedule.plan import Plan
from clustermodel.schedule.profile import Profile
from clustermodel.schedule.running import RunningProfile

MACHINE = 24


def members(nodes: NodeSet) -> set[int]:
    return {node for low, high in zip(nodes[::2], nodes[1::2], strict=True) for node in range(low, high)}


@given(st.data())
def test_idle_nodes_behave_like_a_set_that_gives_out_its_lowest_members(data: st.DataObject) -> None:
    idle, model, held = IdleNodes(MACHINE), set(range(MACHINE)), []
    for _ in range(data.draw(st.integers(1, 30))):
        if held and data.draw(st.booleans()):
            back = held.pop(data.draw(st.integers(0, len(held) - 1)))
            idle.give_back(back)
            model |= members(back)
        elif model:
            wanted = data.draw(st.integers(1, len(model)))
            taken = idle.take_lowest(wanted)
            assert members(taken) == set(sorted(model)[:wanted])
            model -= members(taken)
            held.append(taken)
        assert members(idle.as_set()) == model
        assert idle.count == len(model)
        bounds = idle.as_set()
        assert all(low < high for low, high in itertools.pairwise(bounds)), "ranges that touch are merged"


@given(st.data())
def test_particular_nodes_are_taken_only_if_all_are_idle(data: st.DataObject) -> None:
    idle, model = IdleNodes(MACHINE), set(range(MACHINE))
    for _ in range(data.draw(st.integers(1, 12))):
        cuts = sorted(data.draw(st.sets(st.integers(0, MACHINE), min_size=2, max_size=6)))
        wanted = tuple(cuts[: len(cuts) // 2 * 2])
        possible = members(wanted) <= model
        assert idle.take(wanted) is possible
        if possible:
            model -= members(wanted)
        assert members(idle.as_set()) == model
        assert idle.count == len(model)


def test_nodes_that_are_idle_already_cannot_be_given_back() -> None:
    idle = IdleNodes(8)
    assert idle.take((2, 5))
    for overlapping in ((0, 1), (1, 3), (4, 6), (0, 8)):
        with pytest.raises(ValueError, match="overlap nodes that are idle already"):
            idle.give_back(overlapping)


def test_a_node_set_as_text_and_mask() -> None:
    assert text((0, 4, 7, 8)) == "0-3 7"
    assert as_mask((0, 4, 7, 8)) == 0b1000_1111
    assert count((0, 4, 7, 8)) == 5


END = 60


class Rectangle(NamedTuple):
    start: int
    length: int
    nodes: int


rectangles = st.lists(st.builds(Rectangle, st.integers(0, 40), st.integers(1, 15), st.integers(1, 3)), max_size=12)


def filled(shapes: list[Rectangle]) -> tuple[Profile, list[int], list[Rectangle]]:
    """Reserve what fits; return the profile, its model (free nodes at each second) and what was reserved."""
    profile, model, reserved = Profile(8), [8] * 200, []
    for shape in shapes:
        seconds = range(shape.start, shape.start + shape.length)
        if all(model[second] >= shape.nodes for second in seconds):
            profile.reserve(shape.start, shape.start + shape.length, shape.nodes)
            reserved.append(shape)
            for second in seconds:
                model[second] -= shape.nodes
    return profile, model, reserved


def first_fit(model: list[int], nodes: int, length: int, begin: int = 0) -> int:
    return next(start for start in range(begin, 200) if all(free >= nodes for free in model[start : start + length]))


@given(shapes=rectangles, nodes=st.integers(1, 8), length=st.integers(1, 20), now=st.integers(0, 40))
def test_the_profile_finds_the_first_fit_of_a_second_by_second_model(
    shapes: list[Rectangle], nodes: int, length: int, now: int
) -> None:
    profile, model, _ = filled(shapes)
    profile.advance(now)
    assert profile.steps()[0][0] == now
    assert all(profile.free_at(second) == model[second] for second in range(now, END))
    assert profile.fits(nodes, length) == all(free >= nodes for free in model[now : now + length])
    assert profile.earliest(nodes, length) == first_fit(model, nodes, length, now)
    frees = [free for _, free in profile.steps()]
    assert all(one != other for one, other in itertools.pairwise(frees)), "a step without a change"


@given(shapes=rectangles, which=st.integers(0, 11), now=st.integers(0, 10), not_before=st.integers(0, 10))
def test_testing_a_reservation_in_place_equals_taking_it_out_and_placing_it_again(
    shapes: list[Rectangle], which: int, now: int, not_before: int
) -> None:
    profile, model, reserved = filled(shapes)
    later = [shape for shape in reserved if shape.start >= max(now, not_before)]
    if not later:
        return
    mine = later[which % len(later)]
    profile.advance(now)
    begin = max(now, not_before)
    without = [free + mine.nodes * (mine.start <= second < mine.start + mine.length) for second, free in enumerate(model)]
    assert profile.earlier(mine.nodes, mine.length, mine.start, begin) == first_fit(without, mine.nodes, mine.length, begin)


@given(shapes=rectangles)
def test_releasing_everything_restores_the_empty_profile(shapes: list[Rectangle]) -> None:
    profile, _, reserved = filled(shapes)
    for shape in reserved:
        profile.release(shape.start, shape.start + shape.length, shape.nodes)
    assert profile.steps() == [(0, 8)]


def test_more_than_is_free_cannot_be_reserved_nor_anything_in_the_past() -> None:
    profile = Profile(4)
    profile.reserve(10, 20, 3)
    with pytest.raises(DecisionError, match="2 nodes reserved at 10 where only 1 are free"):
        profile.reserve(5, 15, 2)
    profile = Profile(4)
    profile.advance(10)
    with pytest.raises(ValueError, match="5 lies in the past; it begins at 10"):
        profile.reserve(5, 15, 2)


def test_a_job_that_outlives_its_estimate_is_assumed_to_go_on_as_long_as_it_is_late_at_least_a_second() -> None:
    second = 1_000_000
    profile = RunningProfile(4, may_overrun=True)
    profile.start(7, 3, 0, 5 * second)
    assert profile.overrunning(4 * second) == []
    for now, until in ((5, 6), (6, 7), (7, 9), (9, 13)):  # late by 0, 1, 2, 4 seconds
        profile.advance(now * second)
        assert profile.overrunning(now * second) == [7]
        profile.extend([7], now * second)
        assert profile.steps() == [(now * second, 1), (until * second, 4)]
    profile.advance(10 * second)
    assert profile.end(7, 3, 10 * second, 5 * second)
    assert profile.steps() == [(10 * second, 4)]
    assert profile.overrunning(13 * second) == []


class Waiting(NamedTuple):
    id: int
    nodes: int
    estimate: int


def test_a_plan_moves_reservations_one_at_a_time_and_never_back() -> None:
    # Two nodes; a job on both until 10.  Placed in turn: 1 (two nodes, 5) at 10, 2 (one node, 20) at 15, 3 (one node, 4)
    # at 15.  The running job ends at 2: 1 moves to 2, 2 to 7, 3 to 7.
    plan = Plan(2, may_overrun=False)
    plan.start(9, 2, 0, 10)
    jobs = [Waiting(1, 2, 5), Waiting(2, 1, 20), Waiting(3, 1, 4)]
    assert [plan.place(job) for job in jobs] == [10, 15, 15]
    plan.advance(2)
    assert plan.end(9, 2, 2, 10)
    plan.compress(jobs, 2)
    assert plan.reserved == {1: 2, 2: 7, 3: 7}
    assert plan.due(2) == [1]
    plan.take_up(jobs[0], 2)
    assert plan.next_start() == 7
    plan.drop(jobs[1])
    assert plan.reserved == {3: 7}
    assert plan.steps() == [(2, 0), (7, 1), (11, 2)]
