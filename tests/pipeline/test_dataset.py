"""A manifest becomes a dataset folder, whole, continued, and never of two encoders."""

import csv
import json
import shutil

import numpy as np
import pytest

from adaptiveembed.data.pairs import Manifest, Pair, read_manifest
from adaptiveembed.encoders.user import load_encoder
from adaptiveembed.errors import (
    AdaptiveEmbedError,
    EncoderError,
    FeatureStoreError,
    ManifestError,
    MediaError,
    SettingError,
)
from adaptiveembed.pipeline.dataset import (
    FACTS,
    common_encoders,
    encode_dataset,
    import_dataset,
    medium_of,
    open_dataset,
    require_encoders,
    with_splits,
)
from adaptiveembed.pipeline.inputs import FEATURES, EncoderFacts
from adaptiveembed.pipeline.paired import QUERY, TRAIN
from adaptiveembed.structure.direction import Modality
from tests.pipeline.tiny import NAMES, WIDTH, encoded, write_corpus

TEXT, IMAGE = Modality.TEXT, Modality.IMAGE


def encode(manifest, folder, names=NAMES, **settings):
    encoders = {each: load_encoder(name, each) for each, name in names.items()}
    if not isinstance(manifest, Manifest):
        manifest = read_manifest(manifest)
    return encode_dataset(manifest, encoders, names, folder, **settings)


def files(folder):
    return {path.name for path in folder.iterdir()}


def test_a_dataset_has_the_pairs_of_its_manifest_in_order(corpus, dataset):
    manifest = read_manifest(corpus)
    assert dataset.pairs.ids == manifest.ids
    assert dataset.pairs.splits == tuple(pair.split for pair in manifest)
    assert [pair.media for pair in dataset.manifest] == [pair.media for pair in manifest]
    assert str(dataset.pairs.direction) == "text→image"
    assert (len(dataset.pairs.training), len(dataset.pairs.queries)) == (72, 18)
    assert dataset.left_out == ()
    source, _ = encoded(len(manifest))
    expected = source.global_features()
    np.testing.assert_allclose(dataset.pairs.source.global_features(), expected, atol=1e-2)


def test_a_broken_picture_is_listed_and_its_pair_left_out(tmp_path):
    manifest = write_corpus(tmp_path / "own", 12)
    (manifest.parent / "pictures/003.png").write_bytes(b"not a picture")
    (manifest.parent / "pictures/007.png").unlink()
    summaries = encode(manifest, tmp_path / "features")
    assert [failure.id for failure in summaries[IMAGE].failed] == ["item-003", "item-007"]
    assert "003.png" in summaries[IMAGE].failed[0].reason
    assert summaries[TEXT].failed == ()
    found = open_dataset(tmp_path / "features")
    assert found.left_out == ("item-003", "item-007")
    assert len(found.pairs) == 10
    assert found.manifest.ids == found.pairs.ids


def test_a_strict_encoding_ends_at_a_broken_picture(tmp_path):
    manifest = write_corpus(tmp_path / "own", 6)
    (manifest.parent / "pictures/003.png").write_bytes(b"not a picture")
    with pytest.raises(MediaError, match="item 'item-003'"):
        encode(manifest, tmp_path / "features", strict=True)


def test_what_is_encoded_is_skipped_and_what_was_mended_is_not(tmp_path):
    manifest = write_corpus(tmp_path / "own", 8)
    broken, good = (manifest.parent / f"pictures/00{place}.png" for place in (3, 4))
    kept = broken.read_bytes()
    broken.write_bytes(b"not a picture")
    encode(manifest, tmp_path / "features")
    broken.write_bytes(kept)
    summaries = encode(manifest, tmp_path / "features")
    assert [(one.encoded, one.skipped) for one in summaries.values()] == [(0, 8), (1, 7)]
    shutil.copy(good, manifest.parent / "pictures/005.png")
    assert encode(manifest, tmp_path / "features")[IMAGE].encoded == 1


def test_a_manifest_that_has_grown_goes_on_in_its_folder(tmp_path):
    manifest = write_corpus(tmp_path / "own", 8)
    lines = manifest.read_text().splitlines()
    manifest.write_text("\n".join(lines[:6]) + "\n")
    encode(manifest, tmp_path / "features")
    manifest.write_text("\n".join(lines) + "\n")
    assert encode(manifest, tmp_path / "features")[TEXT].encoded == 3
    assert len(open_dataset(tmp_path / "features").pairs) == 8


def test_another_encoder_is_refused_in_the_same_folder(tmp_path):
    manifest = write_corpus(tmp_path / "own", 4)
    encode(manifest, tmp_path / "features")
    other = {**NAMES, TEXT: "tests.pipeline.tiny:OtherWords"}
    with pytest.raises(FeatureStoreError, match=r"fingerprint words-1.*fingerprint words-2"):
        encode(manifest, tmp_path / "features", other)
    assert len(open_dataset(tmp_path / "features").pairs) == 4


