"""A written corpus is a manifest with files that read back as they were made, and it resumes."""

import av
import numpy as np
import PIL.Image
import pytest
import soundfile

from adaptiveembed.data.pairs import read_manifest
from adaptiveembed.data.scenes import (
    QUERY,
    TRAIN,
    ScenesSettings,
    scene_id,
    scene_items,
    scene_media,
    scenes,
    write_scenes,
)
from adaptiveembed.data.scenes.corpus import media_path
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.direction import Modality

MEDIA = (Modality.IMAGE, Modality.VIDEO, Modality.AUDIO)
SMALL = ScenesSettings(image_size=32, frame_size=32, frames=3, seconds=1.0)


def read_back(path, modality):
    match modality:
        case Modality.IMAGE:
            with PIL.Image.open(path) as picture:
                return np.asarray(picture)
        case Modality.VIDEO:
            with av.open(path) as container:
                return np.stack([f.to_ndarray(format="rgb24") for f in container.decode(video=0)])
        case Modality.AUDIO:
            return soundfile.read(path, dtype="float32")[0]


def content(media):
    return getattr(
        media, {"image": "pixels", "video": "frames", "audio": "samples"}[media.modality]
    )


@pytest.mark.parametrize("modality", MEDIA)
def test_files_and_texts_are_the_items_in_memory(tmp_path, modality):
    manifest = read_manifest(write_scenes(tmp_path, 6, modality, seed=3, settings=SMALL))
    items = list(scene_items(range(6), modality, seed=3, settings=SMALL))
    assert manifest.ids == tuple(item.id for item in items)
    assert manifest.texts == tuple(item.text.text for item in items)
    for pair, item in zip(manifest, items, strict=True):
        np.testing.assert_array_equal(read_back(pair.media, modality), content(item.media))


def test_the_rate_of_media_is_that_of_the_settings(tmp_path):
    settings = ScenesSettings(
        frame_size=32, frames=3, frames_per_second=2.5, seconds=1.0, rate=5000
    )
    for modality in (Modality.VIDEO, Modality.AUDIO):
        write_scenes(tmp_path / modality, 1, modality, settings=settings)
    with av.open(tmp_path / "video" / media_path(0, Modality.VIDEO)) as container:
        assert container.streams.video[0].average_rate == 2.5
    assert soundfile.info(tmp_path / "audio" / media_path(0, Modality.AUDIO)).samplerate == 5000


def test_the_last_items_are_the_query_split_and_rows_say_their_kind(tmp_path):
    manifest = read_manifest(write_scenes(tmp_path, 12, Modality.IMAGE, settings=SMALL))
    assert [pair.split for pair in manifest] == [TRAIN] * 10 + [QUERY] * 2
    for pair, one in zip(manifest, scenes(12), strict=True):
        assert pair.metadata["kind"] == one.kind
        assert bool(pair.metadata["crowd"]) == (one.crowd is not None)


def test_items_can_be_taken_from_anywhere():
    late = next(scene_items([7], Modality.IMAGE, settings=SMALL))
    listed = list(scene_items(range(8), Modality.IMAGE, settings=SMALL))[7]
    assert (late.id, late.text) == (listed.id, listed.text) == (scene_id(7), late.text)
    np.testing.assert_array_equal(late.media.pixels, listed.media.pixels)


class Stop(Exception):  # noqa: N818 - an interruption, no error
    """What an interrupted run meets."""


def stop_after(number):
    def progress(done, total, facts=None):
        if done == number:
            raise Stop

    return progress


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    with pytest.raises(Stop):
        write_scenes(tmp_path / "a", 9, Modality.IMAGE, settings=SMALL, progress=stop_after(4))
    assert not (tmp_path / "a" / "manifest.jsonl").exists()
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*.png")}
    assert len(made) == 4
    manifest = write_scenes(tmp_path / "a", 9, Modality.IMAGE, settings=SMALL)
    assert {path: path.stat().st_mtime_ns for path in made} == made
    undisturbed = write_scenes(tmp_path / "b", 9, Modality.IMAGE, settings=SMALL)
    assert manifest.read_bytes() == undisturbed.read_bytes()
    for path in undisturbed.parent.rglob("*.png"):
        other = tmp_path / "a" / path.relative_to(undisturbed.parent)
        assert other.read_bytes() == path.read_bytes()


def test_half_a_file_is_never_taken_for_a_whole_one(tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise Stop

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", broken)
        with pytest.raises(Stop):
            write_scenes(tmp_path, 2, Modality.IMAGE, settings=SMALL)
    manifest = read_manifest(write_scenes(tmp_path, 2, Modality.IMAGE, settings=SMALL))
    assert all(read_back(pair.media, Modality.IMAGE).shape == (32, 32, 3) for pair in manifest)
    assert not list(tmp_path.rglob(".*partial*"))


def test_a_corpus_can_be_made_larger(tmp_path):
    write_scenes(tmp_path, 2, Modality.IMAGE, settings=SMALL)
    manifest = read_manifest(write_scenes(tmp_path, 5, Modality.IMAGE, settings=SMALL))
    assert len(manifest) == 5


def test_progress_is_told_item_by_item(tmp_path):
    told = []
    write_scenes(
        tmp_path, 3, Modality.AUDIO, settings=SMALL, progress=lambda *done: told.append(done)
    )
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 4}, "seed = 3, and seed = 4 was asked for"),
        ({"modality": Modality.AUDIO}, "modality = image, and modality = audio"),
        ({"settings": ScenesSettings()}, "image_size = 32, and image_size = 96"),
    ],
)
def test_scenes_of_other_settings_are_not_mixed_into_a_folder(tmp_path, changes, said):
    asked = {"modality": Modality.IMAGE, "seed": 3, "settings": SMALL}
    write_scenes(tmp_path, 1, **asked)
    with pytest.raises(SettingError, match=said):
        write_scenes(tmp_path, 1, **asked | changes)


@pytest.mark.parametrize("record", ["{", "[]"])
def test_a_record_that_cannot_be_read_is_named(tmp_path, record):
    (tmp_path / "scenes.json").write_text(record)
    with pytest.raises(SettingError, match=r"scenes\.json .*; remove its folder"):
        write_scenes(tmp_path, 1, Modality.IMAGE, settings=SMALL)


@pytest.mark.parametrize("num", [0, 1_000_001])
def test_too_few_or_too_many_scenes_are_refused(tmp_path, num):
    with pytest.raises(SettingError, match=f"{num} scenes were asked for"):
        write_scenes(tmp_path, num, Modality.IMAGE)


def test_scenes_as_texts_are_refused_with_the_way_to_get_them(tmp_path):
    one = next(scenes(1))
    for ask in (
        lambda: scene_media(one, Modality.TEXT),
        lambda: next(scene_items([0], Modality.TEXT)),
        lambda: write_scenes(tmp_path, 1, Modality.TEXT),
    ):
        with pytest.raises(SettingError, match="asked for as text; choose image, video, audio"):
            ask()
    assert not list(tmp_path.iterdir())
