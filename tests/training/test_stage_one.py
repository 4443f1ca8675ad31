"""Pairs are read and checked as Stage I needs them, and any embedder and objective is trained."""

import numpy as np
import pytest
import torch

from adaptiveembed.errors import NotFiniteError, ShapeError, TrainingError
from adaptiveembed.structure.encoded import EncodedMedia
from adaptiveembed.training.settings import LastBatch
from adaptiveembed.training.stage_one import TrainingPairs
from tests.training.toys import (
    ToyEmbedder,
    contrast,
    encoded,
    same_bits,
    toy_pairs,
    train_one,
)


class StoredFeatures:
    """As a store on disk: places are read when needed, and may turn out to be damaged."""

    def __init__(self, media, broken=()):
        self.media, self.broken, self.reads = media, set(broken), []

    def __len__(self):
        return len(self.media)

    @property
    def width(self):
        return self.media.global_feature.shape[1]

    def global_features(self):
        return self.media.global_features()

    def read(self, places):
        self.reads.append(list(places))
        if self.broken & {int(place) for place in places}:
            raise NotFiniteError("hidden_states of item 3 holds NaN or infinity")
        return self.media.read(places)


class TrustingStore(StoredFeatures):
    """One that gives what it has without looking at it."""

    def read(self, places):
        found = self.media.read(places)
        for row, place in enumerate(places):
            if int(place) in self.broken:
                found.hidden_states[row, 0, 0] = torch.inf
        return found


def pairs_of(source, target=None, ids=None):
    ids = ids or tuple(f"pair {n}" for n in range(len(source)))
    return TrainingPairs(source, target or encoded(len(source), 2), ids)


def test_features_from_a_store_teach_what_features_in_memory_teach(tmp_path):
    pairs = toy_pairs()
    stored = TrainingPairs(StoredFeatures(pairs.source), StoredFeatures(pairs.target), pairs.ids)
    model, _ = train_one(tmp_path / "memory", pairs=pairs)
    again, _ = train_one(tmp_path / "store", pairs=stored)
    assert same_bits(model, again)


def test_a_store_is_read_one_micro_batch_at_a_time(tmp_path):
    source = StoredFeatures(encoded(24, 1))
    changes = {"micro_batch": 3, "epochs": 1}
    train_one(tmp_path, pairs=pairs_of(source), changes=changes)
    assert [len(places) for places in source.reads] == [3, 3, 2] * 3


def test_places_say_which_items_are_a_pair(tmp_path):
    """Pairs given by places equal the same pairs laid out one after another."""
    source, target = encoded(10, 1), encoded(40, 2)
    chance = np.random.default_rng(0)
    places = chance.integers(10, size=24), chance.permutation(40)[:24]
    ids = tuple(f"pair {n}" for n in range(24))
    by_place = TrainingPairs(source, target, ids, *places)
    laid_out = TrainingPairs(source.read(places[0]), target.read(places[1]), ids)
    model, _ = train_one(tmp_path / "places", ToyEmbedder(), pairs=by_place)
    again, _ = train_one(tmp_path / "rows", ToyEmbedder(), pairs=laid_out)
    assert same_bits(model, again)


def test_the_objective_learns_which_pairs_are_the_same_item(tmp_path):
    masks = []

    def objective(source, target, same_item):
        masks.append(same_item)
        return contrast(source, target, same_item)

    pairs = toy_pairs(8, same=3)
    train_one(tmp_path, pairs=pairs, objective=objective, changes={"epochs": 1})
    (mask,) = masks
    assert mask.dtype == torch.bool
    assert mask.sum() == 3 * 3 + 5
    assert torch.equal(mask, mask.T)
    assert mask.diagonal().all()


def test_where_all_pairs_differ_the_objective_gets_no_mask(tmp_path):
    masks = []

    def objective(source, target, same_item):
        masks.append(same_item)
        return contrast(source, target)

    train_one(tmp_path, objective=objective, changes={"epochs": 1})
    assert masks == [None] * 3


