"""The bank keeps its items, its order and its word when it is saved."""

import json

import numpy as np
import pytest
import torch

from adaptiveembed.allocation.bank import (
    BankContent,
    BankSampling,
    RetrievalBank,
    farthest_points,
)
from adaptiveembed.errors import (
    DuplicateIdError,
    ModelFormatError,
    SettingError,
    ShapeError,
    UnknownIdError,
)
from tests.allocation.settings import bank_of
from tests.structure.strategies import random_candidates


def test_a_bank_takes_candidate_sets_of_any_number_type():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        bank = bank_of(dtype=dtype)
        assert bank.by_position.dtype == torch.float32
        assert torch.equal(bank.by_position[3, 5], bank.candidates.vectors[5, 3].float())


def test_ids_are_one_per_item_and_distinct():
    candidates = bank_of(3).candidates
    with pytest.raises(ShapeError, match="given 2 ids and 3 candidate sets"):
        RetrievalBank(("a", "b"), candidates)
    with pytest.raises(DuplicateIdError, match="name 'a' more than once"):
        RetrievalBank(("a", "b", "a"), candidates)


def test_an_id_has_its_place_or_none():
    assert bank_of().places(["b3", "elsewhere", "b0"]).tolist() == [3, -1, 0]


@pytest.mark.parametrize("method", [BankSampling.RANDOM, BankSampling.FARTHEST_POINT])
def test_a_smaller_bank_holds_items_of_the_larger_in_the_same_order(method):
    bank = bank_of()
    small = bank.subsampled(7, method, seed=3)
    places = bank.places(small.ids)
    assert len(small) == 7
    assert (places.diff() > 0).all()
    assert torch.equal(small.candidates.vectors, bank.candidates.vectors[places])
    assert bank.subsampled(7, method, seed=3).ids == small.ids
    assert bank.subsampled(7, method, seed=4).ids != small.ids


def test_sampling_does_not_touch_the_global_generator():
    before = torch.get_rng_state()
    bank_of().subsampled(5, BankSampling.RANDOM, seed=1)
    bank_of().subsampled(5, BankSampling.FARTHEST_POINT, seed=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_bank_that_is_small_enough_stays_whole():
    bank = bank_of()
    assert bank.subsampled(20) is bank
    assert bank.subsampled(5, BankSampling.ALL) is bank
    with pytest.raises(SettingError, match="bank of 0 items"):
        bank.subsampled(0)


def test_farthest_points_take_one_item_of_every_cluster_first():
    centres = random_candidates(4, bank_of().layout, 16, seed=2).vectors
    noise = 1e-3 * torch.randn(40, *centres.shape[1:], generator=torch.Generator().manual_seed(0))
    chosen = farthest_points(centres.repeat(10, 1, 1) + noise, size=4, first=6)
    assert chosen[0] == 6
    assert sorted((chosen % 4).tolist()) == [0, 1, 2, 3]


def test_farthest_points_are_those_of_a_literal_search():
    vectors = bank_of(12).candidates.vectors
    rows = vectors.double().flatten(1).numpy()
    chosen = [5]
    while len(chosen) < 6:
        nearest = [max(float(row @ rows[other]) for other in chosen) for row in rows]
        rest = [item for item in range(12) if item not in chosen]
        chosen.append(min(rest, key=nearest.__getitem__))
    assert farthest_points(vectors, 6, first=5).tolist() == chosen


def test_the_fingerprint_tells_ids_vectors_and_order_apart():
    bank = bank_of()
    assert bank.fingerprint == bank_of().fingerprint
    others = [
        bank_of(seed=101),
        bank_of(19),
        bank_of(dtype=torch.float16),
        RetrievalBank((*bank.ids[1:], "new"), bank.candidates),
    ]
    assert len({bank.fingerprint, *(other.fingerprint for other in others)}) == 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_saved_bank_opens_bit_for_bit(tmp_path, dtype):
    bank = bank_of(dtype=dtype)
    bank.save(tmp_path / "bank")
    opened = RetrievalBank.open(tmp_path / "bank")
    assert opened.ids == bank.ids
    assert opened.layout == bank.layout
    assert torch.equal(opened.candidates.vectors, bank.candidates.vectors)


def test_a_bank_saved_by_fingerprint_takes_its_items_from_a_larger_one(tmp_path):
    whole = bank_of()
    small = whole.subsampled(6, seed=1)
    small.save(tmp_path, BankContent.FINGERPRINT)
    assert [path.name for path in tmp_path.iterdir()] == ["bank.json"]
    opened = RetrievalBank.open(tmp_path, source=whole)
    assert opened.ids == small.ids
    assert opened.fingerprint == small.fingerprint


def test_a_source_with_other_vectors_or_without_an_item_is_refused(tmp_path):
    bank_of().save(tmp_path, BankContent.FINGERPRINT)
    with pytest.raises(ModelFormatError, match="without their vectors; give source="):
        RetrievalBank.open(tmp_path)
    with pytest.raises(UnknownIdError, match="has item 'b19' and source has not"):
        RetrievalBank.open(tmp_path, source=bank_of(19))
    with pytest.raises(ModelFormatError, match="bring the vectors that the policy was trained"):
        RetrievalBank.open(tmp_path, source=bank_of(seed=5))


def test_a_flipped_byte_is_noticed(tmp_path):
    bank_of().save(tmp_path)
    path = tmp_path / "bank.safetensors"
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFormatError, match=r"fingerprint|damaged"):
        RetrievalBank.open(tmp_path)


def test_a_folder_that_holds_no_bank_says_so(tmp_path):
    with pytest.raises(ModelFormatError, match="give the folder of a saved bank"):
        RetrievalBank.open(tmp_path)
    bank_of().save(tmp_path)
    (tmp_path / "bank.safetensors").write_bytes(b"")
    with pytest.raises(ModelFormatError, match=r"bank\.safetensors is damaged"):
        RetrievalBank.open(tmp_path)
    facts = json.loads((tmp_path / "bank.json").read_text())
    (tmp_path / "bank.json").write_text(json.dumps(facts | {"version": 99}))
    with pytest.raises(ModelFormatError, match="of version 99 and this library reads version 1"):
        RetrievalBank.open(tmp_path)
    (tmp_path / "bank.json").write_text("[]")
    with pytest.raises(ModelFormatError, match="does not describe a bank"):
        RetrievalBank.open(tmp_path)


def test_moving_a_bank_keeps_it():
    bank = bank_of()
    moved = bank.to("cpu")
    assert moved.fingerprint == bank.fingerprint
    assert np.array_equal(moved.candidates.numpy(), bank.candidates.numpy())
