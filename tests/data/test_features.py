"""What is read from a store is what was encoded; what is damaged is named."""

import gc
import json
import os
import re
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.data.feature_index import (
    GLOBAL_FEATURE,
    HIDDEN_STATES,
    INDEX,
    StoredStates,
    index_line,
)
from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.errors import (
    DtypeError,
    EmptyBatchError,
    FeatureStoreError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.structure.encoded import Features
from tests.data.encoded_items import WIDTH, encoded_items, item_ids, item_keys, real_states

BATCHES = (3, 1, 4)
COUNT = sum(BATCHES)


def write(folder, states=StoredStates.ALL):
    """A store of three commits; what was encoded, in one batch."""
    encoded = encoded_items(COUNT)
    start = 0
    with FeatureWriter(folder, "encoder 1", WIDTH, states) as writer:
        for count in BATCHES:
            part = encoded.read(range(start, start + count))
            writer.append(item_ids(count, start), item_keys(count, start), part)
            start += count
    return encoded


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "features")
    return tmp_path / "features"


def change_byte(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


# --- Reading --------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    places=st.lists(st.integers(0, COUNT - 1), min_size=1, max_size=12),
    part=st.sampled_from([1, 2 * WIDTH * 3, 1 << 20]),
)
def test_a_batch_is_what_was_encoded_padded_to_its_longest(tmp_path_factory, places, part):
    folder = tmp_path_factory.mktemp("stores") / "features"
    encoded = write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("adaptiveembed.data.features.PART_BYTES", part)
        found = FeatureStore.open(folder).read(places)
    assert found.mask.shape[1] == max(len(real_states(encoded, place)) for place in places)
    assert found.hidden_states.dtype == found.global_feature.dtype == torch.float32
    for row, place in enumerate(places):
        assert torch.equal(found.global_feature[row], encoded.global_feature[place])
        assert torch.equal(real_states(found, row), real_states(encoded, place))
        assert not found.hidden_states[row][~found.mask[row]].any()


def test_a_store_is_features_and_says_what_it_holds(folder):
    store = FeatureStore.open(str(folder))
    encoded = encoded_items(COUNT)
    assert isinstance(store, Features)
    assert (len(store), store.width, store.fingerprint) == (COUNT, WIDTH, "encoder 1")
    assert store.ids == tuple(item_ids(COUNT))
    assert store.keys == tuple(item_keys(COUNT))
    assert store.states_per_item.tolist() == encoded.mask.sum(dim=1).tolist()
    assert torch.equal(store.global_features(), encoded.global_feature)
    assert repr(store) == "FeatureStore(8 items, width 4, hidden states)"


@pytest.mark.parametrize("states", StoredStates)
def test_in_half_precision_a_batch_is_the_same(states, tmp_path):
    write(tmp_path, states)
    store = FeatureStore.open(tmp_path)
    exact, halves = store.read([6, 0, 6]), store.read([6, 0, 6], torch.float16)
    assert halves.global_feature.dtype == halves.hidden_states.dtype == torch.float16
    assert torch.equal(halves.global_feature.float(), exact.global_feature)
    assert torch.equal(halves.hidden_states.float(), exact.hidden_states)
    assert torch.equal(halves.mask, exact.mask)


def test_rows_come_one_item_after_another_as_they_are_stored(folder):
    encoded = encoded_items(COUNT)
    rows, counts = FeatureStore.open(folder).read_rows([6, 0, 6])
    parts = rows.float().split(counts.tolist())
    assert rows.dtype == torch.float16
    for part, place in zip(parts, [6, 0, 6], strict=True):
        assert torch.equal(part, real_states(encoded, place))


def test_without_hidden_states_the_global_feature_is_the_only_state(tmp_path):
    encoded = write(tmp_path, StoredStates.NONE)
    store = FeatureStore.open(tmp_path)
    found = store.read([5, 2])
    assert found.mask.tolist() == [[True], [True]]
    assert torch.equal(found.hidden_states[:, 0], encoded.global_feature[[5, 2]])
    rows, counts = store.read_rows([5, 2])
    assert torch.equal(rows.float(), encoded.global_feature[[5, 2]])
    assert counts.tolist() == store.states_per_item[:2].tolist() == [1, 1]
    assert not (tmp_path / HIDDEN_STATES).exists()
    store.verify()
    assert repr(store) == "FeatureStore(8 items, width 4, global features only)"


