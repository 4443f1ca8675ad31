"""The retrieval bank (Sec. 3.2): the fixed items whose responses the policy reads as feedback.

It holds candidate sets of the other modality, all N positions (R12). Any candidate sets will do:
the paper finds the policy to be largely insensitive to their domain (App. C).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from adaptiveembed.errors import (
    AdaptiveEmbedError,
    ModelFormatError,
    SettingError,
    ShapeError,
    UnknownIdError,
)
from adaptiveembed.shapes import BankPlaces
from adaptiveembed.structure.candidates import CandidateSets
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.ids import checked_ids, distinct_ids

FORMAT, VERSION = "adaptiveembed.bank", 1
FACTS, VECTORS = "bank.json", "bank.safetensors"

NOWHERE = -1
"""The place of an id that the bank does not have."""


class BankSampling(StrEnum):
    """Which items a smaller bank keeps."""

    ALL = "all"
    """Every item, as in the paper."""
    RANDOM = "random"
    """A seeded random choice."""
    FARTHEST_POINT = "farthest-point"
    """Each next item is the one least like all that were chosen before it."""


class BankContent(StrEnum):
    """What the folder of a bank holds."""

    FULL = "full"
    """Ids and vectors."""
    FINGERPRINT = "fingerprint"
    """Ids and what the vectors must be; whoever opens it brings them."""


@dataclass(frozen=True, eq=False, repr=False)
class RetrievalBank:
    """Items of one modality, with an id each, that queries of the other are compared with."""

    ids: tuple[str, ...]
    candidates: CandidateSets

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", distinct_ids(self.ids))
        if len(self.ids) != len(self.candidates):
            raise ShapeError(
                f"a bank was given {len(self.ids)} ids and {len(self.candidates)} candidate sets; "
                f"give one id per item"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"RetrievalBank({self.candidates!r})"

    @property
    def layout(self) -> GroupLayout:
        return self.candidates.layout

    @cached_property
    def by_position(self) -> Tensor:
        """The vectors [positions, items, dim] in float32, as responses are computed from them."""
        return self.candidates.vectors.detach().transpose(0, 1).float().contiguous()

    @cached_property
    def fingerprint(self) -> str:
        """Equal for banks of equal ids, layout and vectors, whatever device they are on."""
        facts = json.dumps([self.ids, str(self.layout), str(self.candidates.vectors.dtype)])
        digest = hashlib.blake2b(facts.encode(), digest_size=16)
        raw = self.candidates.vectors.detach().cpu().contiguous()
        digest.update(raw.view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def places(self, ids: Sequence[str]) -> BankPlaces:
        """The place of each id in the bank, -1 where it has none: what feedback leaves out."""
        found = [self._places.get(each, NOWHERE) for each in checked_ids(ids)]
        return torch.tensor(found, dtype=torch.int64, device=self.candidates.vectors.device)

    def subsampled(
        self, size: int, method: BankSampling = BankSampling.RANDOM, seed: int = 0
    ) -> RetrievalBank:
        """A bank of ``size`` of these items in the same order; the whole bank if it has no more."""
        if size < 1:
            raise SettingError(f"a bank of {size} items was asked for; ask for at least one")
        if method is BankSampling.ALL or size >= len(self):
            return self
        generator = torch.Generator().manual_seed(seed)
        if method is BankSampling.RANDOM:
            chosen = torch.randperm(len(self), generator=generator)[:size]
        else:
            first = int(torch.randint(len(self), (), generator=generator))
            chosen = farthest_points(self.candidates.vectors, size, first)
        return self._take(chosen.sort().values.tolist())

    def to(self, device: torch.device | str) -> RetrievalBank:
        """The same bank on another device."""
        return RetrievalBank(
            self.ids, CandidateSets(self.candidates.vectors.to(device), self.layout)
        )

    def save(self, folder: str | Path, content: BankContent = BankContent.FULL) -> None:
        """Write the bank into a folder, which may hold other things."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if content is BankContent.FULL:
            vectors = self.candidates.vectors.detach().cpu().contiguous()
            save_file({"candidates": vectors}, folder / VECTORS)
        facts = {
            "format": FORMAT,
            "version": VERSION,
            "content": content,
            "layout": str(self.layout),
            "fingerprint": self.fingerprint,
            "ids": self.ids,
        }
        (folder / FACTS).write_text(json.dumps(facts) + "\n", encoding="utf-8")

    @classmethod
    def open(cls, folder: str | Path, source: RetrievalBank | None = None) -> RetrievalBank:
        """The bank that was saved in the folder, its vectors compared with its fingerprint.

        A bank saved by fingerprint takes its items from ``source``, which has at least their ids.
        """
        folder = Path(folder)
        facts = _read_facts(folder)
        if facts["content"] == BankContent.FULL:
            bank = cls(tuple(facts["ids"]), _read_vectors(folder, facts["layout"]))
        else:
            bank = _taken_from(source, facts["ids"], folder)
        if bank.fingerprint != facts["fingerprint"]:
            raise ModelFormatError(
                f"the bank of {folder} has fingerprint {facts['fingerprint']} and the vectors "
                f"found have {bank.fingerprint}; bring the vectors that the policy was trained with"
            )
        return bank

    def _take(self, places: Sequence[int]) -> RetrievalBank:
        return RetrievalBank(tuple(self.ids[place] for place in places), self.candidates[places])

    @cached_property
    def _places(self) -> dict[str, int]:
        return {each: place for place, each in enumerate(self.ids)}


