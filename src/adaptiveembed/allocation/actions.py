"""The actions U(s) of a policy (Sec. 3.2), as tables of a selection space.

States are the nodes at which something is left to decide, in the order of the space. Action 0 is to
stop, action 1 + e is the e-th expansion of the space, however many vectors it adds (R9).
"""

from dataclasses import dataclass
from functools import cached_property

import torch

from adaptiveembed.errors import SettingError, UnknownSelectionError
from adaptiveembed.shapes import ActionMask, EdgePlaces, PositionMask
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import SelectionSpace

STOP = 0
"""The action that ends an allocation."""


@dataclass(frozen=True)
class Actions:
    """Which actions the policy of a space has, and where they are possible and lead.

    >>> from adaptiveembed import PAPER_LAYOUT, coarse_to_fine
    >>> actions = Actions(coarse_to_fine(PAPER_LAYOUT))
    >>> [str(state) for state in actions.states], actions.num_actions
    (['1+0', '1+1', '2+0', '2+2'], 6)
    """

    space: SelectionSpace

    def __post_init__(self) -> None:
        if not self.space.edges:
            raise SettingError(
                f"the space of layout {self.space.layout} has the one selection {self.space.root} "
                f"and nothing to decide; give everyone that selection"
            )

    @cached_property
    def states(self) -> tuple[Selection, ...]:
        """The selections that can be expanded."""
        return tuple(node for node in self.space.nodes if not self.space.is_terminal(node))

    @property
    def num_actions(self) -> int:
        return 1 + len(self.space.edges)

    def place(self, state: Selection) -> int:
        """The place of a state among the states."""
        if state not in self._places:
            raise UnknownSelectionError(
                f"there is nothing to decide at selection {state} of layout {state.layout}; the "
                f"states of this space are {', '.join(map(str, self.states))} of layout "
                f"{self.space.layout}"
            )
        return self._places[state]

    @cached_property
    def sources(self) -> EdgePlaces:
        """The place among the states where each expansion starts."""
        return torch.tensor([self.place(edge.source) for edge in self.space.edges])

    @cached_property
    def targets(self) -> EdgePlaces:
        """The place among the nodes of the space where each expansion leads."""
        return torch.tensor([self.space.index(edge.target) for edge in self.space.edges])

    @cached_property
    def admissible(self) -> ActionMask:
        """For every state and action, whether the action is possible there; STOP always is."""
        mask = torch.zeros(len(self.states), self.num_actions, dtype=torch.bool)
        mask[:, STOP] = True
        mask[self.sources, 1 + torch.arange(len(self.space.edges))] = True
        return mask

    @cached_property
    def selected(self) -> PositionMask:
        """The positions that are active at each state."""
        return torch.tensor([state.mask for state in self.states])

    @cached_property
    def candidates(self) -> PositionMask:
        """The positions that some expansion of each state adds."""
        targets = torch.tensor([node.mask for node in self.space.nodes])[self.targets]
        mask = torch.zeros_like(self.selected)
        for state in range(len(self.states)):
            mask[state] = targets[self.sources == state].any(dim=0)
        return mask & ~self.selected

    @cached_property
    def _places(self) -> dict[Selection, int]:
        return {state: place for place, state in enumerate(self.states)}