def test_ids_lead_to_places(folder):
    store = FeatureStore.open(folder)
    assert store.places(["item 7", "item 0", "item 7"]).tolist() == [7, 0, 7]
    assert store.places([]).dtype == np.int64
    with pytest.raises(UnknownIdError, match=r"'x' is not among the 8 items .*\(nor are 1 more\)"):
        store.places(["item 1", "x", "y"])


def test_ids_of_any_text_survive(tmp_path):
    ids = ["", "ключ", 'a "b"\n', "\u2028", "\ud800"]
    with FeatureWriter(tmp_path, "f", WIDTH) as writer:
        writer.append(ids, ids, encoded_items(5))
    assert FeatureStore.open(tmp_path).ids == FeatureStore.open(tmp_path).keys == tuple(ids)


@pytest.mark.parametrize(
    ("places", "error", "message"),
    [
        ([], EmptyBatchError, "no places"),
        ([0, 8], UnknownIdError, "place 8 is not among the 8 items .*; choose 0 to 7"),
        ([-1], UnknownIdError, "place -1"),
        (np.array([True, False]), DtypeError, "np.flatnonzero"),
        (np.array([[1, 2]]), ShapeError, "use .ravel"),
    ],
)
def test_places_that_are_none_are_refused(places, error, message, folder):
    store = FeatureStore.open(folder)
    for read in (store.read, store.read_rows):
        with pytest.raises(error, match=message):
            read(places)


def test_an_empty_store_opens_and_has_nothing_to_read(tmp_path):
    FeatureWriter(tmp_path, "f", WIDTH).close()
    store = FeatureStore.open(tmp_path)
    store.verify()
    assert (len(store), store.ids) == (0, ())
    assert store.global_features().shape == (0, WIDTH)
    with pytest.raises(UnknownIdError, match="0 items"):
        store.read([0])


# --- Memory is used again -------------------------------------------------------------------------


@pytest.fixture
def every_batch_is_recycled(monkeypatch):
    monkeypatch.setattr("adaptiveembed.data.features.SMALLEST_RECYCLED", 1)


@pytest.mark.usefixtures("every_batch_is_recycled")
def test_a_batch_that_is_held_is_not_written_over(folder):
    store = FeatureStore.open(folder)
    kept = store.read([1, 2])
    copies = kept.hidden_states.clone()
    view = store.read([3, 4]).hidden_states[:1]  # the batch is gone, a view of it is not
    array = store.read([1, 5]).hidden_states.numpy()[1:]
    copy, array_copy = view.clone(), array.copy()
    for _ in range(5):
        store.read([5, 6, 7])
        store.read([0, 2])
    assert torch.equal(kept.hidden_states, copies)
    assert torch.equal(view, copy)
    np.testing.assert_array_equal(array, array_copy)


@pytest.mark.usefixtures("every_batch_is_recycled")
def test_the_memory_of_a_batch_that_is_gone_is_used_again(folder):
    store = FeatureStore.open(folder)
    places = set()
    for _ in range(6):
        places.add(store.read([0, 1, 2]).hidden_states.data_ptr())
        gc.collect()
    assert len(places) <= 2


