"""Features go to other programs and come back unchanged; what is wrong in their files is named."""

import json
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from adaptiveembed.data import feature_exchange
from adaptiveembed.data.feature_exchange import export_features, import_features
from adaptiveembed.data.feature_index import StoredStates
from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.errors import FeatureStoreError, NotFiniteError
from tests.data.encoded_items import WIDTH, encoded_items, item_ids, item_keys, real_states

ENDINGS = [".npz", ".safetensors"]
every_ending = pytest.mark.parametrize("ending", ENDINGS)
COUNT = 7


def store_of(folder, count=COUNT, states=StoredStates.ALL, seed=0):
    with FeatureWriter(folder, "encoder 1", WIDTH, states) as writer:
        writer.append(item_ids(count), item_keys(count), encoded_items(count, seed))
    return FeatureStore.open(folder)


def arrays_of(count=COUNT, dtype=np.float32):
    encoded = encoded_items(count)
    return {
        "ids": np.array(item_ids(count)),
        "global_feature": encoded.global_feature.numpy().astype(dtype),
        "hidden_states": encoded.hidden_states.numpy().astype(dtype),
        "mask": encoded.mask.numpy(),
    }


def save(path, arrays):
    """A file as another program would write it."""
    arrays = {name: array for name, array in arrays.items() if array is not None}
    if path.suffix == ".npz":
        np.savez(path, **arrays)
        return path
    ids = arrays.pop("ids", None)
    metadata = None if ids is None else {"ids": json.dumps(ids.tolist())}
    save_file({name: np.ascontiguousarray(one) for name, one in arrays.items()}, path, metadata)
    return path


def same(found, expected):
    assert found.ids == expected.ids
    places = range(len(expected))
    one, other = found.read(places), expected.read(places)
    for name in ("global_feature", "hidden_states", "mask"):
        assert torch.equal(getattr(one, name), getattr(other, name))


# --- There and back -------------------------------------------------------------------------------


@every_ending
@settings(max_examples=12)
@given(
    count=st.integers(1, 9),
    part=st.sampled_from([1, 3 * WIDTH * 5 * 2, 1 << 26]),
    states=st.sampled_from(StoredStates),
)
def test_what_is_exported_and_imported_is_the_same_store(
    tmp_path_factory, ending, count, part, states
):
    folder = tmp_path_factory.mktemp("exchange")
    store = store_of(folder / "one", count, states)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(feature_exchange, "PART_BYTES", part)
        export_features(store, folder / f"features{ending}")
        found = import_features(folder / f"features{ending}", folder / "two")
    same(found, store)
    assert (found.fingerprint, found.states) == ("encoder 1", states)
    assert {path.name for path in folder.iterdir()} == {"one", "two", f"features{ending}"}


def test_other_programs_read_what_is_exported(tmp_path):
    store = store_of(tmp_path / "store")
    export_features(store, tmp_path / "features.npz")
    export_features(store, tmp_path / "features.safetensors")
    with np.load(tmp_path / "features.npz", allow_pickle=False) as file:
        archive = dict(file)
    tensors = load_file(tmp_path / "features.safetensors")
    assert archive.pop("ids").tolist() == item_ids(COUNT)
    assert str(archive.pop("fingerprint")) == "encoder 1"
    assert archive.keys() == tensors.keys() == {"global_feature", "hidden_states", "mask"}
    whole = store.read(range(COUNT))
    for name, array in archive.items():
        np.testing.assert_array_equal(array, tensors[name])
        np.testing.assert_array_equal(array, getattr(whole, name))
    assert archive["hidden_states"].dtype == np.float16


@every_ending
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_features_of_other_programs_are_imported(dtype, ending, tmp_path):
    encoded = encoded_items(COUNT)
    arrays = arrays_of(dtype=dtype)
    arrays["hidden_states"][~arrays["mask"]] = np.nan  # what nobody reads may be anything
    found = import_features(save(tmp_path / f"a{ending}", arrays), tmp_path / "store")
    assert found.ids == tuple(item_ids(COUNT))
    assert torch.equal(found.global_features(), encoded.global_feature)
    read = found.read(range(COUNT))
    for place in range(COUNT):
        assert torch.equal(real_states(read, place), real_states(encoded, place))


@every_ending
def test_without_a_mask_every_state_is_real_and_without_states_none_is_kept(ending, tmp_path):
    whole = save(tmp_path / f"a{ending}", arrays_of() | {"mask": None})
    assert import_features(whole, tmp_path / "a").states_per_item.tolist() == [5] * COUNT
    alone = save(tmp_path / f"b{ending}", arrays_of() | {"mask": None, "hidden_states": None})
    assert import_features(alone, tmp_path / "b").states is StoredStates.NONE


