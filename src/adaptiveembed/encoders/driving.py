"""Encoding many items into a store: read ahead, batched by length, resumable.

What is stored already is skipped, so that an interrupted run goes on where it stopped. An item that
cannot be read or encoded is noted and left out, unless the run is strict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple, Never, Protocol, runtime_checkable

from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.encoders.reading_ahead import Item, Load, LoadedItem, batches_ahead
from adaptiveembed.errors import (
    EncoderError,
    MediaError,
    NotFiniteError,
    NotNormalizedError,
    SettingError,
)
from adaptiveembed.structure.encoded import EncodedMedia
from adaptiveembed.structure.ids import distinct_ids
from adaptiveembed.structure.progress import Progress, silent

SHOWN_IDS = 3
"""Ids that an error names before it counts the others."""


@runtime_checkable
class FeatureSink(Protocol):
    """Where encoded items go; a ``FeatureWriter`` is one."""

    def holds(self, item_id: str, key: str) -> bool:
        """Whether this item, with this content, is stored already."""
        ...

    def append(self, ids: Sequence[str], keys: Sequence[str], encoded: EncodedMedia) -> object:
        """Store these items, all or none."""
        ...


class Failure(NamedTuple):
    """An item that was left out, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class EncodingSummary:
    """What became of the items: how many were encoded or stored before, and which failed."""

    encoded: int
    skipped: int
    failed: tuple[Failure, ...]

    def __str__(self) -> str:
        return f"{self.encoded} encoded, {self.skipped} stored before, {len(self.failed)} failed"


def encode_items(  # noqa: PLR0913 - three of them are how, and have defaults
    encoder: Encoder,
    items: Sequence[tuple[str, str, Load]],
    sink: FeatureSink,
    *,
    batch_size: int = 64,
    readers: int = 2,
    strict: bool = False,
    progress: Progress = silent,
) -> EncodingSummary:
    """Encode the items that the sink does not hold yet, and say what became of all of them.

    An item is an id, a key that changes with its content, and how to read it. Items reach the sink
    batch by batch, in an order that follows their lengths. An encoder that gives another number of
    items, or another width, than it should is refused at once; so is one that has encoded nothing
    and fails on a whole batch.
    """
    _require_positive("batch_size", batch_size)
    _require_positive("readers", readers)
    wanted = [Item(*item) for item in items]
    distinct_ids(item.id for item in wanted)
    missing = [item for item in wanted if not sink.holds(item.id, item.key)]
    run = _Run(encoder, sink, _Tally(progress, len(wanted), len(wanted) - len(missing)), strict)
    for batch in batches_ahead(missing, batch_size, readers, run.fail):
        run.encode(batch)
    return run.tally.summary()


class _Tally:
    """What has become of the items so far, told as it changes."""

    def __init__(self, progress: Progress, total: int, skipped: int) -> None:
        self._progress, self._total, self._skipped = progress, total, skipped
        self._start = monotonic()
        self._encoded = 0
        self._failed: list[Failure] = []
        self._tell()

    @property
    def has_features(self) -> bool:
        """Whether anything was ever encoded."""
        return self._encoded + self._skipped > 0

    def count_encoded(self, items: int) -> None:
        self._encoded += items
        self._tell()

    def count_failure(self, failure: Failure) -> None:
        self._failed.append(failure)
        self._tell()

    def summary(self) -> EncodingSummary:
        return EncodingSummary(self._encoded, self._skipped, tuple(self._failed))

    def _tell(self) -> None:
        done = self._encoded + len(self._failed)
        facts: dict[str, float | str] = {"failed": float(len(self._failed))}
        if done:
            speed = done / max(monotonic() - self._start, 1e-9)
            left = self._total - self._skipped - done
            facts |= {"items_per_second": speed, "seconds_left": left / speed}
        self._progress(self._skipped + done, self._total, facts)


@dataclass(frozen=True)
class _Run:
    """One encoder filling one sink."""

    encoder: Encoder
    sink: FeatureSink
    tally: _Tally
    strict: bool

    def encode(self, batch: Sequence[LoadedItem]) -> None:
        """Encode and store a batch; if that fails, each of its items by itself."""
        error = self._stored(batch)
        if error is None:
            self.tally.count_encoded(len(batch))
        elif len(batch) == 1:
            self.fail(batch[0].item, error)
        else:
            for one in batch:
                self.encode([one])
            if not self.tally.has_features:
                raise EncoderError(
                    f"nothing could be encoded so far, so the fault is not in single items: {error}"
                ) from error

    def fail(self, item: Item, error: MediaError | EncoderError) -> None:
        """Leave the item out, unless the run is strict."""
        if self.strict:
            raise type(error)(f"item {item.id!r}: {error}") from error
        self.tally.count_failure(Failure(item.id, str(error)))

    def _stored(self, batch: Sequence[LoadedItem]) -> EncoderError | None:
        """Encode and store the batch, or say why that cannot be."""
        ids = [one.item.id for one in batch]
        try:
            encoded = self.encoder.encode([one.media for one in batch])
        except Exception as error:  # noqa: BLE001 - an encoder may be anyone's, and fail in any way
            return _failure(self.encoder, ids, error)
        require_promised(self.encoder, encoded, ids)
        try:
            _require_directions(encoded)
            self.sink.append(ids, [one.item.key for one in batch], encoded)
        except (NotFiniteError, NotNormalizedError) as error:
            return _failure(self.encoder, ids, error)
        return None


def require_promised(encoder: Encoder, encoded: object, ids: Sequence[str]) -> None:
    """Refuse what is not one encoded item of the right width for each id."""
    if not isinstance(encoded, EncodedMedia):
        _break_promise(encoder, ids, f"gave {type(encoded).__name__}, needed is EncodedMedia")
    if len(encoded) != len(ids):
        _break_promise(encoder, ids, f"gave {len(encoded)} items for {len(ids)}")
    if encoded.width != encoder.width:
        _break_promise(
            encoder,
            ids,
            f"gave width {encoded.width}, and says of itself that it is {encoder.width}",
        )


def _require_directions(encoded: EncodedMedia) -> None:
    zero = ~encoded.global_feature.any(dim=1)
    if zero.any():
        raise NotNormalizedError(
            f"the global feature is zero at place {int(zero.nonzero()[0])} and has no direction"
        )


def _break_promise(encoder: Encoder, ids: Sequence[str], what: str) -> Never:
    raise EncoderError(f"{encoder.name} {what}, at {_shown(ids)}; correct the encoder")


def _failure(encoder: Encoder, ids: Sequence[str], error: Exception) -> EncoderError:
    failure = EncoderError(
        f"{encoder.name} cannot encode {_shown(ids)}: {type(error).__name__}: {error}"
    )
    failure.__cause__ = error
    return failure


def _shown(ids: Sequence[str]) -> str:
    """The first ids, and how many more there are."""
    more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
    return ", ".join(map(repr, ids[:SHOWN_IDS])) + more


def _require_positive(name: str, value: int) -> None:
    if value < 1:
        raise SettingError(f"{name} is {value}; give at least 1")
