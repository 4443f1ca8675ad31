"""MaxSim of padded sets, beside a double loop over the sets without their padding."""

import inspect

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import DtypeError, EmptyBatchError, SettingError, ShapeError
from adaptiveembed.similarity import maxsim_matrix
from adaptiveembed.similarity.ragged import RaggedSets, ragged_maxsim_matrix
from tests.reference.maxsim import maxsim
from tests.similarity.sets import KINDS, sets_of_kind, unit_sets

NAN = float("nan")


def scattered(vectors, generator):
    """Of every set some vectors, anywhere in its row; what is between them is NaN."""
    mask = torch.rand(vectors.shape[:2], generator=generator) < 0.6
    mask[torch.arange(len(mask)), torch.randint(mask.shape[1], (len(mask),))] = True
    return RaggedSets(vectors.masked_fill(~mask.unsqueeze(-1), NAN), mask)


@st.composite
def ragged_batches(draw):
    kind, seed = draw(st.sampled_from(sorted(KINDS))), draw(st.integers(0, 99))
    generator = torch.Generator().manual_seed(seed)
    dim = draw(st.integers(1, 12))
    return tuple(
        scattered(
            sets_of_kind(kind, draw(st.integers(1, 12)), draw(st.integers(1, 9)), dim, seed + side),
            generator,
        )
        for side in (0, 1)
    )


def real(sets):
    return [row[mask] for row, mask in zip(sets.vectors, sets.mask, strict=True)]


def literal(queries, gallery):
    return torch.tensor([[maxsim(one, other) for other in real(gallery)] for one in real(queries)])


def close(found, expected):
    torch.testing.assert_close(found, expected.to(found), rtol=0, atol=1e-5)


def test_two_sets_by_hand():
    # The padded query vector would add 1, the padded gallery vector would match with 1.
    queries = RaggedSets(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.tensor([[True, False]]))
    gallery = RaggedSets(torch.tensor([[[1.0, 0.0], [0.6, 0.8]]]), torch.tensor([[False, True]]))
    close(ragged_maxsim_matrix(queries, gallery), torch.tensor([[0.6]]))


@given(ragged_batches(), st.integers(1, 20))
def test_scores_are_those_of_a_double_loop_whatever_the_tiles(sides, pairs):
    queries, gallery = sides
    budget = 8 * queries.mask.shape[1] * gallery.mask.shape[1] * pairs
    found = ragged_maxsim_matrix(queries, gallery, budget)
    assert found.dtype == torch.float32
    close(found, literal(queries, gallery))


def test_negative_cosines_are_not_lifted_by_padding():
    sets = unit_sets(1, 1, 8).expand(3, 4, 8)
    mask = torch.tensor([[True, True, False, False]]).expand(3, 4)
    found = ragged_maxsim_matrix(RaggedSets(sets, mask), RaggedSets(-sets, mask))
    close(found, torch.full((3, 3), -2.0))


def test_sets_of_one_size_score_as_by_maxsim():
    queries, gallery = unit_sets(5, 3, 16), unit_sets(7, 6, 16, seed=1)
    sides = [RaggedSets(each, torch.ones(each.shape[:2]).bool()) for each in (queries, gallery)]
    close(ragged_maxsim_matrix(*sides), maxsim_matrix(queries, gallery))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_vectors_are_summed_in_single_precision(dtype):
    generator = torch.Generator().manual_seed(0)
    queries = scattered(unit_sets(3, 4, 512, dtype=dtype), generator)
    gallery = scattered(unit_sets(5, 2, 512, seed=1, dtype=dtype), generator)
    found = ragged_maxsim_matrix(queries, gallery)
    assert found.dtype == torch.float32
    close(
        found,
        literal(*(RaggedSets(each.vectors.float(), each.mask) for each in (queries, gallery))),
    )


def test_tiles_are_no_larger_than_the_budget(monkeypatch):
    from adaptiveembed.similarity import ragged

    made, plain = [], ragged.matrix_cosines

    def recorded(queries, gallery):
        made.append(plain(queries, gallery))
        return made[-1]

    monkeypatch.setattr(ragged, "matrix_cosines", recorded)
    full = [RaggedSets(unit_sets(n, 6, 4), torch.ones(n, 6).bool()) for n in (20, 900)]
    ragged_maxsim_matrix(*full, memory_budget=40_000)
    assert max(2 * each.nbytes for each in made) <= 40_000
    assert sum(each.shape[0] * each.shape[2] for each in made) == 20 * 900


def test_a_part_is_cut_behind_its_last_real_vector():
    mask = torch.tensor([[True, False, True, False, False], [True, True, True, True, True]])
    sets = RaggedSets(unit_sets(2, 5, 3), mask)
    assert sets[:1].vectors.shape == (1, 3, 3)
    assert sets[:1].mask.tolist() == [[True, False, True]]
    assert sets[:2].vectors.shape == (2, 5, 3)


def test_a_budget_below_one_pair_is_refused():
    sets = RaggedSets(unit_sets(2, 5, 3), torch.ones(2, 5).bool())
    with pytest.raises(SettingError, match="does not hold one pair of sets; give at least 200"):
        ragged_maxsim_matrix(sets, sets, memory_budget=199)


def test_sets_that_are_not_are_refused():
    vectors, mask = unit_sets(2, 3, 4), torch.ones(2, 3).bool()
    with pytest.raises(EmptyBatchError, match="item 1 has no vector; give it one"):
        RaggedSets(vectors, torch.tensor([[True] * 3, [False] * 3]))
    with pytest.raises(DtypeError, match=r"mask holds torch\.float32; convert it with \.bool"):
        RaggedSets(vectors, mask.float())
    with pytest.raises(ShapeError, match=r"got \(2, 3, 4\) and \(2, 2\)"):
        RaggedSets(vectors, mask[:, :2])
    with pytest.raises(ShapeError, match="4 dimensions and gallery vectors 5"):
        inspect.unwrap(ragged_maxsim_matrix)(
            RaggedSets(vectors, mask), RaggedSets(unit_sets(2, 3, 5), mask)
        )
