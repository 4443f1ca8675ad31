"""BEATs, an encoder of sounds, as WAVE has it inside: a spectrum to states, 50 for each second.

After "BEATs: Audio Pre-Training with Acoustic Tokenizers" (arXiv 2212.09058), third iteration:
patches of a spectrum, a convolution for their places, and layers whose attention adds a bias for
distances that every query opens or closes by a gate. Modules are named as in published checkpoints.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from adaptiveembed.encoders.pretrained.checkpoint import imported
from adaptiveembed.encoders.pretrained.sounds import narrow_bands
from adaptiveembed.errors import EncoderError

MAX_DISTANCE = 800
"""Patches beyond which all distances count as one: a setting of the published model that no tensor
shows."""

RATE = 16_000
BANDS = 128
MEAN, DEVIATION = 15.41663, 6.55582
"""Of the logarithms of a spectrum, over the sounds that BEATs was trained on."""

PLACES = "encoder.pos_conv.0."
"""Where the convolution is stored, its lengths (``weight_g``) apart from its directions."""

REPEATED = "relative_attention_bias.weight"
"""A table that all layers share; checkpoints may store it once or for every layer."""


@dataclass(frozen=True)
class BeatsSizes:
    """The sizes of a model."""

    patch: int
    patch_width: int
    width: int
    inner: int
    heads: int
    layers: int
    buckets: int
    kernel: int
    groups: int


def beats_sizes(tensors: Mapping[str, Tensor]) -> BeatsSizes:
    """What most tensors agree on, so that one of another shape is found out to be the wrong one."""
    norms = [f".{name}.{part}" for name in ("self_attn_layer_norm", "final_layer_norm")
             for part in ("weight", "bias")]  # fmt: skip
    width = _agreed(tensors, 0, *norms)
    return BeatsSizes(
        patch=_agreed(tensors, 2, "patch_embedding.weight"),
        patch_width=_agreed(tensors, 1, "post_extract_proj.weight"),
        width=width,
        inner=_agreed(tensors, 0, ".fc1.weight", ".fc1.bias"),
        heads=_agreed(tensors, 1, ".grep_a"),
        layers=len({name.split(".")[2] for name in tensors if name.startswith("encoder.layers.")}),
        buckets=_agreed(tensors, 0, REPEATED),
        kernel=_agreed(tensors, 2, "encoder.pos_conv.weight"),
        groups=width // _agreed(tensors, 1, "encoder.pos_conv.weight"),
    )


def _agreed(tensors: Mapping[str, Tensor], axis: int, *endings: str) -> int:
    sizes = Counter(
        tensor.shape[axis]
        for name, tensor in tensors.items()
        if name.endswith(endings) and tensor.dim() > axis
    )
    if not sizes:
        raise EncoderError(f"BEATs lacks beats.*{endings[0]}; get the weights again")
    return sizes.most_common(1)[0][0]


def beats_tensors(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as the modules below name them, each once."""
    tensors = {name: tensor for name, tensor in stored.items() if not name.startswith(PLACES)}
    for name in [name for name in tensors if name.endswith(REPEATED)]:
        if not name.startswith("encoder.layers.0."):
            del tensors[name]
    return tensors | _joined(stored)


