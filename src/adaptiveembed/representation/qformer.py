"""The Q-Former: learnable queries that read the hidden states of an item (Sec. 3.2, R3).

The layers are BLIP-2's as transformers has them, built from scratch; only their dropout is ours.
They are post-norm, and the queries are normalised on their way in. Both keep the positions apart:
pre-norm layers whose queries start small made all positions one vector.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from adaptiveembed.representation.dropout import StateDropout, item_dropout, with_item_dropout
from adaptiveembed.representation.settings import EmbedderSettings, StateNormalisation
from adaptiveembed.shapes import DropoutKeys, QueryOutputs, StateMask, States
from adaptiveembed.structure.encoded import EncodedMedia


class QFormer(nn.Module):
    """Turns the hidden states of every item into one vector for each learnable query."""

    def __init__(self, settings: EmbedderSettings, num_queries: int, states_width: int) -> None:
        # its import takes seconds, and whoever only reads a recipe should not wait for it
        from transformers import Blip2QFormerConfig, Blip2QFormerModel  # noqa: PLC0415

        super().__init__()
        self.queries = nn.Parameter(settings.query_scale * torch.randn(num_queries, settings.width))
        self.model = Blip2QFormerModel(
            Blip2QFormerConfig(
                hidden_size=settings.width,
                num_hidden_layers=settings.layers,
                num_attention_heads=settings.heads,
                intermediate_size=settings.feed_forward,
                hidden_dropout_prob=settings.dropout,
                attention_probs_dropout_prob=0.0,  # attention would draw its own masks
                cross_attention_frequency=settings.cross_attention_frequency,
                encoder_hidden_size=states_width,
                initializer_range=settings.weight_scale,
            )
        )
        self.state_dropout = StateDropout(settings.state_dropout, stream=0)
        with_item_dropout(self.model, first_stream=1)

    def forward(
        self, states: States, mask: StateMask, dropout_keys: DropoutKeys | None = None
    ) -> QueryOutputs:
        """The queries after reading the states; what the mask leaves out changes nothing."""
        queries = self.queries.expand(len(states), -1, -1)
        with item_dropout(self, dropout_keys):
            read, real = self.state_dropout(states, mask)
            found: Tensor = self.model(
                query_embeds=queries, encoder_hidden_states=read, encoder_attention_mask=real
            ).last_hidden_state
        return found


HARDLY = 1e-6
"""A feature that varies by less than this share of its mean varies by rounding."""


class StandardisedStates(nn.Module):
    """Every feature of the states to mean 0 and deviation 1, by what was measured once."""

    shift: Tensor
    scale: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def fit(self, batches: Iterable[EncodedMedia]) -> None:
        """Measure the real states of these items; features that hardly change keep their size."""
        count = 0
        total = torch.zeros(len(self.scale), dtype=torch.float64)
        squares = torch.zeros_like(total)
        for encoded in batches:
            states = encoded.hidden_states[encoded.mask].double()
            count += len(states)
            total += states.sum(dim=0)
            squares += states.square().sum(dim=0)
        means = total / count
        deviations = (squares / count - means.square()).clamp(min=0).sqrt()
        scale = torch.where(deviations > HARDLY * means.abs(), deviations, 1).reciprocal()
        self.scale.copy_(scale)
        self.shift.copy_(-means * scale)

    def forward(self, states: States) -> States:
        return torch.addcmul(self.shift, states, self.scale)


def state_normaliser(kind: StateNormalisation, width: int) -> nn.Module:
    """What brings states of this width to one scale."""
    match kind:
        case StateNormalisation.NONE:
            return nn.Identity()
        case StateNormalisation.STANDARDISED:
            return StandardisedStates(width)
        case StateNormalisation.LAYER:
            return nn.LayerNorm(width)