def farthest_points(vectors: Tensor, size: int, first: int) -> Tensor:
    """Places of ``size`` items [items, positions, dim], each the one farthest from those before.

    Two items are as near as the mean cosine of their positions. Equally far ones go by place.
    """
    rows = vectors.detach().float().flatten(1)
    nearest = torch.full((len(rows),), -torch.inf, device=rows.device)
    chosen = [first]
    for _ in range(size - 1):
        nearest = torch.maximum(nearest, rows @ rows[chosen[-1]])
        nearest[chosen[-1]] = torch.inf
        chosen.append(int(nearest.argmin()))
    return torch.tensor(chosen)


def _taken_from(source: RetrievalBank | None, ids: Sequence[str], folder: Path) -> RetrievalBank:
    if source is None:
        raise ModelFormatError(
            f"{folder} holds the fingerprint of a bank of {len(ids)} items without their vectors; "
            f"give source=, a bank that has these items"
        )
    places = source.places(ids).tolist()
    if NOWHERE in places:
        raise UnknownIdError(
            f"the bank of {folder} has item {ids[places.index(NOWHERE)]!r} and source has not; "
            f"give a source that has every item of the bank"
        )
    return source._take(places)  # noqa: SLF001 - of its own class


def _read_facts(folder: Path) -> dict[str, Any]:
    path = folder / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFormatError(
            f"{path} cannot be read ({error}); give the folder of a saved bank"
        ) from error
    needed = {"format", "version", "content", "layout", "fingerprint", "ids"}
    if not isinstance(facts, dict) or not needed <= facts.keys() or facts["format"] != FORMAT:
        raise ModelFormatError(f"{path} does not describe a bank; give the folder of a saved bank")
    if facts["version"] != VERSION:
        raise ModelFormatError(
            f"{path} is of version {facts['version']} and this library reads version {VERSION}; "
            f"save the bank again, or install the library that made it"
        )
    return facts


def _read_vectors(folder: Path, layout: str) -> CandidateSets:
    path = folder / VECTORS
    try:
        return CandidateSets(load_file(path)["candidates"], GroupLayout.parse(layout))
    except (OSError, KeyError, SafetensorError, AdaptiveEmbedError) as error:
        raise ModelFormatError(f"{path} is damaged ({error}); save the bank again") from error
