"""One tiny dataset and one tiny run, made once for all tests that only look at them."""

import pytest

from adaptiveembed.data.pairs import read_manifest
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.pipeline.dataset import encode_dataset, open_dataset
from adaptiveembed.pipeline.fitting import fit
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.pipeline.paired import JointPairs
from tests.pipeline.tiny import NAMES, tiny_recipe, write_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A manifest with its pictures."""
    return write_corpus(tmp_path_factory.mktemp("corpus") / "own")


@pytest.fixture(scope="session")
def dataset(corpus, tmp_path_factory):
    """The corpus, encoded; only to be read."""
    folder = tmp_path_factory.mktemp("dataset") / "features"
    encoders = {each: load_encoder(name, each) for each, name in NAMES.items()}
    encode_dataset(read_manifest(corpus), encoders, NAMES, folder)
    return open_dataset(folder)


@pytest.fixture(scope="session")
def run(dataset, tmp_path_factory):
    """A finished run on it; only to be read."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    pairs = JointPairs((dataset.pairs,))
    fit(pairs, tiny_recipe(), folder, dataset.encoders, folders=[dataset.folder])
    return folder


@pytest.fixture(scope="session")
def model(run):
    """Its model."""
    return AdaptiveEmbed.from_pretrained(run / "model", check=True)