def test_a_folder_with_other_things_is_refused(tmp_path):
    (tmp_path / "features").mkdir()
    (tmp_path / "features" / "thesis.txt").write_text("kept")
    with pytest.raises(FeatureStoreError, match=r"something else \(thesis\.txt\)"):
        encode(write_corpus(tmp_path / "own", 4), tmp_path / "features")
    assert files(tmp_path / "features") == {"thesis.txt"}


def test_a_split_that_is_none_is_refused_before_anything_is_encoded(tmp_path):
    manifest = write_corpus(tmp_path / "own", 4)
    manifest.write_text(manifest.read_text().replace("train", "test"))
    with pytest.raises(ManifestError, match="split 'test'; the splits are 'train' and 'query'"):
        encode(manifest, tmp_path / "features")
    assert not (tmp_path / "features").exists()


def test_a_pair_with_one_side_is_refused_by_its_id(tmp_path):
    for pair, side in ((Pair("a", text="a"), "medium"), (Pair("a", media=tmp_path), "text")):
        with pytest.raises(ManifestError, match=f"pair 'a' of .* has no {side}"):
            encode(Manifest((pair,)), tmp_path / "features")


def test_without_splits_a_seeded_tenth_are_queries():
    manifest = Manifest(tuple(Pair(f"{place}", text="a") for place in range(200)))
    splits = [pair.split for pair in with_splits(manifest)]
    assert splits.count(QUERY) == 20
    assert splits.count(TRAIN) == 180
    assert splits == [pair.split for pair in with_splits(manifest)]
    named = Manifest((Pair("a", split=TRAIN), Pair("b", split=QUERY)))
    assert with_splits(named) is named


def test_the_medium_follows_from_the_names_of_the_files(tmp_path):
    names = ["a.png", "b.jpg"]
    manifest = Manifest(tuple(Pair(name, media=tmp_path / name) for name in names))
    assert medium_of(manifest) is IMAGE
    mixed = Manifest((*manifest.pairs, Pair("c", media=tmp_path / "c.wav")))
    with pytest.raises(ManifestError, match="image and audio"):
        medium_of(mixed)
    with pytest.raises(ManifestError, match="names no medium"):
        medium_of(Manifest((Pair("a", text="a"),)))


# features of one's own


def write_features(file, features, ids, **more):
    np.savez(
        file,
        ids=np.array(ids),
        global_feature=features.global_feature.numpy(),
        hidden_states=features.hidden_states.numpy(),
        mask=features.mask.numpy(),
        **more,
    )
    return file


@pytest.fixture
def own_files(tmp_path):
    """Features of 20 texts, and of 20 pictures of which 15 are those of the texts."""
    source, target = encoded(25)
    texts = write_features(
        tmp_path / "texts.npz", source.read(range(20)), [f"id-{place}" for place in range(20)]
    )
    images = write_features(
        tmp_path / "images.npz", target.read(range(5, 25)), [f"id-{row}" for row in range(5, 25)]
    )
    return {TEXT: texts, IMAGE: images}


def test_two_files_of_features_are_a_dataset_of_the_ids_of_both(own_files, tmp_path):
    found = import_dataset(own_files, tmp_path / "deep" / "features")
    assert found.pairs.ids == tuple(f"id-{place}" for place in range(5, 20))
    assert len(found.pairs.queries) == 2
    assert {one.name for one in found.encoders.values()} == {FEATURES}
    assert files(tmp_path / "deep") == {"features"}
    expected = encoded(20)[1].global_features()[5:]
    np.testing.assert_allclose(found.pairs.target.global_features(), expected, atol=1e-2)


def test_a_list_of_pairs_gives_imported_features_texts_and_splits(own_files, tmp_path):
    listed = Manifest(
        tuple(
            Pair(f"id-{place}", text=f"text {place}", split=QUERY if place > 12 else TRAIN)
            for place in range(8, 30)
        )
    )
    found = import_dataset(own_files, tmp_path / "features", listed)
    assert found.pairs.ids == tuple(f"id-{place}" for place in range(8, 20))
    assert found.manifest.texts[0] == "text 8"
    assert len(found.pairs.queries) == 7
    assert len(found.left_out) == 10


def test_an_import_that_fails_leaves_nothing(own_files, tmp_path):
    own_files[IMAGE].write_bytes(b"no archive")
    before = files(tmp_path)
    with pytest.raises(AdaptiveEmbedError, match=r"images\.npz"):
        import_dataset(own_files, tmp_path / "features")
    assert files(tmp_path) == before


def test_what_cannot_be_imported_is_refused(own_files, tmp_path):
    with pytest.raises(SettingError, match="features of text were given"):
        import_dataset({TEXT: own_files[TEXT]}, tmp_path / "features")
    with pytest.raises(FeatureStoreError, match="no id in common"):
        import_dataset(own_files, tmp_path / "features", Manifest((Pair("elsewhere"),)))
    source, _ = encoded(3)
    other = write_features(tmp_path / "other.npz", source, ["x", "y", "z"])
    with pytest.raises(FeatureStoreError, match=r"no id in common \('x', 'id-5'\)"):
        import_dataset({**own_files, TEXT: other}, tmp_path / "features")
    (tmp_path / "there").mkdir()
    with pytest.raises(FeatureStoreError, match="exists"):
        import_dataset(own_files, tmp_path / "there")
    assert not (tmp_path / "features").exists()


