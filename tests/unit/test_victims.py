"""Who yields: the choices of victims against all sets of them."""

from collections.abc import Callable
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from clustermodel.policies.preemption import fewest_for, least_lost_for, victims_for

Gang = tuple[int, int, int]  # number, nodes, loss
GANGS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8).map(
    lambda pairs: [(number, *pair) for number, pair in enumerate(pairs)]
)


def nodes_of(gang: Gang) -> int:
    return gang[1]


def loss_of(gang: Gang) -> int:
    return gang[2]


def enough(gangs: list[Gang], missing: int) -> list[tuple[Gang, ...]]:
    """Return all sets that free enough, in the order of places."""
    sets = chain.from_iterable(combinations(gangs, number) for number in range(1, len(gangs) + 1))
    return [chosen for chosen in sets if sum(map(nodes_of, chosen)) >= missing]


@given(gangs=GANGS, missing=st.integers(1, 30))
def test_no_set_of_fewer_jobs_frees_enough_and_of_equal_ones_the_first_are_chosen(gangs: list[Gang], missing: int) -> None:
    best = min(enough(gangs, missing), key=lambda chosen: (len(chosen), chosen), default=())
    assert tuple(fewest_for(missing, gangs, nodes_of)) == best


@given(gangs=GANGS, missing=st.integers(1, 30))
def test_no_set_that_frees_enough_loses_less(gangs: list[Gang], missing: int) -> None:
    def cost(chosen: tuple[Gang, ...]) -> tuple[int, int]:
        return sum(map(loss_of, chosen)), len(chosen)

    victims = tuple(least_lost_for(missing, gangs, nodes_of, loss_of))
    sets = enough(gangs, missing)
    assert (victims in [*sets, ()]) or tuple(sorted(victims)) in sets
    assert cost(victims) == min(map(cost, sets), default=(0, 0))


@given(gangs=GANGS, missing=st.integers(1, 30))
def test_no_victim_can_be_spared(gangs: list[Gang], missing: int) -> None:
    rules: tuple[Callable[[], list[Gang]], ...] = (
        lambda: victims_for(missing, gangs, nodes_of),
        lambda: fewest_for(missing, gangs, nodes_of),
        lambda: least_lost_for(missing, gangs, nodes_of, loss_of),
    )
    for rule in rules:
        victims = rule()
        freed = sum(map(nodes_of, victims))
        assert bool(victims) == bool(enough(gangs, missing))
        assert all(freed - nodes_of(victim) < missing for victim in victims)


def test_many_candidates_for_many_nodes_are_chosen_one_by_one() -> None:
    # 300 x 200 is more than is searched: the cheapest 200 of the first 299 of 1 node each, though the last, of 200, loses less.
    gangs = [(number, 1, 1) for number in range(299)] + [(299, 200, 150)]
    assert len(least_lost_for(200, gangs, nodes_of, loss_of)) == 200
    assert least_lost_for(100, [*gangs[:200], gangs[-1]], nodes_of, loss_of) == gangs[:100][::-1]


def test_nobody_yields_where_nothing_is_missing_or_all_are_too_few() -> None:
    for missing in (0, -3, 7):
        assert fewest_for(missing, [(0, 2, 1), (1, 4, 1)], nodes_of) == []
        assert least_lost_for(missing, [(0, 2, 1), (1, 4, 1)], nodes_of, loss_of) == []
