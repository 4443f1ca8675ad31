"""What every export of candidate sets says of itself, and what is made of one that is read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from adaptiveembed.errors import GalleryFormatError, LayoutMismatchError
from adaptiveembed.pipeline.model import AdaptiveEmbed
from adaptiveembed.retrieval.gallery import Gallery
from adaptiveembed.structure.groups import GroupLayout

FORMAT, VERSION = "adaptiveembed.candidates", "1"
DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class Origin:
    """What made vectors. Only vectors of one origin can be compared."""

    layout: GroupLayout
    """The groups of their positions."""
    fingerprint: str
    """Something that changes whenever the vectors do."""

    @classmethod
    def of(cls, model: AdaptiveEmbed) -> Origin:
        """The origin of all that this model embeds."""
        return cls(model.layout, model_fingerprint(model))


def model_fingerprint(model: AdaptiveEmbed) -> str:
    """A text that changes with the embedder's weights and with the encoders before it."""
    digest = hashlib.blake2b(digest_size=16)
    for modality, encoder in sorted(model.facts.encoders.items()):
        digest.update(repr((str(modality), encoder.name, encoder.fingerprint)).encode())
    for name, tensor in sorted(model.embedder.state_dict().items()):
        values = tensor.detach().cpu().contiguous().numpy()
        digest.update(repr((name, values.shape, values.dtype.name)).encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Stated:
    """What an export says of itself."""

    origin: Origin
    items: int
    """How many were written."""
    dim: int
    dtype: str
    """The number type of the vectors, by numpy's name."""

    @classmethod
    def by(cls, gallery: Gallery, fingerprint: str) -> Stated:
        """What an export of this gallery says."""
        origin = Origin(gallery.layout, fingerprint)
        return cls(origin, len(gallery), gallery.dim, gallery.rows.dtype.name)

    @classmethod
    def read(cls, place: str, found: Mapping[str, str]) -> Stated:
        """What the export at a place says, if it is one."""
        if (found.get("format"), found.get("version")) != (FORMAT, VERSION):
            raise GalleryFormatError(
                f"{place} holds {found.get('format', 'something else')} of version "
                f"{found.get('version', 'unknown')}, needed are {FORMAT} of version {VERSION}; "
                f"export the gallery again"
            )
        try:
            origin = Origin(GroupLayout.parse(found["layout"]), found["fingerprint"])
            stated = cls(origin, int(found["items"]), int(found["dim"]), found["dtype"])
        except (KeyError, ValueError) as error:
            raise GalleryFormatError(
                f"{place} is damaged ({error!r}); export the gallery again"
            ) from error
        if stated.dtype not in DTYPES:
            raise GalleryFormatError(f"{place} holds {stated.dtype}; known are {', '.join(DTYPES)}")
        return stated

    def metadata(self) -> dict[str, str]:
        """The same as texts, which every store keeps."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "layout": str(self.origin.layout),
            "fingerprint": self.origin.fingerprint,
            "items": str(self.items),
            "dim": str(self.dim),
            "dtype": self.dtype,
        }

    def require(self, expected: Origin, place: str) -> None:
        """Refuse vectors of another origin."""
        if self.origin.layout != expected.layout:
            raise LayoutMismatchError(
                f"the vectors of {place} have layout {self.origin.layout}, needed is "
                f"{expected.layout}; read them with the model that made them"
            )
        if self.origin.fingerprint != expected.fingerprint:
            raise GalleryFormatError(
                f"the vectors of {place} have fingerprint {self.origin.fingerprint!r}, needed is "
                f"{expected.fingerprint!r}; read them with the model that made them, or export "
                f"the gallery again"
            )

    def parts(self, numbers: int) -> Iterator[slice]:
        """All items, in parts whose vectors hold so many numbers at most; an item at least."""
        size = max(1, numbers // (self.origin.layout.num_candidates * self.dim))
        return (slice(start, start + size) for start in range(0, self.items, size))

    def empty_rows(self) -> np.ndarray:
        """Room for the vectors of all items [positions, items, dim]."""
        return np.empty((self.origin.layout.num_candidates, self.items, self.dim), self.dtype)

    def require_complete(self, found: int, place: str) -> None:
        """Refuse a place where something was added or lost."""
        if found != self.items:
            raise GalleryFormatError(
                f"{place} holds {found} items and says that {self.items} were written; export the "
                f"gallery again"
            )


def item_sets(gallery: Gallery, part: slice) -> np.ndarray:
    """The vectors of some items, item by item [items, positions, dim]."""
    return np.ascontiguousarray(gallery.rows[:, part].transpose(1, 0, 2))