@pytest.mark.usefixtures("every_batch_is_recycled")
def test_threads_that_read_at_once_do_not_write_over_each_other(folder):
    store = FeatureStore.open(folder)
    expected = {place: store.read([place, 7]).hidden_states.clone() for place in range(6)}
    failed = []

    def read(place):
        batches = (store.read([place, 7]).hidden_states for _ in range(50))
        failed.extend(place for batch in batches if not torch.equal(batch, expected[place]))

    threads = [threading.Thread(target=read, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


# --- While it is being written --------------------------------------------------------------------


def test_a_reader_sees_what_was_committed_when_it_was_opened_until_it_looks_again(tmp_path):
    encoded = encoded_items(4)
    with FeatureWriter(tmp_path, "f", WIDTH) as writer:
        writer.append(item_ids(2), item_keys(2), encoded.read([0, 1]))
        early = FeatureStore.open(tmp_path)
        writer.append(item_ids(2, 2), item_keys(2, 2), encoded.read([2, 3]))
        assert len(early) == 2
        late = early.refresh()
        writer.append(["item 0"], ["another"], encoded.read([3]))
    assert late.ids == tuple(item_ids(4))
    assert torch.equal(late.global_features(), encoded.global_feature)
    assert torch.equal(early.read([0]).global_feature, encoded.global_feature[:1])


# --- Damaged --------------------------------------------------------------------------------------


def test_every_changed_byte_of_the_index_is_noticed_when_it_is_opened(folder):
    path = folder / INDEX
    content = path.read_bytes()
    for place in range(len(content)):
        change_byte(path, place)
        number = content[:place].count(b"\n") + 1
        with pytest.raises(FeatureStoreError, match=rf"line {number} of .*{INDEX} is damaged"):
            FeatureStore.open(folder)
        path.write_bytes(content)


@pytest.mark.parametrize("name", [GLOBAL_FEATURE, HIDDEN_STATES])
def test_every_changed_number_is_noticed_by_verifying(name, folder):
    path = folder / name
    for place in range(0, path.stat().st_size, 3):
        change_byte(path, place)
        with pytest.raises(FeatureStoreError, match=rf"{name} is damaged .*bring the folder back"):
            FeatureStore.open(folder).verify()
        change_byte(path, place)
    FeatureStore.open(folder).verify()


def test_verifying_names_the_items_and_tells_its_progress(folder):
    told = []
    FeatureStore.open(folder).verify(lambda done, total, facts=None: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    change_byte(folder / GLOBAL_FEATURE, -1)
    with pytest.raises(FeatureStoreError, match="numbers of items 'item 4' to 'item 7' have"):
        FeatureStore.open(folder).verify()


@pytest.mark.parametrize("name", [GLOBAL_FEATURE, HIDDEN_STATES])
def test_numbers_that_are_missing_are_noticed_when_it_is_opened(name, folder):
    path = folder / name
    size = path.stat().st_size
    os.truncate(path, size - 1)
    expected = rf"{name} has {size - 1:,} bytes and {INDEX} names {size:,}; bring"
    with pytest.raises(FeatureStoreError, match=expected):
        FeatureStore.open(folder)
    path.unlink()
    with pytest.raises(FeatureStoreError, match=rf"{name} has 0 bytes"):
        FeatureStore.open(folder)


def test_a_folder_without_features_is_named(tmp_path):
    with pytest.raises(FeatureStoreError, match=r"nowhere holds no features .*; give the folder"):
        FeatureStore.open(tmp_path / "nowhere")
    (tmp_path / INDEX).write_bytes(b"")
    with pytest.raises(FeatureStoreError, match="holds no features yet; encode into it first"):
        FeatureStore.open(tmp_path)
    (tmp_path / INDEX).unlink()
    (tmp_path / INDEX).mkdir()
    with pytest.raises(FeatureStoreError, match=rf"{INDEX} cannot be read"):
        FeatureStore.open(tmp_path)


def test_another_version_or_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / INDEX).write_bytes(index_line({"format": "theirs"}))
    with pytest.raises(FeatureStoreError, match="does not describe a feature store"):
        FeatureStore.open(tmp_path)
    (tmp_path / INDEX).write_bytes(index_line({"format": "adaptiveembed.features", "version": 2}))
    with pytest.raises(FeatureStoreError, match="version 2 and this library reads version 1"):
        FeatureStore.open(tmp_path)


def test_the_index_is_json_lines(folder):
    lines = [json.loads(line) for line in (folder / INDEX).read_text().splitlines()]
    header, *commits = (line["record"] for line in lines)
    assert (header["fingerprint"], header["width"], header["states"]) == ("encoder 1", WIDTH, "all")
    assert [len(commit["ids"]) for commit in commits] == list(BATCHES)
    assert all(re.fullmatch("[0-9a-f]{16}", line["checksum"]) for line in lines)
