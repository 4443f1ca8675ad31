"""The seam between media and vectors: anything that encodes media."""

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from adaptiveembed.data.media import Media
from adaptiveembed.errors import EmptyBatchError, EncoderError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia


@runtime_checkable
class Encoder(Protocol):
    """A frozen backbone: it encodes every item by itself, and equal items equally.

    What it says of an item depends neither on the other items of the batch nor on their order.
    Global features are finite and not zero. They may have any length: whoever needs a direction
    divides by it. ``tests/contracts/encoder.py`` holds each implementation to this.
    """

    @property
    def name(self) -> str:
        """What people call it, in reports and in errors."""
        ...

    @property
    def fingerprint(self) -> str:
        """A text that changes with whatever changes the features, the same in every process."""
        ...

    @property
    def modalities(self) -> Collection[Modality]:
        """What it encodes."""
        ...

    @property
    def width(self) -> int:
        """Numbers of a global feature, and of a hidden state."""
        ...

    @property
    def space(self) -> str:
        """Where the global features of all its modalities live.

        A cosine says something between features of spaces with equal names.
        """
        ...

    @property
    def matryoshka_widths(self) -> tuple[int, ...]:
        """The widths to which a global feature may be cut, smallest first; often none."""
        ...

    def encode(self, batch: Sequence[Media]) -> EncodedMedia:
        """Global features and hidden states of at least one item, in the order of the batch."""
        ...


def checked_batch(encoder: Encoder, batch: Sequence[Media]) -> Sequence[Media]:
    """The batch, if it holds at least one item and only what the encoder encodes."""
    if len(batch) == 0:
        raise EmptyBatchError(f"{encoder.name} was given no item; give at least one")
    for place, item in enumerate(batch):
        modality = getattr(item, "modality", None)
        if modality not in encoder.modalities:
            served = ", ".join(encoder.modalities)
            raise EncoderError(
                f"{encoder.name} encodes {served}, and item {place} is {modality or repr(item)}; "
                f"choose an encoder of that modality"
            )
    return batch
