"""What is written is there whole or not at all, once, by one writer at a time."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptiveembed.data import feature_writer
from adaptiveembed.data.feature_index import GLOBAL_FEATURE, HIDDEN_STATES, INDEX, StoredStates
from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.errors import (
    DtypeError,
    DuplicateIdError,
    FeatureStoreError,
    NotFiniteError,
    SettingError,
    ShapeError,
)
from adaptiveembed.structure.encoded import EncodedMedia
from tests.data.encoded_items import WIDTH, encoded_items, item_ids, item_keys, real_states
from tests.kills.feature_writer import kill_and_compare


def contents(folder):
    names = (INDEX, GLOBAL_FEATURE, HIDDEN_STATES)
    return {name: (folder / name).read_bytes() for name in names}


def append(folder, encoded, start=0, keys=None):
    count = len(encoded)
    with FeatureWriter(folder, "f", WIDTH) as writer:
        return writer.append(item_ids(count, start), keys or item_keys(count, start), encoded)


def with_number(name, value):
    """Two items of one state, of which the second holds a number that cannot be stored."""
    features, states = torch.ones(2, WIDTH), torch.ones(2, 1, WIDTH)
    encoded = EncodedMedia(features, states, torch.ones(2, 1, dtype=torch.bool))
    getattr(encoded, name)[1, ..., 2] = value
    return encoded


# --- What is stored -------------------------------------------------------------------------------


def test_what_is_stored_already_is_skipped(tmp_path):
    encoded = encoded_items(4)
    assert append(tmp_path, encoded.read([0, 1])) == 2
    before = contents(tmp_path)
    assert append(tmp_path, encoded.read([0, 1])) == 0
    assert contents(tmp_path) == before
    assert append(tmp_path, encoded) == 2
    store = FeatureStore.open(tmp_path)
    assert store.ids == tuple(item_ids(4))
    assert torch.equal(store.global_features(), encoded.global_feature)


def test_other_content_under_the_same_id_replaces_it_in_its_place(tmp_path):
    first, second = encoded_items(3, seed=1), encoded_items(3, seed=2)
    append(tmp_path, first)
    assert append(tmp_path, second, keys=["key 0", "new", "key 2"]) == 1
    store = FeatureStore.open(tmp_path)
    assert (store.ids, store.keys) == (tuple(item_ids(3)), ("key 0", "new", "key 2"))
    found = store.read([0, 1, 2])
    for place, source in enumerate((first, second, first)):
        assert torch.equal(found.global_feature[place], source.global_feature[place])
        assert torch.equal(real_states(found, place), real_states(source, place))
    store.verify()


def test_the_writer_knows_what_it_holds(tmp_path):
    append(tmp_path, encoded_items(2))
    with FeatureWriter(tmp_path, "f", WIDTH) as writer:
        assert len(writer) == 2
        assert writer.holds("item 1", "key 1")
        assert not writer.holds("item 1", "another")
        assert not writer.holds("item 2", "key 2")


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.bfloat16])
def test_features_of_every_kind_are_stored_in_half_precision(dtype, tmp_path):
    encoded = encoded_items(3)
    given = EncodedMedia(
        encoded.global_feature.to(dtype), encoded.hidden_states.to(dtype), encoded.mask
    )
    append(tmp_path, given)
    found = FeatureStore.open(tmp_path).global_features()
    assert torch.equal(found, given.global_feature.half().float())


# --- What is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["global_feature", "hidden_states"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), "holds NaN or infinity"),
        (float("-inf"), "holds NaN or infinity"),
        (-65_520.0, "reaches 65520 and is stored in half precision, which ends at 65504; let"),
        (1e30, r"reaches 1e\+30 and .* ends at 65504"),
    ],
)
def test_a_number_that_half_precision_does_not_hold_is_refused_by_item(
    name, value, message, tmp_path
):
    with FeatureWriter(tmp_path, "f", WIDTH) as writer:
        writer.append(["a"], ["1"], encoded_items(1))
        before = contents(tmp_path)
        with pytest.raises(NotFiniteError, match=f"{name} of item 'c' {message}"):
            writer.append(["b", "c"], ["2", "3"], with_number(name, value))
        assert contents(tmp_path) == before
        writer.append(["b", "c"], ["2", "3"], with_number(name, 65_504.0))
    assert len(FeatureStore.open(tmp_path)) == 3


def test_what_does_not_fit_the_store_is_refused_and_the_store_goes_on(tmp_path):
    with FeatureWriter(tmp_path, "f", WIDTH) as writer:
        with pytest.raises(ShapeError, match="width 4 and item 'item 0' has width 6; encode with"):
            writer.append(item_ids(2), item_keys(2), encoded_items(2, width=6))
        with pytest.raises(ShapeError, match="got 2 ids and 1 keys for 3 encoded items"):
            writer.append(item_ids(2), item_keys(1), encoded_items(3))
        with pytest.raises(DuplicateIdError, match="'a' more than once"):
            writer.append(["a", "a"], item_keys(2), encoded_items(2))
        with pytest.raises(DtypeError, match="ids are a list of texts"):
            writer.append("ab", item_keys(2), encoded_items(2))
        assert writer.append(item_ids(2), item_keys(2), encoded_items(2)) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("g", WIDTH, StoredStates.ALL), "fingerprint f and g is to be written; choose another"),
        (("f", 5, StoredStates.ALL), "width 4 and 5 is to be written"),
        (("f", WIDTH, StoredStates.NONE), "states all and none is to be written"),
    ],
)
def test_features_of_another_kind_are_refused(change, message, tmp_path):
    append(tmp_path, encoded_items(2))
    before = contents(tmp_path)
    with pytest.raises(FeatureStoreError, match=message):
        FeatureWriter(tmp_path, *change)
    assert contents(tmp_path) == before
    append(tmp_path, encoded_items(2), start=2)


def test_features_without_numbers_are_refused(tmp_path):
    with pytest.raises(SettingError, match="width 0"):
        FeatureWriter(tmp_path, "f", 0)


def test_a_file_of_the_same_name_is_never_written_over(tmp_path):
    (tmp_path / INDEX).write_text("mine")
    with pytest.raises(FeatureStoreError, match="holds no features yet"):
        FeatureWriter(tmp_path, "f", WIDTH)
    (tmp_path / INDEX).write_text("mine\n")
    with pytest.raises(FeatureStoreError, match=r"line 1 of .* is damaged"):
        FeatureWriter(tmp_path, "f", WIDTH)
    assert (tmp_path / INDEX).read_text() == "mine\n"


# --- One at a time --------------------------------------------------------------------------------


def test_a_second_writer_is_told_who_the_first_is(tmp_path):
    expected = rf"process {os.getpid()} is writing to .*; wait until it is done, or stop it"
    first = FeatureWriter(tmp_path, "f", WIDTH)
    with first, pytest.raises(FeatureStoreError, match=expected):
        FeatureWriter(tmp_path, "f", WIDTH)
    append(tmp_path, encoded_items(1))


def test_a_writer_that_ended_without_closing_leaves_no_lock(tmp_path):
    program = (
        "import os, sys; from adaptiveembed.data.feature_writer import FeatureWriter;"
        "writer = FeatureWriter(sys.argv[1], 'f', 4); os._exit(7)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == 7
    append(tmp_path, encoded_items(1))


# --- Interrupted ----------------------------------------------------------------------------------


def expected_store(folder):
    """Two commits, and how large each file is after the first."""
    encoded = encoded_items(5)
    append(folder, encoded.read([0, 1]))
    sizes = {name: len(content) for name, content in contents(folder).items()}
    append(folder, encoded.read([2, 3, 4]), start=2)
    return encoded, sizes


def test_a_last_line_cut_at_any_byte_never_was_and_is_written_again(tmp_path):
    encoded, sizes = expected_store(tmp_path)
    whole = contents(tmp_path)
    for end in range(sizes[INDEX], len(whole[INDEX])):
        os.truncate(tmp_path / INDEX, end)
        assert FeatureStore.open(tmp_path).ids == tuple(item_ids(2))
        assert append(tmp_path, encoded.read([2, 3, 4]), start=2) == 3
        assert contents(tmp_path) == whole


def test_an_index_cut_within_its_first_line_is_begun_again(tmp_path):
    append(tmp_path, encoded_items(2))
    whole = contents(tmp_path)
    for end in range(whole[INDEX].index(b"\n") + 1):
        os.truncate(tmp_path / INDEX, end)
        with pytest.raises(FeatureStoreError, match="holds no features yet"):
            FeatureStore.open(tmp_path)
        append(tmp_path, encoded_items(2))
        assert contents(tmp_path) == whole


@settings(max_examples=40)
@given(data=st.data())
def test_numbers_that_no_line_names_are_removed(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("stores")
    encoded, sizes = expected_store(folder)
    whole = contents(folder)
    os.truncate(folder / INDEX, sizes[INDEX])
    for name in (GLOBAL_FEATURE, HIDDEN_STATES):
        os.truncate(folder / name, data.draw(st.integers(sizes[name], len(whole[name]))))
    with FeatureWriter(folder, "f", WIDTH):
        assert {name: len(content) for name, content in contents(folder).items()} == sizes
    append(folder, encoded.read([2, 3, 4]), start=2)
    assert contents(folder) == whole


def test_zeros_that_a_loss_of_power_leaves_are_no_line(tmp_path):
    encoded, sizes = expected_store(tmp_path)
    whole = contents(tmp_path)
    (tmp_path / INDEX).write_bytes(whole[INDEX][: sizes[INDEX]] + bytes(100))
    assert len(FeatureStore.open(tmp_path)) == 2
    append(tmp_path, encoded.read([2, 3, 4]), start=2)
    assert contents(tmp_path) == whole


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("written", [0, 1, 2])
def test_a_commit_that_fails_is_not_there_and_the_writer_is_opened_again(
    error, written, tmp_path, monkeypatch
):
    encoded = encoded_items(4)
    append(tmp_path, encoded.read([0, 1]))
    calls = []

    def write_part(file, content):
        calls.append(file)
        real(file, content[: len(content) // 2] if len(calls) > written else content)
        if len(calls) > written:
            raise error

    real = feature_writer.write_all
    with FeatureWriter(tmp_path, "f", WIDTH) as writer, monkeypatch.context() as patch:
        patch.setattr(feature_writer, "write_all", write_part)
        with pytest.raises(error):
            writer.append(item_ids(2, 2), item_keys(2, 2), encoded.read([2, 3]))
        assert len(FeatureStore.open(tmp_path)) == 2
        with pytest.raises(FeatureStoreError, match="was interrupted; open the writer again"):
            writer.append(item_ids(2, 2), item_keys(2, 2), encoded.read([2, 3]))
    assert append(tmp_path, encoded) == 2
    store = FeatureStore.open(tmp_path)
    store.verify()
    assert torch.equal(store.global_features(), encoded.global_feature)


def test_a_writer_killed_at_random_bytes_ends_with_the_undisturbed_store(tmp_path):
    *kills, summary = kill_and_compare(tmp_path, kills=3, seed=0)
    assert len(kills) == 3
    assert summary.endswith("all files are equal")


def test_a_store_that_lost_numbers_is_not_continued(tmp_path):
    append(tmp_path, encoded_items(2))
    os.truncate(tmp_path / GLOBAL_FEATURE, 3)
    with pytest.raises(FeatureStoreError, match=re.escape(f"{GLOBAL_FEATURE} has 3 bytes")):
        FeatureWriter(tmp_path, "f", WIDTH)


def test_bytes_reach_the_file_however_small_the_pieces_that_the_system_takes():
    taken = bytearray()

    class Slow:
        def write(self, content):
            taken.extend(content[:3])
            return min(3, len(content))

    content = np.arange(5, dtype=np.float16)
    feature_writer.write_all.__wrapped__(Slow(), content.data.cast("B"))
    assert bytes(taken) == content.tobytes()
