"""MUA beside its literal twin, and its laws, on any space."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.mua import best_expansions, marginal_utility_allocation, walk
from tests.allocation.settings import SPACES, random_logits
from tests.reference import mua as literal

PAPER = Actions(SPACES["paper"])
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)


def random_probabilities(actions, num_items=6, seed=0):
    return random_logits(actions, num_items, seed).softmax(dim=-1)


def names(places, actions=PAPER):
    return [str(actions.space.nodes[place]) for place in places.tolist()]


def probability_of(table, actions):
    """The literal twin's view of one item's table [states, actions]."""
    nodes = actions.space.nodes

    def probability(source, target):
        action = 1 + actions.space.edges.index((nodes[source], nodes[target]))
        return float(table[actions.place(nodes[source]), action])

    return probability


def expansions_of(space):
    return {
        space.index(node): [space.index(target) for target in space.expansions(node)]
        for node in space.nodes
    }


def one_item(**probabilities):
    """Probabilities of one item at the paper's states, by expansion; the rest is STOP's."""
    table = torch.zeros(1, 4, 6)
    for place, edge in enumerate(PAPER.space.edges):
        name = "to_" + str(edge.target).replace("+", "")
        table[0, PAPER.place(edge.source), 1 + place] = probabilities.get(name, 0.0)
    return table


def test_the_papers_trajectories_by_hand():
    def allocated(threshold, **probabilities):
        return names(marginal_utility_allocation(one_item(**probabilities), PAPER, threshold))[0]

    assert allocated(0.5, to_11=0.3, to_20=0.4) == "1+0"
    assert allocated(0.35, to_11=0.3, to_20=0.4) == "2+0"
    assert allocated(0.35, to_11=0.45, to_20=0.4) == "1+1"
    assert allocated(0.35, to_11=0.45, to_22=0.36, to_44=0.2) == "2+2"
    assert allocated(0.35, to_20=0.45, to_22=0.36, to_44=0.9) == "4+4"
    # A later step cannot make up for an earlier one.
    assert allocated(0.5, to_11=0.45, to_22=0.9, to_44=0.9) == "1+0"


def test_a_probability_equal_to_the_threshold_ends_the_allocation():
    table = one_item(to_11=0.25, to_22=0.25)
    assert names(marginal_utility_allocation(table, PAPER, 0.25)) == ["1+0"]


def test_of_equally_probable_expansions_the_first_is_taken():
    assert names(marginal_utility_allocation(one_item(to_11=0.4, to_20=0.4), PAPER, 0.1)) == ["1+1"]


@every_space
@settings(max_examples=25)
@given(st.integers(0, 99), st.floats(0, 1))
def test_allocation_is_that_of_the_literal_twin(space, seed, threshold):
    actions = Actions(space)
    table = random_probabilities(actions, seed=seed)
    found = marginal_utility_allocation(table, actions, threshold).tolist()
    ways = expansions_of(space)
    assert found == [
        literal.allocate(probability_of(item, actions), ways, threshold) for item in table
    ]


@every_space
@settings(max_examples=25)
@given(st.integers(0, 99), st.floats(0, 1), st.floats(0, 1))
def test_capacity_never_rises_with_the_threshold(space, seed, one, other):
    actions = Actions(space)
    table = random_probabilities(actions, seed=seed)
    low, high = (
        marginal_utility_allocation(table, actions, threshold)
        for threshold in (min(one, other), max(one, other))
    )
    for large, small in zip(low.tolist(), high.tolist(), strict=True):
        assert space.nodes[large].covers(space.nodes[small])


@every_space
def test_threshold_one_gives_the_root_and_zero_the_end_of_the_way(space):
    actions = Actions(space)
    table = random_probabilities(actions, 20)
    assert not marginal_utility_allocation(table, actions, 1.0).any()
    ends = marginal_utility_allocation(table, actions, 0.0).tolist()
    assert all(space.is_terminal(space.nodes[place]) for place in ends)


@every_space
def test_a_batch_gets_what_its_items_get_alone(space):
    actions = Actions(space)
    table = random_probabilities(actions, 12)
    together = marginal_utility_allocation(table, actions, 0.3)
    alone = [marginal_utility_allocation(item[None], actions, 0.3) for item in table]
    assert torch.equal(together, torch.cat(alone))


def test_only_states_that_are_reached_are_decided_on():
    asked = []

    def decide(state, items):
        asked.append((str(state), items.tolist()))
        probabilities = torch.zeros(len(items), 6)
        probabilities[items % 2 == 1, 2] = 0.9
        return probabilities

    assert names(walk(decide, 5, PAPER, 0.5)) == ["1+0", "2+0", "1+0", "2+0", "1+0"]
    assert asked == [("1+0", [0, 1, 2, 3, 4]), ("2+0", [1, 3])]


def test_nobody_is_allocated_nothing():
    assert marginal_utility_allocation(torch.zeros(0, 4, 6), PAPER, 0.5).tolist() == []


def test_the_best_expansion_is_one_that_is_possible():
    table = torch.full((1, 4, 6), 0.5)
    best, targets = best_expansions(table, PAPER, PAPER.states)
    assert names(targets[0]) == ["1+1", "2+2", "2+2", "4+4"]
    assert best.tolist() == [[0.5] * 4]
