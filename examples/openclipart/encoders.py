"""The two encoders of the open clip art recipe, as anyone may write their own.

An encoder is one Python object, named on the command line by its module and its name:
``examples.openclipart.encoders:MiniLM`` and ``examples.openclipart.encoders:EfficientNetLite0``.
Both read weights that ``prepare.py`` has put into a folder: ``openclipart`` here, or the one that
the environment variable OPENCLIPART names.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image as Pictures
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertModel

from adaptiveembed.data.media import Image, Media, Text
from adaptiveembed.encoders.protocol import checked_batch
from adaptiveembed.errors import EncoderError
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia


def prepared(model: str) -> Path:
    """The folder of a prepared model."""
    folder = Path(os.environ.get("OPENCLIPART", "openclipart")) / "models" / model
    if not folder.is_dir():
        raise EncoderError(
            f"there is no folder {folder}; run `python examples/openclipart/prepare.py FOLDER` "
            f"and set the environment variable OPENCLIPART to FOLDER"
        )
    return folder


def digest(folder: Path, setting: int) -> str:
    """A text that changes with this code, with the files of a model and with its setting."""
    hashed = hashlib.blake2b(str(setting).encode(), digest_size=16)
    for file in [Path(__file__), *sorted(folder.iterdir())]:
        hashed.update(file.name.encode() + hashlib.blake2b(file.read_bytes()).digest())
    return hashed.hexdigest()


def load_exactly(model: nn.Module, file: Path) -> None:
    """Give the model the tensors of a file, which must be its own: by name, number and shape."""
    try:
        model.load_state_dict(load_file(file), strict=True)
    except RuntimeError as error:
        raise EncoderError(
            f"{file} does not fit the model: {error}; prepare the models again"
        ) from None
    model.eval().requires_grad_(requires_grad=False)


class MiniLM:
    """English sentences: the states of their tokens, and the direction of the tokens' mean.

    Six layers, trained by others to bring sentences of one meaning together (all-MiniLM-L6-v2).
    """

    name = "MiniLM-L6"
    modalities = (Modality.TEXT,)
    space = "all-MiniLM-L6-v2"
    matryoshka_widths = ()

    def __init__(self, folder: Path | None = None, most_tokens: int = 128) -> None:
        self._folder = folder or prepared("minilm")
        self._most_tokens = most_tokens
        config = BertConfig.from_json_file(self._folder / "config.json")
        self._model = BertModel(config, add_pooling_layer=False)
        load_exactly(self._model, self._folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(most_tokens)
        self._tokenizer.enable_padding()

    @cached_property
    def fingerprint(self) -> str:
        return f"{self.space}:{digest(self._folder, self._most_tokens)}"

    @property
    def width(self) -> int:
        return int(self._model.config.hidden_size)

    @torch.no_grad()
    def encode(self, batch: Sequence[Media]) -> EncodedMedia:
        texts = [item.text for item in checked_batch(self, batch) if isinstance(item, Text)]
        tokenized = self._tokenizer.encode_batch(texts)
        tokens = torch.tensor([text.ids for text in tokenized])
        mask = torch.tensor([text.attention_mask for text in tokenized]).bool()
        states = self._model(tokens, attention_mask=mask.long()).last_hidden_state
        states = states.masked_fill(~mask[:, :, None], 0.0)
        # The sum points where the mean does.
        return EncodedMedia(functional.normalize(states.sum(dim=1), dim=1), states, mask)


STAGES = (
    # blocks, kernel, stride, expansion, channels
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
"""EfficientNet-lite0: the published B0 without squeeze and excitation, and with ReLU6."""

STEM, HEAD = 32, 1280

PICTURES_AT_ONCE = 4
"""So few that what one layer writes is still in the cache when the next one reads it."""


class Convolution(nn.Conv2d):
    """A convolution of pictures with even sides; of an odd border, the larger part comes behind."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, groups: int) -> None:
        border = kernel - stride
        even = border if border % 2 == 0 else 0
        super().__init__(inputs, outputs, kernel, stride, padding=even // 2, groups=groups)
        self.odd_border = (border // 2, border - border // 2) * 2 if border % 2 else None

    def forward(self, pictures: Tensor) -> Tensor:
        if self.odd_border is not None:
            pictures = functional.pad(pictures, self.odd_border)
        return super().forward(pictures)


def bounded(states: Tensor) -> Tensor:
    """Numbers from 0 to 6, in the memory of those that came in."""
    return functional.relu6(states, inplace=True)


class Block(nn.Module):
    """Widen, look around in each channel, narrow; and add what came in, where it fits."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand = Convolution(inputs, inner, 1, 1, groups=1) if expansion > 1 else None
        self.depthwise = Convolution(inner, inner, kernel, stride, groups=inner)
        self.project = Convolution(inner, outputs, 1, 1, groups=1)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, incoming: Tensor) -> Tensor:
        inner = incoming if self.expand is None else bounded(self.expand(incoming))
        outgoing: Tensor = self.project(bounded(self.depthwise(inner)))
        return incoming + outgoing if self.adds else outgoing


class Lite0(nn.Module):
    """Pictures [batch, 3, 224, 224] to features of 7 by 7 places [batch, 1280, 7, 7]."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Convolution(3, STEM, 3, 2, groups=1)
        self.blocks = nn.Sequential(*blocks())
        self.head = Convolution(STAGES[-1][-1], HEAD, 1, 1, groups=1)

    def forward(self, pictures: Tensor) -> Tensor:
        features: Tensor = self.blocks(bounded(self.stem(pictures)))
        return bounded(self.head(features))


def blocks() -> Iterator[Block]:
    """The blocks of all stages; only the first of a stage changes resolution and channels."""
    inputs = STEM
    for number, kernel, stride, expansion, channels in STAGES:
        for place in range(number):
            yield Block(inputs, channels, kernel, stride if place == 0 else 1, expansion)
            inputs = channels


class EfficientNetLite0:
    """Pictures: the states of a few regions, and the direction of the mean over all places.

    A small network for photographs, trained by others to name a thousand kinds of things.
    """

    name = "EfficientNet-lite0"
    modalities = (Modality.IMAGE,)
    width = HEAD
    space = "efficientnet-lite0"
    matryoshka_widths = ()

    def __init__(self, folder: Path | None = None, regions: int = 4) -> None:
        self._folder = folder or prepared("efficientnet_lite0")
        self._regions = regions
        config = json.loads((self._folder / "config.json").read_text(encoding="utf-8"))
        self._side, self._mean, self._deviation = (
            config[key] for key in ("side", "mean", "deviation")
        )
        self._model = Lite0()
        load_exactly(self._model, self._folder / "model.safetensors")
        # Twice as fast on processors; torch's types do not know of it.
        self._model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @cached_property
    def fingerprint(self) -> str:
        return f"{self.space}:{digest(self._folder, self._regions)}"

    @torch.no_grad()
    def encode(self, batch: Sequence[Media]) -> EncodedMedia:
        pictures = [
            square(item.pixels, self._side)
            for item in checked_batch(self, batch)
            if isinstance(item, Image)
        ]
        numbers = torch.from_numpy(np.stack(pictures)).float()
        # Channels stand last already, as the model likes it.
        numbers = ((numbers - self._mean) / self._deviation).permute(0, 3, 1, 2)
        places = torch.cat([self._model(few) for few in numbers.split(PICTURES_AT_ONCE)])
        states = functional.adaptive_avg_pool2d(places, self._regions).flatten(2).mT
        mask = torch.ones(states.shape[:2], dtype=torch.bool)
        means = places.mean(dim=(2, 3))
        return EncodedMedia(functional.normalize(means, dim=1), states.contiguous(), mask)


def square(pixels: np.ndarray, side: int) -> np.ndarray:
    """The whole picture in the middle of a white square [side, side, 3]."""
    picture = Pictures.fromarray(pixels)
    scale = side / max(picture.size)
    width, height = (max(1, round(scale * length)) for length in picture.size)
    paper = Pictures.new("RGB", (side, side), "white")
    resized = picture.resize((width, height), Pictures.Resampling.BICUBIC)
    paper.paste(resized, ((side - width) // 2, (side - height) // 2))
    return np.asarray(paper)