@every_ending
def test_the_fingerprint_is_the_given_one_or_that_of_the_content(ending, tmp_path):
    one = save(tmp_path / f"a{ending}", arrays_of())
    same_content = save(tmp_path / f"b{ending}", arrays_of())
    another = save(tmp_path / f"c{ending}", arrays_of(3))
    if ending == ".npz":  # archives hold the time
        same_content.write_bytes(one.read_bytes())
    made = [
        import_features(path, tmp_path / path.stem).fingerprint
        for path in (one, same_content, another)
    ]
    assert made[0] == made[1] != made[2]
    assert import_features(one, tmp_path / "given", fingerprint="mine").fingerprint == "mine"


def test_numbers_of_another_byte_order_and_compressed_archives_are_read(tmp_path):
    arrays = arrays_of()
    arrays["global_feature"] = arrays["global_feature"].astype(">f4")
    np.savez_compressed(tmp_path / "a.npz", **arrays)
    found = import_features(tmp_path / "a.npz", tmp_path / "store")
    assert torch.equal(found.global_features(), encoded_items(COUNT).global_feature)


def test_bfloat16_is_read(tmp_path):
    from safetensors.torch import save_file as save_tensors

    features = encoded_items(2).global_feature.bfloat16()
    save_tensors({"global_feature": features}, tmp_path / "a.safetensors", {"ids": '["a", "b"]'})
    found = import_features(tmp_path / "a.safetensors", tmp_path / "store")
    assert torch.equal(found.global_features(), features.half().float())


def test_progress_is_told(tmp_path):
    store, told = store_of(tmp_path / "store"), []

    def listen(done, total, facts=None):
        told.append((done, total))

    export_features(store, tmp_path / "a.npz", listen)
    import_features(tmp_path / "a.npz", tmp_path / "b", progress=listen)
    assert told == [(COUNT, COUNT)] * 2


# --- What is wrong --------------------------------------------------------------------------------


def changed(**changes):
    """A file's arrays, some of them changed."""
    return lambda: (
        arrays_of()
        | {
            name: change(arrays_of().get(name)) if callable(change) else change
            for name, change in changes.items()
        }
    )


def with_value(index, value):
    def change(array):
        array[index] = value
        return array

    return change


WRONG = {
    "no ids": (changed(ids=None), r"no ids among its (arrays|metadata); it holds .*global_feature"),
    "no features": (changed(global_feature=None), "no global_feature among its arrays; it holds"),
    "no states": (changed(hidden_states=None), "no hidden_states among its arrays"),
    "a misspelt array": (
        changed(mask=None, masks=np.ones((COUNT, 5), bool)),
        "no mask among its arrays; did you mean masks. rename it to mask",
    ),
    "an id twice": (changed(ids=with_value(0, "item 3")), "ids name 'item 3' more than once"),
    "fewer ids": (
        changed(ids=lambda ids: ids[1:]),
        r"shape \(7, 4\) and needed is \(6, 4\), for 6",
    ),
    "fewer states": (
        changed(hidden_states=lambda states: states[:5]),
        r"hidden_states has shape \(5, 5, 4\) and needed is \(7, 5, 4\)",
    ),
    "another width": (
        changed(hidden_states=lambda states: states[..., :3]),
        r"hidden_states has shape \(7, 5, 3\) and needed is \(7, 5, 4\)",
    ),
    "another mask": (changed(mask=lambda mask: mask[:, :4]), r"mask has shape \(7, 4\) and needed"),
    "one axis": (
        changed(global_feature=lambda features: features[:, 0]),
        r"global_feature has shape \(7,\) and needed is \[items, width\]",
    ),
    "no width": (changed(global_feature=lambda features: features[:, :0]), r"shape \(7, 0\)"),
    "whole numbers": (
        changed(global_feature=lambda features: features.astype(np.int32)),
        r"global_feature holds \w+ and needed is float; use .astype\(float\)",
    ),
    "a mask of numbers": (
        changed(mask=lambda mask: mask * 1.0),
        "mask holds float.. and needed is",
    ),
    "an item without a state": (changed(mask=with_value(2, 0)), "'item 2' has no real state"),
}


@every_ending
@pytest.mark.parametrize(("arrays", "message"), WRONG.values(), ids=WRONG)
def test_a_file_that_does_not_fit_is_named_and_nothing_is_left(arrays, message, ending, tmp_path):
    path = save(tmp_path / f"a{ending}", arrays())
    with pytest.raises(FeatureStoreError, match=message) as caught:
        import_features(path, tmp_path / "store")
    assert "a mask" in message or "no real state" in message or str(path) in str(caught.value)
    assert list(tmp_path.iterdir()) == [path]