def test_the_last_pairs_are_dropped_or_kept_as_set(tmp_path):
    sizes = []

    def objective(source, target, same_item):
        sizes.append(len(source))
        return contrast(source, target)

    for last_batch in LastBatch:
        changes = {"epochs": 1, "last_batch": last_batch}
        train_one(tmp_path / last_batch, pairs=toy_pairs(21), objective=objective, changes=changes)
    assert sizes == [8, 8, 8, 8, 5]


def test_learning_lowers_the_loss(tmp_path):
    source = encoded(24, 1)
    seen = []
    train_one(
        tmp_path,
        ToyEmbedder(),
        pairs=pairs_of(source, source),
        changes={"epochs": 20},
        progress=lambda done, total, facts: seen.append(facts["loss"]),
    )
    assert seen[-1] < 0.5 * seen[0]


# Bad input


def test_fewer_pairs_than_a_batch_are_refused(tmp_path):
    with pytest.raises(TrainingError, match=r"there are 5 pairs and a batch takes 8; set batch_"):
        train_one(tmp_path, pairs=toy_pairs(5))


@pytest.mark.parametrize("pairs", [toy_pairs(8, same=8), toy_pairs(1)], ids=["same", "one"])
def test_pairs_without_negatives_are_refused(tmp_path, pairs):
    with pytest.raises(TrainingError, match="1 different ids have no negatives"):
        train_one(tmp_path, pairs=pairs)


def test_a_batch_of_one_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="a batch of 1 pair has no negatives"):
        train_one(tmp_path, changes={"batch_size": 1})


def test_identical_texts_everywhere_are_refused(tmp_path):
    one = encoded(1, 1)
    same = EncodedMedia(*(each.expand(24, *each.shape[1:]) for each in vars(one).values()))
    with pytest.raises(TrainingError, match="all 24 source items have the same features"):
        train_one(tmp_path, pairs=pairs_of(same))


def test_equal_global_features_of_different_states_are_not_identical(tmp_path):
    media = encoded(24, 1)
    media.global_feature[:] = media.global_feature[0]
    train_one(tmp_path, pairs=pairs_of(media), changes={"epochs": 1})


def test_global_features_that_are_not_finite_are_named_before_training(tmp_path):
    pairs = toy_pairs()
    for place in (4, 9, 11, 20):
        pairs.target.global_feature[place, 2] = torch.nan
    named = r"target features of 'pair 4', 'pair 9', 'pair 11' and 1 more hold NaN or infinity"
    with pytest.raises(TrainingError, match=named):
        train_one(tmp_path, pairs=pairs)


def test_states_that_a_store_refuses_are_named_by_their_pair_and_step(tmp_path):
    pairs = pairs_of(StoredFeatures(encoded(24, 1), broken=[7]))
    message = r"Stage I stopped at step \d of 9: the source features of 'pair 7' hold NaN"
    with pytest.raises(TrainingError, match=message):
        train_one(tmp_path, pairs=pairs)


def test_states_that_are_not_finite_are_found_as_the_cause_of_a_gradient_that_is_not(tmp_path):
    pairs = pairs_of(TrustingStore(encoded(24, 1), broken=[5]))
    message = r"gradient nan; the source features of 'pair 5' hold NaN or infinity"
    with pytest.raises(TrainingError, match=message):
        train_one(tmp_path, pairs=pairs)


@pytest.mark.parametrize("places", [[0, 24], [-1, 3]])
def test_places_beyond_the_features_are_refused(places):
    with pytest.raises(ShapeError, match=r"target_places go from .* and there are 24 target items"):
        TrainingPairs(encoded(24, 1), encoded(24, 2), ("a", "b"), None, np.array(places))


def test_as_many_places_as_ids_are_needed():
    with pytest.raises(ShapeError, match=r"2 ids and source_places \(3,\); give one place per id"):
        TrainingPairs(encoded(24, 1), encoded(24, 2), ("a", "b"), np.arange(3))
