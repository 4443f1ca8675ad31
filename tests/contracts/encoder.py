"""What every encoder promises; call these checks from the tests of an implementation.

``batch`` holds at least three items that differ, of different lengths where the modality has any.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

import pytest
import torch

from adaptiveembed.data.media import Media
from adaptiveembed.encoders.protocol import Encoder
from adaptiveembed.errors import EmptyBatchError, EncoderError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia

ROUNDING = {"rtol": 0, "atol": 1e-5}
"""How far features may be from those of the same item in another batch, where they are near 1."""


def check_says_what_it_is(encoder: Encoder, batch: Sequence[Media]) -> None:
    """All that the protocol names is there, and of the right kind."""
    assert isinstance(encoder, Encoder)
    assert all(isinstance(text, str) and text for text in (encoder.name, encoder.space))
    assert isinstance(encoder.fingerprint, str)
    assert encoder.fingerprint
    assert {item.modality for item in batch} <= set(encoder.modalities) <= set(Modality)
    widths = list(encoder.matryoshka_widths)
    assert widths == sorted(set(widths))
    assert all(0 < width <= encoder.width for width in widths)


def check_gives_what_it_promises(encoder: Encoder, batch: Sequence[Media]) -> None:
    """One feature of the right width for each item, not zero, and at least one state."""
    encoded = encoder.encode(batch)
    assert isinstance(encoded, EncodedMedia)
    assert len(encoded) == len(batch)
    assert encoded.width == encoder.width
    assert encoded.global_feature.any(dim=1).all()


def check_keeps_padding_at_zero(encoder: Encoder, batch: Sequence[Media]) -> None:
    """What the mask leaves out is zero, so that no two stores of it differ."""
    encoded = encoder.encode(batch)
    assert not encoded.hidden_states[~encoded.mask].any()


def check_encodes_item_by_item(encoder: Encoder, batch: Sequence[Media]) -> None:
    """An item has in a batch the states that it has alone, whatever it is padded to."""
    together = encoder.encode(batch)
    for place, item in enumerate(batch):
        _assert_same_item(encoder.encode([item]), 0, together, place)


def check_order_changes_nothing(encoder: Encoder, batch: Sequence[Media]) -> None:
    """An item gets the same wherever it stands in the batch."""
    forwards, backwards = encoder.encode(batch), encoder.encode(batch[::-1])
    for place in range(len(batch)):
        _assert_same_item(forwards, place, backwards, len(batch) - 1 - place)


def check_is_repeatable(encoder: Encoder, batch: Sequence[Media]) -> None:
    """Asked twice, it answers the same; equal items have equal features, and others have others."""
    encoded = encoder.encode([*batch, batch[0]])
    _assert_same_item(encoded, 0, encoded, len(batch))
    _assert_same_item(encoded, 0, encoder.encode([*batch, batch[0]]), 0)
    assert not torch.allclose(encoded.global_feature[0], encoded.global_feature[1])


def check_refuses_no_items(encoder: Encoder, _batch: Sequence[Media]) -> None:
    """An empty batch is refused."""
    with pytest.raises(EmptyBatchError, match="at least one"):
        encoder.encode([])


CHECKS = (
    check_says_what_it_is,
    check_gives_what_it_promises,
    check_keeps_padding_at_zero,
    check_encodes_item_by_item,
    check_order_changes_nothing,
    check_is_repeatable,
    check_refuses_no_items,
)
"""All checks of an encoder and a batch."""


def check_refuses_other_modalities(encoder: Encoder, batch: Sequence[Media], other: Media) -> None:
    """An item that it does not encode is refused, with its place and both modalities."""
    with pytest.raises(EncoderError) as caught:
        encoder.encode([*batch, other])
    message = str(caught.value)
    assert f"item {len(batch)}" in message
    assert all(modality in message for modality in (other.modality, *encoder.modalities))


def check_fingerprints_are_the_same_elsewhere(encoders: Mapping[str, Encoder]) -> None:
    """What an expression makes has the same fingerprint in a process of its own."""
    program = (
        "import importlib, json, sys\n"
        "from adaptiveembed.encoders.user import load_encoder\n"
        "from adaptiveembed.structure.direction import Modality\n"
        "names = json.load(sys.stdin)\n"
        "found = [load_encoder(name, Modality(modality)) for name, modality in names]\n"
        "json.dump([encoder.fingerprint for encoder in found], sys.stdout)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        input=json.dumps([name.rsplit(" ", 1) for name in encoders]),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == [encoder.fingerprint for encoder in encoders.values()]


def _assert_same_item(one: EncodedMedia, row: int, other: EncodedMedia, other_row: int) -> None:
    torch.testing.assert_close(one.global_feature[row], other.global_feature[other_row], **ROUNDING)
    states, other_states = (
        encoded.hidden_states[at][encoded.mask[at]]
        for encoded, at in ((one, row), (other, other_row))
    )
    torch.testing.assert_close(states, other_states, **ROUNDING)
