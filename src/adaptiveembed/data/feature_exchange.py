"""Features from other programs and for them, as ``.npz`` or safetensors.

Such a file holds the arrays ``ids`` [items], ``global_feature`` [items, width] and, if wanted,
``hidden_states`` [items, states, width] with ``mask`` [items, states], true where a state is real.
Safetensors has no texts, so ids stand in its metadata: under the key ``ids``, a list in JSON. A
``fingerprint`` may stand beside them, to say which encoder made the features.

Files are read and written part by part, so they may be larger than memory.
"""

import difflib
import hashlib
import shutil
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from adaptiveembed.data import feature_files
from adaptiveembed.data.feature_files import FINGERPRINT, IDS, FeatureFile, NewArray, StoredArray
from adaptiveembed.data.feature_index import NUMBERS, StoredStates
from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.data.new_file import new_file
from adaptiveembed.errors import AdaptiveEmbedError, FeatureStoreError, NotFiniteError
from adaptiveembed.shapes import ItemArray
from adaptiveembed.structure.encoded import EncodedMedia
from adaptiveembed.structure.ids import distinct_ids
from adaptiveembed.structure.progress import Progress, silent

PART_BYTES = 1 << 26
"""Bytes of hidden states that are in memory at a time."""

ARRAYS = {"global_feature": 2, "hidden_states": 3, "mask": 2}
"""The axes of each array."""


def import_features(
    file: str | Path,
    folder: str | Path,
    fingerprint: str | None = None,
    progress: Progress = silent,
) -> FeatureStore:
    """A new store with the features of a file, there whole or not at all.

    Files of one encoder should be given one ``fingerprint``. Without it, and without one in the
    file, it is made from the content of the file.
    """
    file, folder = Path(file), Path(folder)
    if folder.exists():
        raise FeatureStoreError(f"{folder} exists; remove it or choose another folder")
    with feature_files.opened(file) as content:
        ids = _checked_ids(file, content)
        _require_arrays(file, content, len(ids))
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            made_by = fingerprint or content.fingerprint or _digest(file)
            _import(content, ids, partial, made_by, progress)
            partial.chmod(0o755)
            partial.rename(folder)
        except NotFiniteError as error:
            shutil.rmtree(partial, ignore_errors=True)
            raise NotFiniteError(f"{file}: {error}") from error
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return FeatureStore.open(folder)


def stated_fingerprint(file: str | Path) -> str | None:
    """Which encoder a file of features says that it is of, if it says so."""
    with feature_files.opened(Path(file)) as content:
        return content.fingerprint


@runtime_checkable
class StoredItems(Protocol):
    """What can be exported: a store, or several that are read as one."""

    @property
    def folder(self) -> Path: ...
    @property
    def ids(self) -> tuple[str, ...]: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def states(self) -> StoredStates: ...
    @property
    def states_per_item(self) -> ItemArray: ...
    def read(self, places: Sequence[int] | np.ndarray) -> EncodedMedia: ...


def export_features(store: StoredItems, file: str | Path, progress: Progress = silent) -> None:
    """Write all items of a store to a new file, which appears whole or not at all."""
    file = Path(file)
    if file.exists():
        raise FeatureStoreError(f"{file} exists; remove it or choose another name")
    if not store.ids:
        raise FeatureStoreError(f"{store.folder} holds no items; encode some first")
    content = FeatureFile(store.ids, store.fingerprint, {})
    with new_file(file) as opened:
        feature_files.write(file, opened, content, _exported(store, progress))


def _import(
    content: FeatureFile,
    ids: Sequence[str],
    folder: Path,
    fingerprint: str,
    progress: Progress,
) -> None:
    done, width = 0, content.arrays["global_feature"].shape[1]
    states = StoredStates.ALL if "hidden_states" in content.arrays else StoredStates.NONE
    with (
        FeatureWriter(folder, fingerprint, width, states) as writer,
        closing(_encoded_parts(content, ids)) as parts,
    ):
        for encoded in parts:
            chosen = ids[done : done + len(encoded)]
            writer.append(chosen, _keys(encoded), encoded)
            done += len(encoded)
            progress(done, len(ids))


def _encoded_parts(content: FeatureFile, ids: Sequence[str]) -> Generator[EncodedMedia, None, None]:
    arrays = content.arrays
    shape = arrays.get("hidden_states", arrays["global_feature"]).shape
    rows, done = _rows_of_a_part(shape[1:]), 0
    with ExitStack() as opened:
        parts = [
            opened.enter_context(closing(arrays[name].parts(rows)))
            for name in ARRAYS
            if name in arrays
        ]
        for features, *rest in zip(*parts, strict=True):
            chosen = ids[done : done + len(features)]
            yield _encoded(chosen, features.float(), rest)
            done += len(features)


def _encoded(ids: Sequence[str], features: Tensor, rest: Sequence[Tensor]) -> EncodedMedia:
    """One part; where there is no mask, every state is real."""
    states = rest[0].float() if rest else features.unsqueeze(1)
    mask = rest[1] if rest[1:] else torch.ones(states.shape[:2], dtype=torch.bool)
    states = torch.where(mask.unsqueeze(-1), states, 0.0)
    empty = (~mask.any(dim=1)).nonzero()
    if len(empty):
        raise FeatureStoreError(
            f"item {ids[int(empty[0])]!r} has no real state; give at least one, or leave it out"
        )
    for name, values in (("global_feature", features), ("hidden_states", states)):
        wrong = (~values.isfinite().flatten(1).all(dim=1)).nonzero()
        if len(wrong):
            raise NotFiniteError(
                f"{name} of item {ids[int(wrong[0])]!r} holds NaN or infinity; look for the cause "
                f"in what made it, or leave the item out"
            )
    return EncodedMedia(features, states, mask)


