"""Several processes encode one side, each into a store of its own, and it is read as one."""

import shutil
from functools import partial

import pytest
import torch

from adaptiveembed.data.feature_exchange import export_features, import_features
from adaptiveembed.data.feature_index import StoredStates
from adaptiveembed.data.feature_writer import locked
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.data.media import Text
from adaptiveembed.errors import FeatureStoreError
from adaptiveembed.pipeline import sides
from adaptiveembed.pipeline.sides import SideStores, fill_side, shares, store_folders
from adaptiveembed.training.distributed import ALONE, Process
from tests.pipeline.tiny import Words

IDS = tuple(f"item-{number}" for number in range(11))


def item_of(place, version=0):
    words = ["some", "words", *(f"w{place}" for _ in range(place + version))]
    return IDS[place], f"key {place} {version}", partial(Text, " ".join(words))


def fill(monkeypatch, folder, process, ids=IDS, version=0, **settings):
    """What a process among several does."""
    monkeypatch.setattr(sides, "current", lambda: process)
    monkeypatch.setattr(sides, "wait_for_all", lambda process: None)
    return fill_side(Words(), ids, partial(item_of, version=version), folder, **settings)


def fill_by(monkeypatch, folder, size, **settings):
    return [fill(monkeypatch, folder, Process(rank, size), **settings) for rank in range(size)]


def same_features(one, other):
    for place, item in enumerate(other.ids):
        mine, theirs = one.read(one.places([item])), other.read([place])
        assert torch.equal(mine.hidden_states[mine.mask], theirs.hidden_states[theirs.mask])
        assert torch.equal(mine.global_feature, theirs.global_feature)


@pytest.mark.parametrize("size", [2, 3])
def test_what_several_processes_encode_is_what_one_does(monkeypatch, tmp_path, size):
    alone = fill(monkeypatch, tmp_path / "alone", ALONE)
    together = fill_by(monkeypatch, tmp_path / "together", size)
    assert alone.encoded == len(IDS) == sum(one.encoded for one in together)
    assert all(one.encoded >= len(IDS) // size for one in together)
    one, other = SideStores.open(tmp_path / "together"), SideStores.open(tmp_path / "alone")
    assert sorted(one.ids) == sorted(other.ids) == sorted(IDS)
    assert len(one.stores) == size
    same_features(one, other)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("later", [1, 2, 3, 4])
def test_another_number_of_processes_goes_on_and_encodes_nothing_twice(
    monkeypatch, tmp_path, size, later
):
    fill_by(monkeypatch, tmp_path, size, ids=IDS[:7])
    found = fill_by(monkeypatch, tmp_path, later)
    assert sum(one.encoded for one in found) == len(IDS) - 7
    assert sum(one.skipped for one in found) == 7
    assert sorted(SideStores.open(tmp_path).ids) == sorted(IDS)


def test_what_has_changed_is_encoded_again_where_it_was(monkeypatch, tmp_path):
    fill_by(monkeypatch, tmp_path, 3)
    before = {place: read.ids for place, read in enumerate(SideStores.open(tmp_path).stores)}
    found = fill_by(monkeypatch, tmp_path, 2, version=1)
    assert sum(one.encoded for one in found) == len(IDS)
    after = SideStores.open(tmp_path)
    assert {place: store.ids for place, store in enumerate(after.stores)} == before
    fill(monkeypatch, tmp_path / "alone", ALONE, version=1)
    same_features(after, SideStores.open(tmp_path / "alone"))


def test_every_place_is_of_one_process(tmp_path):
    for size in (1, 2, 4):
        found = [shares(IDS, tmp_path, Process(rank, size)) for rank in range(size)]
        places = [place for one in found for part in one.values() for place in part]
        assert sorted(places) == list(range(len(IDS)))
        assert [list(one) for one in found] == [[rank] for rank in range(size)]


def test_a_store_that_was_killed_at_its_start_is_begun_again(monkeypatch, tmp_path):
    fill_by(monkeypatch, tmp_path, 2)
    index = tmp_path / "part-1" / "features.jsonl"
    index.write_bytes(index.read_bytes()[:7])
    assert list(store_folders(tmp_path)) == [0]
    found = fill_by(monkeypatch, tmp_path, 2)
    assert [one.encoded for one in found] == [0, 5]
    assert sorted(SideStores.open(tmp_path).ids) == sorted(IDS)


def test_an_item_in_two_stores_is_refused(monkeypatch, tmp_path):
    fill_by(monkeypatch, tmp_path, 2)
    shutil.rmtree(tmp_path / "part-1")
    shutil.copytree(tmp_path, tmp_path / "part-1")
    with pytest.raises(FeatureStoreError, match=r"'item-0' is in two stores of"):
        SideStores.open(tmp_path)


def test_a_side_that_was_never_encoded_says_so(tmp_path):
    (tmp_path / "part-1").mkdir()
    with pytest.raises(FeatureStoreError, match="holds no features"):
        SideStores.open(tmp_path)


def test_hidden_states_are_left_out_where_that_is_asked(monkeypatch, tmp_path):
    fill(monkeypatch, tmp_path, ALONE, states=StoredStates.NONE)
    store = FeatureStore.open(tmp_path)
    assert store.states is StoredStates.NONE
    assert not (tmp_path / "hidden_states.f16").exists()
    with pytest.raises(FeatureStoreError, match="states none and all is to be written"):
        fill(monkeypatch, tmp_path, ALONE)


def test_another_command_is_kept_from_the_whole_side(monkeypatch, tmp_path):
    """The lock of a store alone would let it fill part-1 meanwhile."""
    with (
        locked(tmp_path, sides.LOCK),
        pytest.raises(FeatureStoreError, match=r"process \d+ is writing to"),
    ):
        fill(monkeypatch, tmp_path, ALONE)
    assert fill(monkeypatch, tmp_path, ALONE).encoded == len(IDS)


def test_what_is_exported_is_of_every_store(monkeypatch, tmp_path):
    fill_by(monkeypatch, tmp_path / "words", 3)
    side = SideStores.open(tmp_path / "words")
    export_features(side, tmp_path / "words.npz")
    again = import_features(tmp_path / "words.npz", tmp_path / "again")
    assert sorted(again.ids) == sorted(IDS)
    same_features(side, again)
    side.verify()