@every_ending
@pytest.mark.parametrize("name", ["global_feature", "hidden_states"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e5])
def test_a_number_that_cannot_be_stored_is_named_by_its_item(name, value, ending, tmp_path):
    arrays = arrays_of()
    arrays["mask"][4] = True
    arrays[name][4, ..., 1] = value
    path = save(tmp_path / f"a{ending}", arrays)
    with pytest.raises(NotFiniteError, match=f"{name} of item 'item 4'"):
        import_features(path, tmp_path / "store")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "ids", [np.array([b"a", b"b"]), np.array([1, 2]), np.array(["a", 2], object)]
)
def test_ids_of_an_archive_are_texts(ids, tmp_path):
    save(tmp_path / "a.npz", arrays_of(2) | {"ids": ids})
    with pytest.raises(FeatureStoreError, match=r"ids holds .*; make it texts with np.array"):
        import_features(tmp_path / "a.npz", tmp_path / "store")


@pytest.mark.parametrize(
    ("ids", "message"),
    [('["a", 2]', "ids are texts, got 2"), ('"ab"', "are no list"), ("[a", "cannot be read")],
)
def test_ids_of_safetensors_are_a_list_of_texts(ids, message, tmp_path):
    save_file({"global_feature": np.ones((2, 3), "f4")}, tmp_path / "a.safetensors", {"ids": ids})
    with pytest.raises(FeatureStoreError, match=message):
        import_features(tmp_path / "a.safetensors", tmp_path / "store")


def test_an_archive_is_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            raise AssertionError("pickled")

    arrays = arrays_of(2)
    arrays["global_feature"] = np.array([[{}, {}], [{}, {}]], object)
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FeatureStoreError, match="global_feature holds object and needed is float"):
        import_features(tmp_path / "a.npz", tmp_path / "store")


def test_an_array_that_lies_column_by_column_is_refused(tmp_path):
    arrays = arrays_of()
    arrays["global_feature"] = np.asfortranarray(arrays["global_feature"])
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(FeatureStoreError, match=r"column by column; save np.ascontiguousarray"):
        import_features(tmp_path / "a.npz", tmp_path / "store")


@every_ending
def test_a_damaged_file_is_named(ending, tmp_path):
    path = save(tmp_path / f"a{ending}", arrays_of())
    content = path.read_bytes()
    for damaged in (b"", content[:50], content[: len(content) - 40], b"\x80" * len(content)):
        path.write_bytes(damaged)
        with pytest.raises(FeatureStoreError, match=rf"a\{ending} cannot be read .*write it again"):
            import_features(path, tmp_path / "store")
        assert list(tmp_path.iterdir()) == [path]


def test_every_changed_number_of_an_archive_is_noticed(tmp_path):
    path = save(tmp_path / "a.npz", arrays_of())
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("hidden_states.npy")
    start = entry.header_offset + 200
    for place in range(start, start + 400, 20):
        changed_bytes = bytearray(content)
        changed_bytes[place] ^= 1
        path.write_bytes(changed_bytes)
        with pytest.raises((FeatureStoreError, NotFiniteError)):
            import_features(path, tmp_path / "store")
        assert list(tmp_path.iterdir()) == [path]


@every_ending
def test_nothing_is_overwritten(ending, tmp_path):
    store = store_of(tmp_path / "store")
    export_features(store, tmp_path / f"a{ending}")
    with pytest.raises(FeatureStoreError, match="exists; remove it or choose another name"):
        export_features(store, tmp_path / f"a{ending}")
    with pytest.raises(FeatureStoreError, match="exists; remove it or choose another folder"):
        import_features(tmp_path / f"a{ending}", tmp_path / "store")


def test_files_that_are_not_there_or_of_another_kind_are_named(tmp_path):
    with pytest.raises(
        FeatureStoreError, match=r"ends in \.pt; features are exchanged as \.npz or"
    ):
        import_features(tmp_path / "a.pt", tmp_path / "store")
    with pytest.raises(FeatureStoreError, match=r"ends in \.pt"):
        export_features(store_of(tmp_path / "one"), tmp_path / "a.pt")
    for ending in ENDINGS:
        with pytest.raises(FeatureStoreError, match=rf"there is no file .*none\{ending}"):
            import_features(tmp_path / f"none{ending}", tmp_path / "store")
    empty = tmp_path / "empty"
    FeatureWriter(empty, "f", WIDTH).close()
    with pytest.raises(FeatureStoreError, match="holds no items; encode some first"):
        export_features(FeatureStore.open(empty), tmp_path / "a.npz")


def test_more_ids_than_safetensors_holds_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("adaptiveembed.data.feature_files.LARGEST_HEADER", 100)
    store = store_of(tmp_path / "store")
    with pytest.raises(FeatureStoreError, match=r"safetensors holds 100; write .npz instead"):
        export_features(store, tmp_path / "a.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
