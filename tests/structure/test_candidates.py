"""Candidate sets are checked once and keep their promises; a CAES adds a selection per item."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import (
    DtypeError,
    EmptyBatchError,
    LayoutMismatchError,
    NotFiniteError,
    NotNormalizedError,
    ShapeError,
)
from adaptiveembed.structure import (
    CAES,
    PAPER_LAYOUT,
    CandidateSets,
    GroupLayout,
    Selection,
    activate,
    candidates,
)
from tests.structure.strategies import (
    caes_of_any_layout,
    candidate_sets,
    layouts,
    random_candidates,
    selections,
)

PAIR = GroupLayout((1, 1))
HALF_KINDS = [torch.float16, torch.bfloat16]
KINDS = [torch.float32, *HALF_KINDS]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
every_device = pytest.mark.parametrize("device", DEVICES)


def unit_pairs(*lengths):
    """One item of layout (1, 1) per length; its second vector has that length."""
    return torch.tensor([[[1.0, 0.0], [0.0, length]] for length in lengths])


def selected(text, layout=PAPER_LAYOUT):
    return Selection.parse(text, layout)


# --- What is accepted -----------------------------------------------------------------------------


@every_kind
@given(layout=layouts(), dim=st.integers(1, 64), seed=st.integers(0, 99))
def test_rounding_a_unit_vector_never_makes_it_refused(kind, layout, dim, seed):
    exact = random_candidates(3, layout, dim, seed=seed).vectors
    assert CandidateSets(exact.to(kind), layout).dim == dim


def test_the_vectors_are_neither_copied_nor_changed():
    vectors = unit_pairs(1.0, 1.0)
    assert CandidateSets(vectors, PAIR).vectors is vectors


@pytest.mark.parametrize(
    ("kind", "accepted", "refused"),
    [
        (torch.float32, 1 + 8e-6, 1 + 1.3e-5),
        (torch.float32, 1 - 8e-6, 1 - 1.3e-5),
        (torch.float16, 1 + 2**-10, 1 + 2**-9),
        (torch.float16, 1 - 2**-10, 1 - 2**-9),
        (torch.bfloat16, 1 - 2**-8, 1 + 2**-7),
    ],
    ids=str,
)
def test_a_length_may_be_off_by_what_rounding_costs(kind, accepted, refused):
    CandidateSets(unit_pairs(accepted).to(kind), PAIR)
    with pytest.raises(NotNormalizedError, match=f"within .* for {kind}"):
        CandidateSets(unit_pairs(refused).to(kind), PAIR)


def test_lengths_of_half_vectors_are_not_rounded_themselves():
    # Length 0.9945, which bfloat16 would call 0.9961 and therefore within 0.004 of one.
    vector = torch.tensor([[[0.9921875, 0.0678]]], dtype=torch.bfloat16)
    with pytest.raises(NotNormalizedError, match=r"has length 0\.994"):
        CandidateSets(vector, GroupLayout((1,)))


# --- Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [CandidateSets, CandidateSets.normalized])
class TestBothWaysOfMaking:
    def test_a_single_item_without_batch_axis_is_refused(self, make):
        with pytest.raises(ShapeError, match=r"got shape \(2, 4\).*needs \.unsqueeze\(0\)"):
            make(torch.ones(2, 4), PAIR)

    def test_an_empty_batch_is_refused(self, make):
        with pytest.raises(EmptyBatchError, match=r"at least one item, got shape \(0, 2, 4\)"):
            make(torch.ones(0, 2, 4), PAIR)

    def test_vectors_without_dimensions_are_refused(self, make):
        with pytest.raises(ShapeError, match=r"at least one dimension, got shape \(1, 2, 0\)"):
            make(torch.ones(1, 2, 0), PAIR)

    def test_another_number_of_positions_is_refused(self, make):
        with pytest.raises(LayoutMismatchError, match=r"layout 4\+4 has 8 .* have 2; give"):
            make(unit_pairs(1.0), PAPER_LAYOUT)

    @pytest.mark.parametrize("kind", [torch.float64, torch.int64], ids=str)
    def test_other_number_types_are_refused(self, make, kind):
        with pytest.raises(DtypeError, match=rf"got {kind}; convert with \.float\(\)"):
            make(unit_pairs(1.0).to(kind), PAIR)

    @every_kind
    @pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
    def test_a_number_that_is_not_finite_is_found_where_it_is(self, make, kind, value):
        vectors = unit_pairs(1.0, 1.0, 1.0).to(kind)
        vectors[1, 1, 0] = value
        with pytest.raises(NotFiniteError, match="item 1, position 1 holds NaN or infinity; look"):
            make(vectors, PAIR)


def test_a_vector_that_is_not_of_unit_length_is_found_where_it_is():
    expected = r"item 2, position 1 has length 3, needed is 1 within 1e-05 .*; use Cand.*normalized"
    with pytest.raises(NotNormalizedError, match=expected):
        CandidateSets(unit_pairs(1.0, 1.0, 3.0), PAIR)


@pytest.mark.parametrize("make", [CandidateSets, CandidateSets.normalized])
def test_a_zero_vector_is_told_that_no_scaling_helps(make):
    with pytest.raises(
        NotNormalizedError, match="item 1, position 1 is zero and has no direction; leave"
    ):
        make(unit_pairs(1.0, 0.0), PAIR)


def test_finite_numbers_whose_squares_overflow_are_called_too_long_and_not_infinite():
    with pytest.raises(NotNormalizedError, match=r"has length 1e\+30, needed is 1"):
        CandidateSets(unit_pairs(1e30), PAIR)


def test_the_item_is_named_also_when_lengths_are_measured_in_parts(monkeypatch):
    monkeypatch.setattr(candidates, "CHECKED_AT_ONCE", 9)  # two items of four numbers
    assert len(CandidateSets(unit_pairs(*[1.0] * 5), PAIR)) == 5
    with pytest.raises(NotNormalizedError, match="item 4, position 1 has length 2"):
        CandidateSets(unit_pairs(1.0, 1.0, 1.0, 1.0, 2.0), PAIR)


def test_one_item_larger_than_a_part_is_still_measured(monkeypatch):
    monkeypatch.setattr(candidates, "CHECKED_AT_ONCE", 1)
    with pytest.raises(NotNormalizedError, match="item 1, position 1 has length 2"):
        CandidateSets(unit_pairs(1.0, 2.0), PAIR)


# --- Scaling to unit length -----------------------------------------------------------------------


def test_normalized_divides_by_the_length():
    raw = torch.tensor([[[3.0, 4.0], [0.0, -2.0]]])
    expected = torch.tensor([[[0.6, 0.8], [0.0, -1.0]]])
    torch.testing.assert_close(CandidateSets.normalized(raw, PAIR).vectors, expected)


@given(candidate_sets(), st.sampled_from([2.0**-120, 2.0**-3, 1.0, 2.0**120]))
def test_normalized_sees_directions_only(original, factor):
    scaled = CandidateSets.normalized(original.vectors * factor, original.layout)
    torch.testing.assert_close(scaled.vectors, original.vectors)


@every_kind
@given(layout=layouts(), dim=st.integers(1, 64), seed=st.integers(0, 99))
def test_normalized_makes_accepted_vectors_of_every_kind(kind, layout, dim, seed):
    raw = 7 * random_candidates(2, layout, dim, seed=seed).vectors
    made = CandidateSets.normalized(raw.to(kind), layout)
    assert made.vectors.dtype == kind
    expected = torch.nn.functional.normalize(raw.to(kind).float(), dim=-1)
    torch.testing.assert_close(made.vectors, expected.to(kind))


def test_normalized_half_vectors_are_rounded_once():
    raw = torch.tensor([[[1.0, 3.0], [1.0, 7.0]]], dtype=torch.bfloat16)
    exact = raw.double() / raw.double().norm(dim=-1, keepdim=True)
    assert torch.equal(CandidateSets.normalized(raw, PAIR).vectors, exact.bfloat16())


def test_normalized_passes_gradients_like_a_division_by_the_length():
    raw = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
    twin = raw.detach().clone().requires_grad_()
    weights = torch.arange(12.0).reshape(2, 2, 3)
    (CandidateSets.normalized(raw, PAIR).vectors * weights).sum().backward()
    (twin / twin.norm(dim=-1, keepdim=True) * weights).sum().backward()
    torch.testing.assert_close(raw.grad, twin.grad)


# --- Items ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (1, [1]),
        (-1, [4]),
        (np.int64(2), [2]),
        (slice(1, 4), [1, 2, 3]),
        (slice(None, None, 2), [0, 2, 4]),
        ([3, 0, 3], [3, 0, 3]),
        (np.array([4, 1]), [4, 1]),
        (torch.tensor([2, -5]), [2, 0]),
        (torch.tensor([True, False, False, True, False]), [0, 3]),
    ],
    ids=str,
)
@every_device
def test_an_index_of_any_kind_gives_candidate_sets_and_caes(index, rows, device):
    sets = random_candidates(5, PAPER_LAYOUT, 3, device=device)
    lengths = tuple(selected(text) for text in ("1+0", "1+1", "2+0", "2+2", "4+4"))
    assert torch.equal(sets[index].vectors, sets.vectors[rows])
    chosen = CAES(sets, lengths)[index]
    assert torch.equal(chosen.candidates.vectors, sets.vectors[rows])
    assert chosen.selections == tuple(lengths[row] for row in rows)
    assert (sets[index].layout, chosen.layout) == (PAPER_LAYOUT, PAPER_LAYOUT)


@given(candidate_sets())
def test_iterating_gives_every_item_as_a_batch_of_one(sets):
    items = list(sets)
    assert len(items) == len(sets)
    assert torch.equal(CandidateSets.concatenate(items).vectors, sets.vectors)


def test_a_slice_shares_the_vectors():
    sets = random_candidates(4, PAIR, 3)
    assert sets[2:].vectors.data_ptr() == sets.vectors[2].data_ptr()


@pytest.mark.parametrize("index", [5, -6, [0, 5]], ids=str)
def test_an_item_that_is_not_there_is_an_index_error(index):
    with pytest.raises(IndexError, match=r"no item (5|-6) among 5; choose 0 to 4"):
        random_candidates(5, PAIR, 3)[index]


@pytest.mark.parametrize("index", [slice(2, 2), [], torch.zeros(5, dtype=torch.bool)], ids=str)
def test_choosing_no_item_is_refused(index):
    with pytest.raises(EmptyBatchError, match="no item was chosen; choose at least one"):
        random_candidates(5, PAIR, 3)[index]


def test_an_index_that_is_not_whole_is_refused():
    with pytest.raises(DtypeError, match=r"a mask, got torch\.float32; convert .* \.long\(\)"):
        random_candidates(5, PAIR, 3)[torch.tensor([1.0])]


def test_a_mask_of_another_length_is_refused():
    sets = random_candidates(5, PAIR, 3)
    for indexed in (sets, CAES(sets, (selected("1+0", PAIR),) * 5)):
        with pytest.raises(ShapeError, match="mask of 4 entries cannot choose among 5 items; give"):
            indexed[torch.ones(4, dtype=torch.bool)]


@given(st.data())
def test_concatenating_the_parts_gives_the_whole(data):
    whole = data.draw(caes_of_any_layout())
    cut = data.draw(st.integers(1, len(whole)))
    parts = [whole[:cut], whole[cut:]] if cut < len(whole) else [whole]
    again = CAES.concatenate(parts)
    assert torch.equal(again.candidates.vectors, whole.candidates.vectors)
    assert (again.selections, again.layout) == (whole.selections, whole.layout)


def test_concatenating_nothing_is_refused():
    for kind in (CandidateSets, CAES):
        with pytest.raises(EmptyBatchError, match="give at least one part"):
            kind.concatenate([])


def test_parts_that_do_not_fit_are_refused():
    first = random_candidates(2, PAIR, 3)
    with pytest.raises(LayoutMismatchError, match=r"of layouts 1\+1 and 2; all parts need one"):
        CandidateSets.concatenate([first, random_candidates(2, GroupLayout((2,)), 3)])
    with pytest.raises(ShapeError, match="of 3 and 4 dimensions; all parts need one"):
        CandidateSets.concatenate([first, random_candidates(2, PAIR, 4)])
    with pytest.raises(DtypeError, match=r"torch\.float32 and torch\.float16; convert all"):
        CandidateSets.concatenate([first, random_candidates(2, PAIR, 3, dtype=torch.float16)])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (torch.float32, np.float32),
        (torch.float16, np.float16),
        (torch.bfloat16, np.float32),  # numpy has no bfloat16
    ],
    ids=str,
)
@every_device
def test_arrays_hold_the_same_numbers(kind, expected, device):
    sets = random_candidates(2, PAIR, 3, dtype=kind, device=device)
    array = CandidateSets(sets.vectors.requires_grad_(), PAIR).numpy()
    assert array.dtype == expected
    assert array.tolist() == sets.vectors.tolist()


def test_a_short_text_describes_them():
    sets = random_candidates(3, GroupLayout((3, 5)), 16, dtype=torch.float16)
    described = "CandidateSets(3 items, layout 3+5, dim 16, float16)"
    assert repr(sets) == described
    caes = CAES(sets, tuple(selected(text, sets.layout) for text in ("1+0", "1+1", "3+5")))
    assert repr(caes) == f"CAES({described}, mean capacity 3.67)"


# --- Selections of items --------------------------------------------------------------------------


def test_activate_keeps_the_selected_positions_in_ascending_order():
    vectors = torch.eye(8).reshape(1, 8, 8)
    active = activate(CandidateSets(vectors, PAPER_LAYOUT), selected("2+1"))
    assert torch.equal(active, vectors[:, [0, 1, 4]])


@given(st.data())
def test_activate_is_the_masked_rows(data):
    sets = data.draw(candidate_sets())
    selection = data.draw(selections(sets.layout))
    expected = sets.vectors[:, torch.tensor(selection.mask)]
    assert torch.equal(activate(sets, selection), expected)


def test_gradients_reach_the_active_positions_only():
    vectors = random_candidates(2, GroupLayout((3, 5)), 4).vectors.requires_grad_()
    selection = selected("1+2", GroupLayout((3, 5)))
    activate(CandidateSets(vectors, GroupLayout((3, 5))), selection).sum().backward()
    assert vectors.grad[:, [0, 3, 4]].eq(1).all()
    assert vectors.grad.sum() == 2 * 3 * 4


def test_a_selection_of_another_layout_is_refused_everywhere():
    sets = random_candidates(1, PAPER_LAYOUT, 4)
    other = selected("1+1", GroupLayout((3, 5)))
    expected = r"1\+1 is of layout 3\+5 and the candidate sets of layout 4\+4; build"
    with pytest.raises(LayoutMismatchError, match=expected):
        sets.positions(other)
    with pytest.raises(LayoutMismatchError, match=expected):
        activate(sets, other)
    with pytest.raises(LayoutMismatchError, match=expected):
        CAES(sets, (other,))


@pytest.mark.parametrize("number", [0, 1, 3])
def test_one_selection_per_item_is_needed(number):
    with pytest.raises(ShapeError, match=f"got {number} selections for 2 items; give one"):
        CAES(random_candidates(2, PAPER_LAYOUT, 4), (selected("1+0"),) * number)


def test_buckets_come_in_order_of_first_appearance():
    small, large = selected("1+0"), selected("4+4")
    buckets = CAES(random_candidates(4, PAPER_LAYOUT, 2), (large, small, small, large)).buckets()
    assert [(key, items.tolist()) for key, items in buckets.items()] == [
        (large, [0, 3]),
        (small, [1, 2]),
    ]


@given(caes_of_any_layout())
def test_buckets_hold_every_item_once_under_its_own_selection(caes):
    buckets = caes.buckets()
    assert list(buckets) == list(dict.fromkeys(caes.selections))
    found = {item: key for key, items in buckets.items() for item in items.tolist()}
    assert found == dict(enumerate(caes.selections))
    assert sum(map(len, buckets.values())) == len(caes)
    assert all(items.dtype == torch.int64 for items in buckets.values())


@given(caes_of_any_layout())
def test_every_item_shows_its_own_active_vectors(caes):
    rows = caes.candidates.vectors
    for item, selection in enumerate(caes.selections):
        expected = rows[item][list(selection.positions)]
        assert torch.equal(caes.vectors[item], expected)
        np.testing.assert_array_equal(caes.numpy()[item], expected.numpy())
        assert caes.positions[item] == selection.positions
        assert caes.capacities[item] == len(expected)
    assert caes.capacities.dtype == torch.int64
    assert len(caes.vectors) == len(caes.numpy()) == len(caes.positions) == len(caes)


@every_device
def test_buckets_index_the_vectors_where_they_are(device):
    sets = random_candidates(3, PAPER_LAYOUT, 4, device=device)
    caes = CAES(sets, (selected("1+1"), selected("4+4"), selected("1+1")))
    for selection, items in caes.buckets().items():
        bucket = activate(caes.candidates[items], selection)
        assert bucket.device == sets.vectors.device
        assert torch.equal(bucket, torch.stack([caes.vectors[item] for item in items.tolist()]))


def test_where_torch_makes_tensors_by_default_does_not_matter():
    caes = CAES(random_candidates(3, PAPER_LAYOUT, 4), (selected("1+1"),) * 3)
    with torch.device("meta"):
        assert caes.capacities.tolist() == [2, 2, 2]
        assert [items.tolist() for items in caes.buckets().values()] == [[0, 1, 2]]
        chosen = caes[[2, 0]]
    assert torch.equal(chosen.candidates.vectors, caes.candidates.vectors[[2, 0]])


def test_parts_are_concatenated_from_a_list_or_one_by_one():
    caes = CAES(random_candidates(3, PAPER_LAYOUT, 4), (selected("1+1"),) * 3)
    whole = CAES.concatenate(part for part in (caes[:1], caes[1:]))
    assert whole.selections == caes.selections
    assert torch.equal(whole.candidates.vectors, caes.candidates.vectors)
    parts = iter((caes.candidates[:1], caes.candidates[1:]))
    assert torch.equal(CandidateSets.concatenate(parts).vectors, caes.candidates.vectors)