def test_features_with_nan_are_refused_by_id(tmp_path, own_files):
    source, _ = encoded(20)
    source.global_feature[4, 2] = np.nan
    write_features(own_files[TEXT], source, [f"id-{place}" for place in range(20)])
    with pytest.raises(AdaptiveEmbedError, match="global_feature of item 'id-4' holds NaN"):
        import_dataset(own_files, tmp_path / "features")


# opening


def test_a_folder_that_is_no_dataset_is_told_how_to_become_one(tmp_path):
    with pytest.raises(FeatureStoreError, match="make them by: adaptiveembed encode"):
        open_dataset(tmp_path)


DAMAGES = {
    "version": (lambda facts: facts.update(version=7), "not of this version"),
    "no sides": (lambda facts: facts.pop("sides"), "damaged"),
    "one side": (lambda facts: facts["sides"].pop(), "damaged"),
    "modality": (lambda facts: facts["sides"][0].update(modality="smell"), "damaged"),
    "no encoder": (lambda facts: facts["sides"][0].pop("encoder"), "damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_description_is_refused(dataset, tmp_path, damage):
    change, message = DAMAGES[damage]
    folder = shutil.copytree(dataset.folder, tmp_path / "features")
    facts = json.loads((folder / FACTS).read_text())
    change(facts)
    (folder / FACTS).write_text(json.dumps(facts))
    with pytest.raises(FeatureStoreError, match=message):
        open_dataset(folder)


def test_a_description_that_is_no_json_is_refused_also_when_it_is_continued(
    corpus, dataset, tmp_path
):
    folder = shutil.copytree(dataset.folder, tmp_path / "features")
    (folder / FACTS).write_text("{")
    for use in (open_dataset, lambda given: encode(corpus, given)):
        with pytest.raises(FeatureStoreError, match="damaged"):
            use(folder)


def test_a_dataset_can_be_moved(dataset, tmp_path):
    moved = shutil.copytree(dataset.folder, tmp_path / "elsewhere")
    found = open_dataset(moved)
    assert found.pairs.ids == dataset.pairs.ids
    assert all(pair.media.is_file() for pair in found.manifest)


# which encoders


def test_features_of_other_encoders_or_modalities_are_refused(dataset):
    require_encoders(dataset, dataset.encoders)
    other = {TEXT: EncoderFacts("mine", "mine-2"), IMAGE: dataset.encoders[IMAGE]}
    with pytest.raises(EncoderError, match="fingerprint words-1, and needed is mine-2"):
        require_encoders(dataset, other)
    with pytest.raises(SettingError, match="is of text and image, and needed is text and video"):
        require_encoders(dataset, {TEXT: dataset.encoders[TEXT], Modality.VIDEO: other[TEXT]})
    unknown = dict.fromkeys((TEXT, IMAGE), EncoderFacts(FEATURES, FEATURES))
    require_encoders(dataset, unknown)


def test_datasets_of_different_encoders_are_not_trained_together(dataset, own_files, tmp_path):
    assert common_encoders([dataset, dataset]) == dataset.encoders
    other = import_dataset(own_files, tmp_path / "features")
    with pytest.raises(EncoderError, match="needed is words-1"):
        common_encoders([dataset, other])


def test_equal_fingerprints_in_files_make_them_of_one_encoder(tmp_path):
    source, target = encoded(12)
    datasets = []
    for part in (range(6), range(6, 12)):
        ids = [f"id-{row}" for row in part]
        made = {TEXT: (source, "mine-text"), IMAGE: (target, "mine-image")}
        paths = {
            modality: write_features(
                tmp_path / f"{modality}-{part[0]}.npz",
                features.read(part),
                ids,
                fingerprint=np.array(fingerprint),
            )
            for modality, (features, fingerprint) in made.items()
        }
        datasets.append(import_dataset(paths, tmp_path / f"features-{part[0]}"))
    assert common_encoders(datasets)[TEXT].fingerprint == "mine-text"
    assert datasets[0].pairs.source.width == WIDTH


def test_the_columns_of_a_manifest_go_with_it(tmp_path):
    manifest = write_corpus(tmp_path / "own", 4)
    rows = list(csv.reader(manifest.read_text().splitlines()))
    told = [[*row, "painter" if place == 0 else f"p{place}"] for place, row in enumerate(rows)]
    with manifest.open("w", newline="") as file:
        csv.writer(file).writerows(told)
    encode(manifest, tmp_path / "features")
    found = open_dataset(tmp_path / "features").manifest
    assert [pair.metadata["painter"] for pair in found] == ["p1", "p2", "p3", "p4"]
