"""Encoders as they are, beside a double loop over queries and gallery."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from adaptiveembed.data.pairs import Manifest, read_manifest
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import (
    EncoderError,
    NotNormalizedError,
    SettingError,
    TrainingError,
)
from adaptiveembed.evaluation.records import read_evaluations
from adaptiveembed.metrics.measures import average_precision
from adaptiveembed.pipeline import baselines
from adaptiveembed.pipeline.baselines import (
    POOLED_TO,
    BaselineKind,
    counterpart_ranks,
    evaluate_baseline,
    open_baselines,
    pooled_sets,
)
from adaptiveembed.pipeline.dataset import FACTS, encode_dataset, import_dataset, open_dataset
from adaptiveembed.pipeline.reporting import Results, write_results
from adaptiveembed.similarity.ragged import RaggedSets
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia
from tests.pipeline.tiny import Cells, Words
from tests.reference.maxsim import maxsim
from tests.reference.pooling import pooled as literally_pooled

TEXT, IMAGE = Modality.TEXT, Modality.IMAGE
KINDS = tuple(BaselineKind)


def with_weighted_global(encoded):
    """A global feature that is not the mean of the states."""
    weights = torch.arange(1.0, encoded.mask.shape[1] + 1).unsqueeze(1)
    feature = (weights * encoded.hidden_states).sum(dim=1)
    return EncodedMedia(feature, encoded.hidden_states, encoded.mask)


class Writes(Words):
    """Texts, and counts of words that differ from text to text."""

    fingerprint, space = "shared-words", "shared"

    def encode(self, batch):
        return with_weighted_global(super().encode(batch))

    def _states(self, words):
        return super()._states(words[: 3 + sum(map(len, words)) % 5])


class Draws(Cells):
    """Pictures in the space of the texts, with more than eight vectors each."""

    fingerprint, space = "shared-cells", "shared"

    def encode(self, batch):
        return with_weighted_global(super().encode(batch))

    def _states(self, pixels):
        states = super()._states(pixels)
        seeds = torch.Generator().manual_seed(int(pixels.sum()))
        return torch.cat([states, states + torch.randn(states.shape, generator=seeds), states[:2]])


class Same(Draws):
    """Every picture is the same."""

    fingerprint = "same-cells"

    def _states(self, pixels):
        return super()._states(np.full_like(pixels, 90))


class Nothing(Draws):
    """A vector of one picture is zero."""

    fingerprint = "nothing-cells"

    def _states(self, pixels):
        states = super()._states(pixels)
        return torch.where(torch.arange(len(states))[:, None] == 3, 0.0, states)


SHARED = {
    TEXT: "tests.pipeline.test_baselines:Writes",
    IMAGE: "tests.pipeline.test_baselines:Draws",
}


def encode(manifest, folder, image="Draws", states=None):
    names = SHARED | {IMAGE: f"tests.pipeline.test_baselines:{image}"}
    encoders = {each: load_encoder(name, each) for each, name in names.items()}
    chosen = {} if states is None else {"states": states}
    encode_dataset(manifest, encoders, names, folder, **chosen)
    return folder


@pytest.fixture(scope="module")
def shared(corpus, tmp_path_factory):
    """The corpus by encoders of one space."""
    return encode(read_manifest(corpus), tmp_path_factory.mktemp("baselines") / "shared")


def rows_of(folder, dataset, *kinds):
    opened = open_baselines([(kind, folder) for kind in kinds], dataset)
    return [row for one in opened for row in evaluate_baseline(one).evaluations]


# the literal twin


def vectors_of(side, row):
    """The real vectors of one item, each divided by its length."""
    media = side.read([row])
    states = media.hidden_states[0][media.mask[0]].double().numpy()
    return states / np.linalg.norm(states, axis=1, keepdims=True)


def globals_of(side, row):
    vector = side.read([row]).global_feature.double().numpy()
    return vector / np.linalg.norm(vector)


def literal_ranks(queries, gallery, asked):
    """For each query, one and the others that score no less than its counterpart."""
    found = []
    for row in asked:
        scores = [maxsim(queries[row], item) for item in gallery]
        others = [score for place, score in enumerate(scores) if place != row]
        found.append(1 + sum(score >= scores[row] - 1e-7 for score in others))
    return found


def literal_evaluation(pairs, sets_of):
    """Ranks and mean numbers of vectors of both directions."""
    sides = [
        [sets_of(side, row) for row in range(len(pairs))] for side in (pairs.source, pairs.target)
    ]
    return [
        (
            literal_ranks(queries, gallery, pairs.queries),
            [len(queries[row]) for row in pairs.queries],
            float(np.mean([len(each) for each in gallery])),
        )
        for queries, gallery in (sides, sides[::-1])
    ]


def agrees(row, expected):
    for found, (ranks, counts, gallery) in zip(row.directions, expected, strict=True):
        assert found.ranks[:, 0].tolist() == ranks
        assert found.capacities.tolist() == counts
        compared = found.capacities if found.compared is None else found.compared
        np.testing.assert_allclose(compared, gallery)
        assert found.gallery_vectors_stored == pytest.approx(gallery)
    means = [np.mean(counts) for _, counts, _ in expected]
    assert row.query_vectors == pytest.approx(np.mean(means))
    assert row.gallery_vectors_compared == pytest.approx(np.mean([one[2] for one in expected]))
    assert row.gallery_vectors_stored == pytest.approx(max(one[2] for one in expected))
    precision = [np.mean([1 / rank for rank in ranks]) for ranks, _, _ in expected]
    assert row.means["mAP"] == pytest.approx(np.mean(precision))


@pytest.mark.parametrize(
    ("kind", "sets_of"), [("single", globals_of), ("maxsim", vectors_of)], ids=str
)
def test_every_rank_and_every_count_is_that_of_a_double_loop(kind, sets_of, shared, dataset):
    (row,) = rows_of(shared, dataset, kind)
    expected = literal_evaluation(open_dataset(shared).pairs, sets_of)
    agrees(row, expected)
    assert len({rank for ranks, *_ in expected for rank in ranks}) > 10
    assert [str(one.direction) for one in row.directions] == ["text→image", "image→text"]
    assert (row.dim, row.directions[0].gallery_size) == (24, 90)


def test_pooled_rows_are_a_double_loop_over_vectors_pooled_one_item_at_a_time(shared, dataset):
    rows = rows_of(shared, dataset, "pooled")
    assert len(rows) == len(POOLED_TO)
    pairs = open_dataset(shared).pairs
    for row, count in zip(rows, POOLED_TO, strict=True):
        agrees(
            row,
            literal_evaluation(
                pairs,
                lambda side, item, count=count: literally_pooled(vectors_of(side, item), count),
            ),
        )


def test_neither_parts_nor_what_is_held_change_a_rank(shared, dataset, monkeypatch):
    whole = rows_of(shared, dataset, *KINDS)
    monkeypatch.setattr(baselines, "ITEMS_AT_ONCE", 7)
    monkeypatch.setattr(baselines, "HELD_BYTES", 1)
    for one, other in zip(whole, rows_of(shared, dataset, *KINDS), strict=True):
        assert one.gallery_vectors_compared == pytest.approx(other.gallery_vectors_compared)
        assert one.query_vectors == other.query_vectors
        for found, again in zip(one.directions, other.directions, strict=True):
            np.testing.assert_array_equal(found.ranks, again.ranks)


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_that_are_all_the_same_are_found_last(kind, corpus, dataset, tmp_path):
    folder = encode(read_manifest(corpus), tmp_path / "same", "Same")
    for row in rows_of(folder, dataset, kind):
        assert (row.directions[0].ranks == 90).all()


def test_neither_the_order_of_pairs_nor_of_modalities_matters(corpus, shared, dataset, tmp_path):
    pairs = list(read_manifest(corpus))
    folder = encode(Manifest(tuple(pairs[::-1])), tmp_path / "shared")
    facts = json.loads((folder / FACTS).read_text())
    facts["sides"].reverse()
    (folder / FACTS).write_text(json.dumps(facts))
    assert open_dataset(folder).pairs.ids == dataset.pairs.ids[::-1]
    for one, other in zip(
        rows_of(shared, dataset, *KINDS), rows_of(folder, dataset, *KINDS), strict=True
    ):
        for found, again in zip(one.directions, other.directions, strict=True):
            assert found.direction == again.direction
            assert found.query_ids == again.query_ids
            np.testing.assert_array_equal(found.ranks, again.ranks)


def test_progress_comes_to_its_end_in_both_directions(shared, dataset, monkeypatch):
    monkeypatch.setattr(baselines, "ITEMS_AT_ONCE", 7)
    monkeypatch.setattr(baselines, "HELD_BYTES", 1)
    told = {}

    def announce(title):
        told[title] = []
        return lambda done, total, facts=None: told[title].append((done, total))

    for one in open_baselines([("maxsim", shared), ("pooled", shared)], dataset):
        evaluate_baseline(one, announce)
    assert {"pooling text (shared)", "evaluating MaxSim (shared) image→text"} <= set(told)
    for steps in told.values():
        done = [step for step, _ in steps]
        assert done == sorted(set(done))
        assert steps[-1][0] == steps[-1][1]


def test_a_counterpart_is_ranked_behind_its_equals_in_other_tiles():
    generator = torch.Generator().manual_seed(0)
    one = torch.nn.functional.normalize(torch.randn(1, 5, 24, generator=generator).double(), dim=-1)
    many = one.expand(300, -1, -1)

    def sets(rows):
        return RaggedSets(many[rows], torch.ones(len(rows), 5).bool())

    found = counterpart_ranks(sets, sets, np.arange(0, 300, 50), 300)
    assert found.ranks[:, 0].tolist() == [300] * 6


# beside others


def test_rows_go_into_one_report_and_come_back_from_its_files(shared, dataset, tmp_path):
    chosen = [(kind, shared) for kind in KINDS]
    methods = tuple(map(evaluate_baseline, open_baselines(chosen, dataset)))
    results = Results("tiny", methods)
    write_results(results, tmp_path)
    names = ["single vector (shared)", "MaxSim (shared)"]
    names += [f"pooled to {count} (shared)" for count in POOLED_TO]
    assert [row.method for row in results.report.rows] == names
    written = (tmp_path / "report.md").read_text()
    assert f"| maxsim=shared | {SHARED[TEXT]} | {SHARED[IMAGE]} |" in written
    for found, again in zip(results.evaluations, read_evaluations(tmp_path), strict=True):
        assert found.method == again.method
        assert found.gallery_vectors_compared == again.gallery_vectors_compared
        assert found.gallery_vectors_stored == again.gallery_vectors_stored
        for one, other in zip(found.directions, again.directions, strict=True):
            assert one.capacities.tolist() == other.capacities.tolist()
            np.testing.assert_array_equal(
                average_precision(one.ranks), average_precision(other.ranks)
            )


# what is refused


def other_pairs(corpus, **changes):
    """The manifest with one pair changed, or without it."""
    for pair in read_manifest(corpus):
        if pair.id != "item-004":
            yield pair
        elif changes:
            yield replace(pair, **changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "pair 'item-004' is in .*features and not in .*other; .*other has 89 pairs with 17 "),
        ({"split": "train"}, "pair 'item-004' is of split 'train' in .*other and of 'query'; "),
        ({"text": "something"}, "pair 'item-004' has another text in .*other; .* 90 pairs with 18"),
        ({"id": "new"}, "pair 'item-004' is in .*features and not in .*other"),
    ],
)
def test_other_pairs_splits_or_texts_are_refused_by_their_first_id(
    changes, told, corpus, dataset, tmp_path
):
    folder = encode(Manifest(tuple(other_pairs(corpus, **changes))), tmp_path / "other")
    with pytest.raises(SettingError, match=told) as refused:
        open_baselines([("single", folder)], dataset)
    assert f"{dataset.folder} 90 pairs with 18 queries: encode one manifest" in str(refused.value)


def test_a_pair_too_many_is_refused_too(corpus, dataset, shared, tmp_path):
    fewer = encode(Manifest(tuple(other_pairs(corpus))), tmp_path / "fewer")
    with pytest.raises(SettingError, match=r"'item-004' is in .*shared and not in .*fewer"):
        open_baselines([("single", shared)], open_dataset(fewer))


def test_encoders_of_two_spaces_are_refused_and_told_of_the_aligned_row(dataset):
    for kind in KINDS:
        with pytest.raises(EncoderError, match=r"two spaces .*'words' and 'cells'.*'fixed 1[+]0'"):
            open_baselines([(kind, dataset.folder)], dataset)


def test_features_without_hidden_states_are_only_single_vectors(shared, dataset, tmp_path):
    files = {}
    for modality in (TEXT, IMAGE):
        features = open_dataset(shared).pairs.features(modality).global_features()
        files[modality] = tmp_path / f"{modality}.npz"
        np.savez(
            files[modality],
            ids=np.array(dataset.pairs.ids),
            global_feature=features.numpy(),
            fingerprint=np.array("one"),
        )
    folder = tmp_path / "imported"
    import_dataset(files, folder, read_manifest(dataset.folder / "pairs.jsonl", needed=None))
    (row,) = rows_of(folder, dataset, "single")
    agrees(row, literal_evaluation(open_dataset(shared).pairs, globals_of))
    for kind in ("maxsim", "pooled"):
        with pytest.raises(EncoderError, match=r"one vector for each item.*take it as single="):
            open_baselines([(kind, folder)], dataset)


@pytest.mark.parametrize("kind", ["maxsim", "pooled"])
def test_a_vector_of_length_zero_is_refused_by_its_item(kind, corpus, dataset, tmp_path):
    folder = encode(read_manifest(corpus), tmp_path / "nothing", "Nothing")
    with pytest.raises(
        NotNormalizedError, match=r"vector 3 of image 'item-0.[04]' has length 0 and"
    ):
        rows_of(folder, dataset, kind)


def test_a_global_feature_of_length_zero_is_refused_by_its_item(dataset, tmp_path):
    files = {}
    for modality in (TEXT, IMAGE):
        features = np.ones((90, 24), np.float32)
        features[5] = 0
        files[modality] = tmp_path / f"{modality}.npz"
        np.savez(
            files[modality],
            ids=np.array(dataset.pairs.ids),
            global_feature=features,
            fingerprint=np.array("one"),
        )
    folder = tmp_path / "imported"
    import_dataset(files, folder, read_manifest(dataset.folder / "pairs.jsonl", needed=None))
    with pytest.raises(NotNormalizedError, match="vector 0 of text 'item-005' has length 0"):
        rows_of(folder, dataset, "single")


def test_vectors_that_cancel_in_a_cluster_are_refused_among_their_items():
    angles = torch.tensor([0.0, 120.0, 240.0]).deg2rad()
    around = torch.stack([angles.cos(), angles.sin(), torch.zeros(3)], dim=1)
    up = torch.tensor([[0.0, 0.0, 1.0]]).expand(4, -1)
    vectors = torch.cat([around, up]).double()[None]

    def sets(rows):
        return RaggedSets(vectors[rows], torch.ones(len(rows), 7).bool())

    with pytest.raises(NotNormalizedError, match=r"among items 'a' to 'a': .* no direction"):
        pooled_sets(sets, ["a"])


def test_unknown_kinds_and_rows_of_one_name_are_refused(shared, dataset, tmp_path):
    with pytest.raises(SettingError, match="no baseline 'double'; choose one of single, maxsim"):
        open_baselines([("double", shared)], dataset)
    again = shutil.copytree(shared, tmp_path / "shared")
    with pytest.raises(SettingError, match=r"single=shared is given twice.*rename one"):
        open_baselines([("single", shared), ("single", again)], dataset)
    assert len(open_baselines([("single", shared), ("maxsim", again)], dataset)) == 2


def test_a_dataset_without_queries_is_refused(shared, dataset):
    few = replace(dataset, pairs=dataset.pairs.take(dataset.pairs.training))
    with pytest.raises(TrainingError, match="no pair of split 'query'"):
        open_baselines([("single", shared)], few)
