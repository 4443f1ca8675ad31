"""Forward passes of the Qwen-VL family, with the positions that a model was trained on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from adaptiveembed.encoders.pretrained.checkpoint import imported, load_part
from adaptiveembed.encoders.pretrained.encoder import Branch, Prepared, encoded
from adaptiveembed.encoders.pretrained.qwen_inputs import (
    IMAGE_TOKEN,
    VIDEO_TOKEN,
    Composed,
    Kind,
    PatchCutter,
    TokenBatch,
    kinds_of,
    plain_text,
    token_batch,
)
from adaptiveembed.encoders.pretrained.settings import PretrainedSettings
from adaptiveembed.errors import EncoderError
from adaptiveembed.shapes import BatchFeatures, TokenMask, TokenPositions, TokenStates
from adaptiveembed.structure.encoded import EncodedMedia

Compose = Callable[[Any], Composed]
StatesOf = Callable[[TokenBatch], Tensor]
"""One forward pass: a state for every token [batch, tokens, width]."""
Pool = Callable[[Tensor, Tensor], Tensor]


class Prompts:
    """Turns prompts into tokens, of which some stand for pictures."""

    def __init__(self, settings: PretrainedSettings, config: Any) -> None:  # noqa: ANN401
        self._tokenizer = load_part(imported("transformers").AutoTokenizer, settings)
        self._pictures = config.image_token_id, config.video_token_id
        known = tuple(map(self._tokenizer.convert_tokens_to_ids, (IMAGE_TOKEN, VIDEO_TOKEN)))
        if known != self._pictures:
            raise EncoderError(
                f"{IMAGE_TOKEN} and {VIDEO_TOKEN} are {known} to the tokenizer of "
                f"{settings.source} and {self._pictures} to its model; get the checkpoint again"
            )
        self._markers = [*self._tokenizer.all_special_tokens, IMAGE_TOKEN, VIDEO_TOKEN]

    @property
    def filling(self) -> int:
        """The token with which shorter items are filled up."""
        return int(self._tokenizer.pad_token_id)

    def plain(self, text: str) -> str:
        """The text without markers, which would be taken for pictures or for the end."""
        return plain_text(text, self._markers)

    def tokens(self, prompt: str) -> list[int]:
        """The tokens of a prompt, with what the tokenizer puts before and behind every one."""
        tokens: list[int] = self._tokenizer(prompt)["input_ids"]
        return tokens

    def kinds(self, tokens: Sequence[int]) -> list[Kind]:
        """What every token stands for."""
        return kinds_of(tokens, *self._pictures)


def load_cutter(settings: PretrainedSettings) -> PatchCutter:
    """What cuts pictures as this checkpoint wants it, the same with torchvision and without."""
    processors = imported("transformers").AutoImageProcessor
    return PatchCutter(load_part(processors, settings, backend="pil"))


def branch(compose: Compose, states_of: StatesOf, pool: Pool, filling: int) -> Branch:
    """Items of one modality, composed one by one and encoded several at a time."""

    def prepare(item: Any) -> Prepared:  # noqa: ANN401 - media of one modality
        composed = compose(item)
        return Prepared(len(composed.tokens), composed)

    def forward(items: Sequence[Composed]) -> EncodedMedia:
        batch = token_batch(items, filling)
        states = states_of(batch).float().cpu()
        return encoded(pool(states, batch.mask), states, batch.mask)

    return Branch(prepare, forward)


def last_states(states: TokenStates, mask: TokenMask) -> BatchFeatures:
    """The state of the last real token of every item."""
    last: Tensor = states[torch.arange(len(states)), mask.sum(dim=1) - 1]
    return last


def plain_positions(batch: TokenBatch) -> TokenPositions:
    """One token behind the other, whatever they stand for."""
    places = (batch.mask.long().cumsum(dim=1) - 1).clamp_min(0)
    return places.expand(3, *places.shape)


def picture_positions(model: Any, batch: TokenBatch) -> TokenPositions:  # noqa: ANN401
    """What stands for a picture has its time, row and column as its position."""
    arguments = arguments_of(batch)
    positions: Tensor = model.get_rope_index(
        batch.tokens,
        batch.kinds,
        image_grid_thw=arguments.get("image_grid_thw"),
        video_grid_thw=arguments.get("video_grid_thw"),
        attention_mask=arguments["attention_mask"],
    )[0]
    return positions


def arguments_of(batch: TokenBatch) -> Mapping[str, Tensor]:
    """The parts of a batch by the names that the models have for them; positions come apart."""
    arguments = {"input_ids": batch.tokens, "attention_mask": batch.mask.long()}
    if batch.patches is None:
        return arguments
    pixels, grids = batch.patches
    if (batch.kinds == Kind.VIDEO).any():
        return arguments | {"pixel_values_videos": pixels, "video_grid_thw": grids}
    return arguments | {"pixel_values": pixels, "image_grid_thw": grids}
