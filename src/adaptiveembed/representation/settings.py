"""What a candidate embedder is made of, as numbers and choices that a recipe can set."""

from dataclasses import dataclass
from enum import StrEnum

from adaptiveembed.errors import SettingError
from adaptiveembed.structure.groups import GroupLayout


class GlobalPosition(StrEnum):
    """Where position 0 comes from (R2)."""

    FROZEN = "frozen"
    """The encoder's own global feature: for two sides that share one space."""
    ALIGNED = "aligned"
    """A closed-form alignment of the two global features, fitted once: for two that do not."""
    PROJECTED = "projected"
    """A learned linear map of the global feature."""
    LEARNED = "learned"
    """The Q-Former, like every other position."""


class StateNormalisation(StrEnum):
    """How hidden states are brought to one scale before the Q-Former reads them."""

    NONE = "none"
    """Not at all."""
    STANDARDISED = "standardised"
    """Every feature to mean 0 and deviation 1 over the training states; fitted once."""
    LAYER = "layer"
    """Every state by itself, by a layer norm with learned scales."""


@dataclass(frozen=True)
class EmbedderSettings:
    """A candidate embedder for two modalities; the defaults are those of a laptop (R18)."""

    dim: int = 256
    """d: numbers of one candidate vector."""
    layout: str = "4+4"
    """The sizes of the ordered groups, joined by '+'."""
    global_position: GlobalPosition = GlobalPosition.ALIGNED
    """Where position 0 comes from: frozen, aligned, projected or learned."""
    width: int = 256
    """d_q: the width of the Q-Former; the paper's is 512."""
    layers: int = 2
    """Layers of the Q-Former; the paper has 4."""
    heads: int = 4
    """Attention heads of each layer; the paper has 8."""
    feed_forward: int = 1024
    """The width inside the feed-forward blocks; four times ``width`` is usual."""
    cross_attention_frequency: int = 1
    """Every how many layers the states are read; 1 is every layer, BLIP-2 itself has 2."""
    dropout: float = 0.1
    """Share of each hidden vector that is dropped in training, drawn for every item by itself."""
    state_dropout: float = 0.5
    """Share of every item's hidden states that training leaves out, other ones at each step. It
    keeps small data from being learned by heart; the paper names none."""
    query_scale: float = 1.0
    """The deviation with which learnable queries start; 0.02 is usual for BERT."""
    weight_scale: float = 0.02
    """The deviation with which weights of the Q-Former start."""
    states: StateNormalisation = StateNormalisation.STANDARDISED
    """How hidden states are brought to one scale: none, standardised or layer."""
    shared: bool = False
    """Whether both modalities share one Q-Former, which takes encoders of one width."""

    def __post_init__(self) -> None:
        GroupLayout.parse(self.layout)
        for name in ("dim", "width", "layers", "heads", "feed_forward"):
            _require_positive(name, getattr(self, name))
        _require_positive("cross_attention_frequency", self.cross_attention_frequency)
        if self.width % self.heads:
            raise SettingError(
                f"width is {self.width} and heads is {self.heads}; "
                f"choose a width that is a multiple of the number of heads"
            )
        for name in ("dropout", "state_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingError(
                    f"{name} is {getattr(self, name)}; give a share from 0 to below 1"
                )
        for name in ("query_scale", "weight_scale"):
            if not getattr(self, name) > 0:
                raise SettingError(f"{name} is {getattr(self, name)}; give a number above 0")

    @property
    def group_layout(self) -> GroupLayout:
        """The layout that ``layout`` writes."""
        return GroupLayout.parse(self.layout)


def _require_positive(name: str, value: int) -> None:
    if value < 1:
        raise SettingError(f"{name} is {value}; give at least 1")
