"""BEATs equals a literal twin, and its spectrum equals Kaldi's steps written out."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from adaptiveembed.encoders.pretrained.beats import (
    BANDS,
    MAX_DISTANCE,
    Beats,
    BeatsSizes,
    beats_sizes,
    beats_tensors,
    distance_buckets,
    spectrum,
)
from adaptiveembed.encoders.pretrained.wave import part_of
from adaptiveembed.errors import EncoderError
from tests.encoders.pretrained.items import noise
from tests.encoders.pretrained.wave_checkpoint import BEATS, BUCKETS, GROUPS, KERNEL, wave_tensors


@pytest.fixture
def stored():
    tensors = part_of(wave_tensors(), "beats.")
    return {name: one for name, one in tensors.items() if not name.startswith("predictor.")}


@pytest.fixture
def model(stored):
    tensors = beats_tensors(stored)
    made = Beats(beats_sizes(tensors))
    made.load_state_dict(tensors)
    return made.eval()


def test_the_sizes_are_read_from_the_tensors(stored):
    expected = BeatsSizes(**BEATS, buckets=BUCKETS, kernel=KERNEL, groups=GROUPS)
    assert beats_sizes(beats_tensors(stored)) == expected


# A literal twin.


def linear(tensors, name, row):
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    return torch.stack([weight[out] @ row + bias[out] for out in range(len(bias))])


def normed(tensors, name, row):
    deviation = ((row - row.mean()) ** 2).mean().add(1e-5).sqrt()
    return (row - row.mean()) / deviation * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def bucket(distance):
    """The bucket of one distance: small ones exact, larger ones by their logarithm."""
    half, exact = BUCKETS // 2, BUCKETS // 4
    size = abs(distance)
    if size >= exact:
        growth = math.log(size / exact) / math.log(MAX_DISTANCE / exact)
        size = min(exact + int(growth * (half - exact)), half - 1)
    return size + (half if distance > 0 else 0)


def attention(tensors, name, rows):
    """Every head of every place, one after the other."""
    heads, width = BEATS["heads"], BEATS["width"]
    part = width // heads
    projected = {
        kind: [linear(tensors, f"{name}.{kind}_proj", row) for row in rows] for kind in "qkv"
    }
    table = tensors["encoder.layers.0.self_attn.relative_attention_bias.weight"]
    found = []
    for place in range(len(rows)):
        heard = []
        for head in range(heads):
            own = slice(head * part, (head + 1) * part)
            query = projected["q"][place][own]
            sums = linear(tensors, f"{name}.grep_linear", query).reshape(2, 4).sum(dim=1)
            first, second = torch.sigmoid(sums)
            gate = first * (second * tensors[f"{name}.grep_a"][0, head, 0, 0] - 1) + 2
            scores = torch.stack(
                [
                    query @ projected["k"][other][own] / math.sqrt(part)
                    + gate * table[bucket(other - place), head]
                    for other in range(len(rows))
                ]
            )
            weights = torch.softmax(scores, dim=0)
            values = [value[own] for value in projected["v"]]
            heard.append(sum(weight * value for weight, value in zip(weights, values, strict=True)))
        found.append(linear(tensors, f"{name}.out_proj", torch.cat(heard)))
    return found


def places(tensors, rows):
    """What the convolution adds to each row, its weights put together by hand."""
    lengths = tensors["encoder.pos_conv.0.weight_g"][0, 0]
    directions = tensors["encoder.pos_conv.0.weight_v"]
    weight = torch.stack(
        [directions[:, :, at] / directions[:, :, at].norm() * lengths[at] for at in range(KERNEL)],
        dim=2,
    )
    width = BEATS["width"]
    inputs = width // GROUPS
    found = []
    for place in range(len(rows)):
        added = tensors["encoder.pos_conv.0.bias"].clone()
        for at in range(KERNEL):
            other = place + at - KERNEL // 2
            if 0 <= other < len(rows):
                for out in range(width):
                    group = out // (width // GROUPS)
                    seen = rows[other][group * inputs : (group + 1) * inputs]
                    added[out] += weight[out, :, at] @ seen
        found.append(functional.gelu(added))
    return found


def by_hand(tensors, frames):
    side, alpha = BEATS["patch"], (2 * BEATS["layers"]) ** 0.25
    kernel = tensors["patch_embedding.weight"][:, 0]
    rows = []
    for time in range(len(frames) // side):
        for band in range(BANDS // side):
            seen = frames[time * side : (time + 1) * side, band * side : (band + 1) * side]
            patch = torch.stack([(one * seen).sum() for one in kernel])
            rows.append(linear(tensors, "post_extract_proj", normed(tensors, "layer_norm", patch)))
    added = places(tensors, rows)
    rows = [
        normed(tensors, "encoder.layer_norm", row + more)
        for row, more in zip(rows, added, strict=True)
    ]
    for name in (f"encoder.layers.{layer}" for layer in range(BEATS["layers"])):
        heard = attention(tensors, f"{name}.self_attn", rows)
        rows = [
            normed(tensors, f"{name}.self_attn_layer_norm", alpha * row + more)
            for row, more in zip(rows, heard, strict=True)
        ]
        inner = [functional.gelu(linear(tensors, f"{name}.fc1", row)) for row in rows]
        rows = [
            normed(tensors, f"{name}.final_layer_norm", alpha * row + linear(
                tensors, f"{name}.fc2", more))
            for row, more in zip(rows, inner, strict=True)
        ]  # fmt: skip
    return torch.stack(rows)


@torch.no_grad()
def test_states_are_those_of_a_literal_twin(model, stored):
    frames = torch.randn(37, BANDS, generator=torch.Generator().manual_seed(3))
    found = model(frames[None])[0]
    assert found.shape == (16, BEATS["width"])  # two times, eight bands; five frames are left over
    torch.testing.assert_close(found, by_hand(stored, frames), rtol=0, atol=1e-5)


def test_every_distance_has_its_bucket():
    states = 1000
    found = distance_buckets(states, BUCKETS)
    for place in (0, 1, 500, 999):
        expected = [bucket(other - place) for other in range(states)]
        assert found[place].tolist() == expected


def test_a_kind_of_tensor_that_is_missing_everywhere_is_named(stored):
    rest = {name: one for name, one in stored.items() if not name.endswith(".grep_a")}
    with pytest.raises(EncoderError, match=r"lacks beats\.\*\.grep_a;"):
        beats_sizes(beats_tensors(rest))


def test_the_convolution_needs_both_of_its_parts(stored):
    for part in ("weight_g", "weight_v", "bias"):
        rest = {name: one for name, one in stored.items() if not name.endswith(f"0.{part}")}
        with pytest.raises(EncoderError, match=rf"lacks beats\.encoder\.pos_conv\.0\.{part};"):
            beats_tensors(rest)


# The spectrum.


def kaldi_frame(samples):
    """One frame by the steps of Kaldi: mean, pre-emphasis, window, power, triangles, logarithm."""
    frame = samples.astype(np.float64) * 2**15
    frame = frame - frame.mean()
    frame = np.concatenate([[frame[0] - 0.97 * frame[0]], frame[1:] - 0.97 * frame[:-1]])
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)
    power = np.abs(np.fft.rfft(frame * hann**0.85, 512)) ** 2

    def mel(hertz):
        return 1127 * math.log(1 + hertz / 700)

    edges = np.linspace(mel(20), mel(8000), BANDS + 2)
    places = [mel(bin_ * 16_000 / 512) for bin_ in range(256)]
    found = []
    for left, middle, right in zip(edges, edges[1:], edges[2:], strict=False):
        weights = [
            max(0.0, min((at - left) / (middle - left), (right - at) / (right - middle)))
            for at in places
        ]
        energy = sum(weight * one for weight, one in zip(weights, power, strict=False))
        found.append(math.log(max(energy, np.finfo(np.float32).eps)))
    return np.array(found)


def test_the_spectrum_is_that_of_kaldi_step_by_step():
    samples = noise(0.2, 16_000).samples
    found = spectrum(samples).numpy()
    assert len(found) == 1 + (len(samples) - 400) // 160
    for frame in (0, 7, len(found) - 1):
        expected = kaldi_frame(samples[frame * 160 :][:400])
        np.testing.assert_allclose(found[frame], (expected - 15.41663) / (2 * 6.55582), atol=1e-4)
