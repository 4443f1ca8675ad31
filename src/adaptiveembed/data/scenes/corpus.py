"""Scenes as pairs of a text and a medium: in memory, or as a folder with a manifest.

A stand-in for real media, so that everything can be tried without downloading anything. It proves
nothing about photographs, films or recordings: what there is to gain from adaptive capacity was
decided here, by the generator. Its reasons stand in ``docs/decisions/scenes.md``.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from adaptiveembed.data.media import Media, Text
from adaptiveembed.data.scenes.audio import audio
from adaptiveembed.data.scenes.files import SUFFIXES, whole_file, write_media
from adaptiveembed.data.scenes.image import image
from adaptiveembed.data.scenes.latent import DEFAULTS, Scene, scene
from adaptiveembed.data.scenes.narrative import narrative
from adaptiveembed.data.scenes.settings import LARGEST_CORPUS, ScenesSettings, check_seed
from adaptiveembed.data.scenes.video import video
from adaptiveembed.errors import SettingError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.progress import Progress, silent

VERSION = 1
"""Version of the generator: of another version, the same number is another scene."""

MANIFEST, RECORD, MEDIA_FOLDER = "manifest.jsonl", "scenes.json", "media"
TRAIN, QUERY = "train", "query"
"""The splits of a written corpus; the query split is its last items."""

FILES_IN_A_FOLDER = 1000


class SceneItem(NamedTuple):
    """One pair."""

    id: str
    text: Text
    media: Media


_RENDERERS: dict[Modality, Callable[[Scene, ScenesSettings], Media]] = {
    Modality.IMAGE: image,
    Modality.VIDEO: video,
    Modality.AUDIO: audio,
}


def scene_media(scene: Scene, modality: Modality, settings: ScenesSettings = DEFAULTS) -> Media:
    """The scene as a picture, a video or a sound."""
    return _RENDERERS[_checked_medium(modality)](scene, settings)


def scene_text(scene: Scene, medium: Modality, settings: ScenesSettings = DEFAULTS) -> Text:
    """The scene as somebody tells it who knows it from this medium."""
    return Text(narrative(scene, _checked_medium(medium), settings))


def scene_id(number: int) -> str:
    """The id of an item."""
    return f"scene-{number:07d}"


def scene_items(
    numbers: Iterable[int],
    modality: Modality,
    seed: int = 0,
    settings: ScenesSettings = DEFAULTS,
) -> Iterator[SceneItem]:
    """The pairs with these numbers, one after the other; nothing is written or kept."""
    _checked_medium(modality)
    for number in numbers:
        one = scene(number, seed, settings)
        media = scene_media(one, modality, settings)
        yield SceneItem(scene_id(number), scene_text(one, modality, settings), media)


def num_queries(num: int, settings: ScenesSettings = DEFAULTS) -> int:
    """How many of ``num`` written pairs are the query split."""
    return round(num * settings.query_share)


def write_scenes(  # noqa: PLR0913 - what to write, how, where to, and who listens
    folder: str | Path,
    num: int,
    modality: Modality,
    seed: int = 0,
    *,
    settings: ScenesSettings = DEFAULTS,
    progress: Progress = silent,
) -> Path:
    """Write the first ``num`` pairs of a seed below a folder; the path of their manifest.

    Files that are there are kept, so that an interrupted run goes on where it stopped, and a corpus
    can be made larger. The manifest appears last.
    """
    _check_order(num, seed)
    _checked_medium(modality)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _record_origin(folder, modality, seed, settings)

    first_query = num - num_queries(num, settings)
    with whole_file(folder / MANIFEST) as manifest:
        for number in range(num):
            one = scene(number, seed, settings)
            _write_medium(one, modality, folder, settings)
            split = QUERY if number >= first_query else TRAIN
            manifest.write(_manifest_line(one, modality, split, settings))
            progress(number + 1, num)
    return folder / MANIFEST


def _write_medium(one: Scene, modality: Modality, folder: Path, settings: ScenesSettings) -> None:
    path = folder / media_path(one.number, modality)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_media(scene_media(one, modality, settings), path)


def media_path(number: int, modality: Modality) -> Path:
    """Where the medium of an item stands below the folder of its corpus."""
    within = f"{number // FILES_IN_A_FOLDER:04d}"
    return Path(MEDIA_FOLDER, within, scene_id(number) + SUFFIXES[modality])


def _manifest_line(one: Scene, medium: Modality, split: str, settings: ScenesSettings) -> str:
    row = {
        "id": scene_id(one.number),
        "text": scene_text(one, medium, settings).text,
        "media": media_path(one.number, medium).as_posix(),
        "split": split,
        "kind": one.kind.value,
        # an item that stands alone has no crowd, and every row has the same columns
        "crowd": "" if one.crowd is None else f"crowd-{one.crowd:05d}",
    }
    return json.dumps(row, ensure_ascii=False) + "\n"


def _record_origin(folder: Path, modality: Modality, seed: int, settings: ScenesSettings) -> None:
    """Write down what the folder's scenes are made with, or refuse to mix others with them."""
    wanted = {"version": VERSION, "modality": modality.value, "seed": seed, **asdict(settings)}
    record = folder / RECORD
    if not record.exists():
        _require_empty(folder)
        with whole_file(record) as file:
            file.write(json.dumps(wanted, indent=2) + "\n")
        return
    found = _read_record(record)
    other = [name for name in wanted if found.get(name) != wanted[name]]
    if other:
        name = other[0]
        raise SettingError(
            f"{folder} holds scenes made with {name} = {found.get(name)}, and {name} = "
            f"{wanted[name]} was asked for; choose another folder, or remove this one"
        )


def _require_empty(folder: Path) -> None:
    """Refuse a folder that holds anything but what an interrupted start may have left."""
    held = sorted(each.name for each in folder.iterdir() if not each.name.startswith("."))
    if held:
        raise SettingError(
            f"{folder} holds something other than scenes ({held[0]}); choose a new or an empty "
            f"folder"
        )


def _read_record(record: Path) -> dict[str, object]:
    try:
        found = json.loads(record.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SettingError(f"{record} is not JSON ({error}); remove its folder") from error
    if not isinstance(found, dict):
        raise SettingError(f"{record} holds {found!r}, no table; remove its folder")
    return found


def _checked_medium(modality: Modality) -> Modality:
    if modality not in _RENDERERS:
        raise SettingError(
            f"scenes were asked for as {modality}; choose {', '.join(_RENDERERS)}, and take the "
            f"text that belongs to it from scene_text or the manifest"
        )
    return modality


def _check_order(num: int, seed: int) -> None:
    check_seed(seed)
    if not 1 <= num <= LARGEST_CORPUS:
        raise SettingError(f"{num} scenes were asked for; give a number from 1 to {LARGEST_CORPUS}")
