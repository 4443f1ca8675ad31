"""A recipe: every choice of a training as data, read from TOML and kept with the run.

Ablations and baselines are recipes too; nothing in the code asks for their names.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from adaptiveembed.allocation.bank import BankSampling
from adaptiveembed.allocation.feedback import FeedbackSettings
from adaptiveembed.allocation.policy import PolicyKind, PolicySettings
from adaptiveembed.allocation.utility import UtilitySettings
from adaptiveembed.data.splits import SplitSettings
from adaptiveembed.errors import SettingError
from adaptiveembed.representation.metaembed import PAPER_BUDGETS, Budget, MetaEmbedLoss
from adaptiveembed.representation.mgcl import (
    MultiGroupContrastiveLoss,
    Objective,
    group_prefixes,
    whole_set,
)
from adaptiveembed.representation.settings import EmbedderSettings
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import SelectionSpace, coarse_to_fine, every_prefix
from adaptiveembed.training.settings import (
    PolicyTrainingSettings,
    TrainingSettings,
    require_seed,
)


class Method(StrEnum):
    """What is trained."""

    ADAPTIVE = "adaptive"
    """Candidates by MGCL, and a policy that allocates them: AdaptiveEmbed."""
    METAEMBED = "metaembed"
    """Vectors by role with nested budgets: the baseline MetaEmbed (R17)."""


class Prefixes(StrEnum):
    """Which sets of positions Stage I compares, each a loss of its own."""

    GROUPS = "groups"
    """Every prefix of every group by itself: MGCL, as in the paper (R4)."""
    WHOLE = "whole"
    """All positions at once: the ablation without MGCL (R20)."""
    DEPLOYED = "deployed"
    """Every selection that the policy can reach; our variant."""


class Space(StrEnum):
    """Which selections a policy can reach, and in which steps."""

    COARSE_TO_FINE = "coarse-to-fine"
    """The paper's three steps and five selections (App. A.2)."""
    EVERY_PREFIX = "every-prefix"
    """One vector at a time, as the oracle (App. A.3)."""

    def on(self, layout: GroupLayout) -> SelectionSpace:
        """The space of a layout."""
        made = {Space.COARSE_TO_FINE: coarse_to_fine, Space.EVERY_PREFIX: every_prefix}
        return made[self](layout)


@dataclass(frozen=True)
class RepresentationRecipe:
    """Stage I: what makes the candidates, and what teaches it."""

    embedder: EmbedderSettings = field(default_factory=EmbedderSettings)
    prefixes: Prefixes = Prefixes.GROUPS
    """Which sets are compared: ``groups`` (MGCL), ``whole`` or ``deployed``."""
    budgets: tuple[str, ...] = tuple(map(str, PAPER_BUDGETS))
    """For ``metaembed``: vectors of the query role and of the gallery role, in growing order; the
    layout has room for the largest of them, like 16+64."""
    temperature: float = 0.03
    """What similarities are divided by before the softmax."""
    training: TrainingSettings = field(default_factory=TrainingSettings)


@dataclass(frozen=True)
class BankRecipe:
    """What the policy is shown responses of (R12)."""

    sampling: BankSampling = BankSampling.ALL
    """``all`` as in the paper, ``random`` or ``farthest-point``."""
    size: int = 4096
    """How many items a sampled bank has."""
    seed: int = 0
    """Which ones."""

    def __post_init__(self) -> None:
        if self.size < 1:
            raise SettingError(f"size is {self.size}; give a bank of at least 1 item")


@dataclass(frozen=True)
class AllocationRecipe:
    """Stage II: who is given how much, and what teaches that."""

    space: Space = Space.COARSE_TO_FINE
    """Which selections there are: ``coarse-to-fine`` as in the paper, or ``every-prefix``."""
    policy: PolicySettings = field(default_factory=PolicySettings)
    bank: BankRecipe = field(default_factory=BankRecipe)
    feedback: FeedbackSettings = field(default_factory=FeedbackSettings)
    utility: UtilitySettings = field(default_factory=UtilitySettings)
    training: PolicyTrainingSettings = field(default_factory=PolicyTrainingSettings)


@dataclass(frozen=True)
class Recipe:
    """A whole training. The defaults are the paper's, at a laptop's size."""

    name: str = "laptop"
    """What reports call it."""
    method: Method = Method.ADAPTIVE
    """What is trained: ``adaptive`` or ``metaembed``."""
    seed: int = 0
    """What weights start from."""
    splits: SplitSettings = field(default_factory=SplitSettings)
    representation: RepresentationRecipe = field(default_factory=RepresentationRecipe)
    allocation: AllocationRecipe = field(default_factory=AllocationRecipe)

    def __post_init__(self) -> None:
        require_seed("seed", self.seed)
        kind = self.allocation.policy.kind
        crossfitted = self.method is Method.ADAPTIVE and self.splits.folds > 1
        if crossfitted and kind is not PolicyKind.INVARIANT:
            raise SettingError(
                f"splits.folds is {self.splits.folds} and allocation.policy.kind is {kind}, which "
                f"reads coordinates, and every fold has a space of its own; set "
                f"allocation.policy.kind to {PolicyKind.INVARIANT}, or splits.folds to 1"
            )

    @property
    def layout(self) -> GroupLayout:
        """The layout of the vectors that are learned."""
        return self.representation.embedder.group_layout

    @property
    def space(self) -> SelectionSpace:
        """What the policy decides in."""
        return self.allocation.space.on(self.layout)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """What MetaEmbed compares, smallest first."""
        return tuple(map(Budget.parse, self.representation.budgets))

    def objective(self) -> Objective:
        """The loss of Stage I."""
        temperature = self.representation.temperature
        if self.method is Method.METAEMBED:
            return MetaEmbedLoss(self.layout, self.budgets, temperature)
        return MultiGroupContrastiveLoss(self.layout, self._prefixes(), temperature)

    def _prefixes(self) -> tuple[Selection, ...]:
        made = {
            Prefixes.GROUPS: lambda: group_prefixes(self.layout),
            Prefixes.WHOLE: lambda: whole_set(self.layout),
            Prefixes.DEPLOYED: lambda: self.space.nodes,
        }
        return made[self.representation.prefixes]()