def _joined(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The convolution, whose directions are given their lengths."""
    parts = [f"{PLACES}{part}" for part in ("weight_g", "weight_v", "bias")]
    missing = [name for name in parts if name not in stored]
    if missing:
        named = ", ".join(f"beats.{name}" for name in missing)
        raise EncoderError(f"BEATs lacks {named}; get the weights again")
    lengths, directions, bias = (stored[name] for name in parts)
    if directions.dim() != 3 or lengths.shape != (1, 1, directions.shape[2]):
        raise EncoderError(
            f"beats.{parts[0]} is {tuple(lengths.shape)} and beats.{parts[1]} is "
            f"{tuple(directions.shape)}, which do not fit together; get the weights again"
        )
    norms = directions.square().sum(dim=(0, 1), keepdim=True).sqrt()
    return {
        "encoder.pos_conv.weight": directions * (lengths / norms),
        "encoder.pos_conv.bias": bias,
    }


class Beats(nn.Module):
    """Spectra of equal length to states [batch, patches, width], time by time, bands within."""

    def __init__(self, sizes: BeatsSizes) -> None:
        super().__init__()
        side = sizes.patch
        self.patch_embedding = nn.Conv2d(1, sizes.patch_width, side, stride=side, bias=False)
        self.layer_norm = nn.LayerNorm(sizes.patch_width)
        self.post_extract_proj = nn.Linear(sizes.patch_width, sizes.width)
        self.encoder = _Encoder(sizes)

    def forward(self, spectra: Tensor) -> Tensor:
        patches = self.patch_embedding(spectra[:, None]).flatten(2).transpose(1, 2)
        states: Tensor = self.encoder(self.post_extract_proj(self.layer_norm(patches)))
        return states


class _Encoder(nn.Module):
    def __init__(self, sizes: BeatsSizes) -> None:
        super().__init__()
        self.pos_conv = nn.Conv1d(
            sizes.width,
            sizes.width,
            sizes.kernel,
            padding=sizes.kernel // 2,
            groups=sizes.groups,
        )
        self.layer_norm = nn.LayerNorm(sizes.width)
        self.layers = nn.ModuleList(_Layer(sizes, place) for place in range(sizes.layers))

    def forward(self, states: Tensor) -> Tensor:
        # an even kernel gives one place too many
        places = self.pos_conv(states.transpose(1, 2))[:, :, : states.shape[1]]
        states = self.layer_norm(states + functional.gelu(places).transpose(1, 2))
        bias: Tensor = self.layers[0].self_attn.distance_bias(states.shape[1])  # type: ignore[union-attr, operator]
        for layer in self.layers:
            states = layer(states, bias)
        return states


class _Layer(nn.Module):
    """Attention and a feed-forward network, the residual of both made larger (deep norm)."""

    def __init__(self, sizes: BeatsSizes, place: int) -> None:
        super().__init__()
        self.self_attn = _Attention(sizes, has_table=place == 0)
        self.self_attn_layer_norm = nn.LayerNorm(sizes.width)
        self.fc1 = nn.Linear(sizes.width, sizes.inner)
        self.fc2 = nn.Linear(sizes.inner, sizes.width)
        self.final_layer_norm = nn.LayerNorm(sizes.width)
        self.residual = (2 * sizes.layers) ** 0.25

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        states = self.self_attn_layer_norm(states * self.residual + self.self_attn(states, bias))
        inner = self.fc2(functional.gelu(self.fc1(states)))
        normed: Tensor = self.final_layer_norm(states * self.residual + inner)
        return normed


class _Attention(nn.Module):
    def __init__(self, sizes: BeatsSizes, *, has_table: bool) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.q_proj = nn.Linear(sizes.width, sizes.width)
        self.k_proj = nn.Linear(sizes.width, sizes.width)
        self.v_proj = nn.Linear(sizes.width, sizes.width)
        self.out_proj = nn.Linear(sizes.width, sizes.width)
        self.grep_linear = nn.Linear(sizes.width // sizes.heads, 8)
        self.grep_a = nn.Parameter(torch.ones(1, sizes.heads, 1, 1))
        if has_table:
            self.relative_attention_bias = nn.Embedding(sizes.buckets, sizes.heads)

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        queries, keys, values = (
            project(states).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        heard = functional.scaled_dot_product_attention(
            queries, keys, values, attn_mask=self._gate(queries) * bias
        )
        joined: Tensor = self.out_proj(heard.transpose(1, 2).flatten(2))
        return joined

    def distance_bias(self, states: int) -> Tensor:
        """What every head adds for every two places [heads, states, states]."""
        table = self.relative_attention_bias
        buckets = distance_buckets(states, table.num_embeddings).to(table.weight.device)
        looked_up: Tensor = table(buckets)
        return looked_up.permute(2, 0, 1)

    def _gate(self, queries: Tensor) -> Tensor:
        """How much every query takes of the bias [batch, heads, states, 1]."""
        halves = self.grep_linear(queries).unflatten(3, (2, 4)).sum(dim=4).sigmoid()
        first, second = halves.chunk(2, dim=3)
        gate: Tensor = first * (second * self.grep_a - 1) + 2
        return gate


def distance_buckets(states: int, buckets: int) -> Tensor:
    """The bucket of every distance [states, states]: before and behind apart, far ones coarser."""
    places = torch.arange(states)
    distances = places[None, :] - places[:, None]
    half = buckets // 2
    exact = half // 2
    size = distances.abs()
    growth = (size.clamp(min=1) / exact).log() / math.log(MAX_DISTANCE / exact)
    far = (exact + (growth * (half - exact)).long()).clamp(max=half - 1)
    return (distances > 0).long() * half + torch.where(size < exact, size, far)


def spectrum(samples: np.ndarray) -> Tensor:
    """The spectrum that BEATs reads [frames of 10 ms, bands], as Kaldi computes it."""
    audio_utils = imported("transformers.audio_utils")
    logarithms = audio_utils.spectrogram(
        samples.astype(np.float64) * 2**15,
        audio_utils.window_function(400, "povey", periodic=False),
        frame_length=400,
        hop_length=160,
        fft_length=512,
        power=2.0,
        center=False,
        preemphasis=0.97,
        mel_filters=_filters(),
        log_mel="log",
        mel_floor=float(np.finfo(np.float32).eps),
        remove_dc_offset=True,
    ).T
    return torch.tensor((logarithms - MEAN) / (2 * DEVIATION), dtype=torch.float32)


@cache
def _filters() -> np.ndarray:
    with narrow_bands():
        filters: np.ndarray = imported("transformers.audio_utils").mel_filter_bank(
            num_frequency_bins=257,
            num_mel_filters=BANDS,
            min_frequency=20,
            max_frequency=RATE // 2,
            sampling_rate=RATE,
            norm=None,
            mel_scale="kaldi",
            triangularize_in_mel_space=True,
        )
    return filters
