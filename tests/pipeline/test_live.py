"""Hidden states that are not kept are encoded when they are read, and are the same."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
import pytest
import torch

from adaptiveembed.data.pairs import read_manifest
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import EncoderError, FeatureStoreError, MediaError
from adaptiveembed.pipeline.dataset import KeptStates, encode_dataset, open_dataset
from adaptiveembed.pipeline.fitting import fit
from adaptiveembed.pipeline.live import BATCH_SIZE, LiveFeatures
from adaptiveembed.pipeline.paired import JointPairs
from adaptiveembed.structure.direction import Modality
from tests.pipeline.tiny import NAMES, Words, tiny_recipe, write_corpus


def encode(corpus, folder, states):
    encoders = {each: load_encoder(name, each) for each, name in NAMES.items()}
    encode_dataset(read_manifest(corpus), encoders, NAMES, folder, states=states)
    return open_dataset(folder)


@pytest.fixture(scope="module")
def live(corpus, tmp_path_factory):
    return encode(corpus, tmp_path_factory.mktemp("live") / "features", KeptStates.LIVE)


def test_only_global_features_are_kept(live):
    for modality in NAMES:
        assert not (live.folder / modality / "hidden_states.f16").exists()
        assert (live.folder / modality / "global_feature.f16").exists()


def test_live_states_are_the_stored_ones_to_the_bit(live, dataset):
    places = np.random.default_rng(0).permutation(len(dataset.pairs))
    assert len(places) > BATCH_SIZE
    for one, other in (
        (live.pairs.source, dataset.pairs.source),
        (live.pairs.target, dataset.pairs.target),
    ):
        mine, theirs = one.read(places), other.read(places)
        assert torch.equal(mine.global_feature, theirs.global_feature)
        assert torch.equal(mine.hidden_states, theirs.hidden_states)
        assert torch.equal(mine.mask, theirs.mask)
        assert torch.equal(one.global_features(), other.global_features())


def test_a_training_on_live_states_is_that_on_stored_ones(live, run, tmp_path):
    pairs = JointPairs((live.pairs,))
    fit(pairs, tiny_recipe(), tmp_path / "run", live.encoders, folders=[live.folder])
    for file in sorted((run / "model").glob("*.safetensors")):
        assert (tmp_path / "run" / "model" / file.name).read_bytes() == file.read_bytes()


def test_without_states_the_global_feature_is_the_only_one(corpus, tmp_path):
    read = encode(corpus, tmp_path / "none", KeptStates.NONE).pairs.source.read([3, 1])
    assert torch.equal(read.hidden_states, read.global_feature.unsqueeze(1))


def test_a_folder_of_another_choice_is_refused(corpus, live):
    with pytest.raises(FeatureStoreError, match=r"hidden states live\).* hidden states all\)"):
        encode(corpus, live.folder, KeptStates.ALL)


def test_a_dataset_of_before_the_choice_keeps_all(dataset, tmp_path):
    folder = shutil.copytree(dataset.folder, tmp_path / "old")
    facts = json.loads((folder / "dataset.json").read_text())
    assert [side.pop("states") for side in facts["sides"]] == ["all", "all"]
    (folder / "dataset.json").write_text(json.dumps(facts))
    old = open_dataset(folder).pairs
    assert not isinstance(old.source, LiveFeatures)
    assert torch.equal(
        old.source.read([1]).hidden_states, dataset.pairs.source.read([1]).hidden_states
    )


def test_media_that_are_gone_are_told_when_they_are_read(tmp_path):
    found = encode(write_corpus(tmp_path / "own", 20), tmp_path / "features", KeptStates.LIVE)
    (tmp_path / "own" / "pictures" / "003.png").unlink()
    found.pairs.target.read([2])
    with pytest.raises(MediaError, match=r"003\.png"):
        found.pairs.target.read([2, 3])


def test_another_encoder_is_refused_when_it_is_first_needed(corpus, tmp_path, monkeypatch):
    found = encode(corpus, tmp_path / "features", KeptStates.LIVE)
    monkeypatch.setattr(Words, "fingerprint", "words-3")
    assert found.pairs.source.global_features().shape == (90, Words.width)
    with pytest.raises(EncoderError, match="now has fingerprint words-3"):
        found.pairs.source.read([0])
    assert open_dataset(tmp_path / "features").encoders[Modality.TEXT].fingerprint == "words-1"


def test_media_that_have_changed_are_refused(tmp_path):
    found = encode(write_corpus(tmp_path / "own", 20), tmp_path / "features", KeptStates.LIVE)
    pictures = tmp_path / "own" / "pictures"
    (pictures / "003.png").write_bytes((pictures / "004.png").read_bytes())
    with pytest.raises(MediaError, match="image of 'item-003' has changed since it was encoded"):
        found.pairs.target.read([3])


def test_an_encoder_is_never_called_by_two_threads_at_once(live):
    alone = Lock()

    class Jealous(Words):
        def encode(self, batch):
            assert alone.acquire(blocking=False), "two calls at once"
            try:
                time.sleep(0.01)
                return super().encode(batch)
            finally:
                alone.release()

    source = live.pairs.source
    features = LiveFeatures(source.stored, Jealous, source.media_of)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(features.read, [[0, 1], [2], [3], [4, 5]]))
    assert [len(one) for one in found] == [2, 1, 1, 2]