def _keys(encoded: EncodedMedia) -> list[str]:
    """A content key for each item, from its features."""
    features = encoded.global_feature.numpy()
    states = encoded.hidden_states.numpy()
    mask = encoded.mask.numpy()
    return [
        hashlib.blake2b(one.tobytes() + some[real].tobytes(), digest_size=16).hexdigest()
        for one, some, real in zip(features, states, mask, strict=True)
    ]


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, lambda: hashlib.blake2b(digest_size=16))
    return f"features {digest.hexdigest()}"


def _exported(store: StoredItems, progress: Progress) -> dict[str, NewArray]:
    count, longest = len(store.ids), int(store.states_per_item.max())
    rows = _rows_of_a_part((longest, store.width))
    starts = range(0, count, rows)

    def features() -> Iterator[np.ndarray]:
        for start in starts:
            part = store.read(range(start, min(start + rows, count)))
            yield part.global_feature.half().numpy()

    def states() -> Iterator[np.ndarray]:
        for start in starts:
            part = store.read(range(start, min(start + rows, count)))
            padded = torch.zeros(len(part), longest, store.width, dtype=torch.float16)
            padded[:, : part.mask.shape[1]] = part.hidden_states
            yield padded.numpy()
            progress(start + len(part), count)

    def mask() -> Iterator[np.ndarray]:
        yield np.arange(longest) < store.states_per_item[:, None]

    arrays = {"global_feature": NewArray(NUMBERS, (count, store.width), features)}
    if store.states is StoredStates.ALL:
        arrays["hidden_states"] = NewArray(NUMBERS, (count, longest, store.width), states)
        arrays["mask"] = NewArray(np.dtype(bool), (count, longest), mask)
    return arrays


def _rows_of_a_part(shape: tuple[int, ...]) -> int:
    return max(1, PART_BYTES // (int(np.prod(shape)) * NUMBERS.itemsize))


def _checked_ids(file: Path, content: FeatureFile) -> tuple[str, ...]:
    if content.ids is None:
        raise _missing(file, IDS, content)
    try:
        ids = distinct_ids(content.ids)
    except AdaptiveEmbedError as error:
        raise FeatureStoreError(f"{file}: {error}") from error
    if not ids:
        raise FeatureStoreError(f"{file} holds no items; give at least one")
    return ids


def _require_arrays(file: Path, content: FeatureFile, count: int) -> None:
    arrays = content.arrays
    if "global_feature" not in arrays or ("mask" in arrays and "hidden_states" not in arrays):
        absent = "hidden_states" if "global_feature" in arrays else "global_feature"
        raise _missing(file, absent, content)
    for name in ARRAYS:
        if name not in arrays and _similar(name, content):
            raise _missing(file, name, content)
        if name in arrays:
            _require_kind(file, name, arrays[name])
    width = arrays["global_feature"].shape[1]
    states = arrays["hidden_states"].shape[1] if "hidden_states" in arrays else 1
    needed = dict(
        zip(ARRAYS, ((count, width), (count, states, width), (count, states)), strict=True)
    )
    for name in ARRAYS:
        if name in arrays and arrays[name].shape != needed[name]:
            raise FeatureStoreError(
                f"{file}: {name} has shape {arrays[name].shape} and needed is {needed[name]}, for "
                f"{count} ids; give one row of each array per id"
            )


def _require_kind(file: Path, name: str, array: StoredArray) -> None:
    if len(array.shape) != ARRAYS[name] or 0 in array.shape[1:]:
        axes = {2: "[items, width]", 3: "[items, states, width]"}[ARRAYS[name]]
        wanted = "[items, states]" if name == "mask" else axes
        raise FeatureStoreError(f"{file}: {name} has shape {array.shape} and needed is {wanted}")
    wanted = "bool" if name == "mask" else "float"
    if wanted not in array.dtype:
        raise FeatureStoreError(
            f"{file}: {name} holds {array.dtype} and needed is {wanted}; use .astype({wanted})"
        )


def _similar(name: str, content: FeatureFile) -> list[str]:
    """What of the file may have been meant to be called ``name``."""
    others = [other for other in content.arrays if other not in ARRAYS]
    return difflib.get_close_matches(name, others, n=1)


def _missing(file: Path, name: str, content: FeatureFile) -> FeatureStoreError:
    similar = _similar(name, content)
    meant = f"; did you mean {similar[0]}? rename it to {name}" if similar else ""
    where = "metadata" if name == IDS and file.suffix.lower() == ".safetensors" else "arrays"
    names = [IDS] * (content.ids is not None) + [FINGERPRINT] * (content.fingerprint is not None)
    held = ", ".join([*names, *content.arrays]) or "nothing"
    return FeatureStoreError(f"{file} has no {name} among its {where}{meant}; it holds {held}")
