"""The decision graph as data: which selections exist and which expansions lead to them.

The deployed policy walks ``coarse_to_fine`` (App. A.2), the oracle looks at every node of
``every_prefix`` (App. A.3). A finer policy is another space, not other code.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from adaptiveembed.errors import LayoutMismatchError, SettingError, UnknownSelectionError
from adaptiveembed.structure.groups import GroupLayout, require_layout
from adaptiveembed.structure.selection import Selection


class Expansion(NamedTuple):
    """One action of the policy: from a selection to a larger one, by however many vectors."""

    source: Selection
    target: Selection

    def __str__(self) -> str:
        return f"{self.source}→{self.target}"


@dataclass(frozen=True)
class SelectionSpace:
    """A root selection and the expansions that lead from it to every other selection.

    Every expansion adds at least one vector, so that there are no cycles.
    """

    layout: GroupLayout
    root: Selection
    edges: tuple[Expansion, ...]

    def __post_init__(self) -> None:
        # Equal spaces are equal however their edges were listed.
        object.__setattr__(self, "edges", tuple(Expansion(*edge) for edge in self.edges))
        self._require_one_layout()
        self._require_growth()
        self._require_distinct_edges()
        self._require_reachable()

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, selection: object) -> bool:
        return selection in self._steps

    @cached_property
    def nodes(self) -> tuple[Selection, ...]:
        """Every selection: the root first, then by step, then in the order of the edges."""
        seen = dict.fromkeys((self.root, *(edge.target for edge in self.edges)))
        return tuple(sorted(seen, key=self._steps.__getitem__))

    def expansions(self, selection: Selection) -> tuple[Selection, ...]:
        """The selections that one expansion of ``selection`` leads to."""
        self._require_node(selection)
        return self._targets.get(selection, ())

    def is_terminal(self, selection: Selection) -> bool:
        """Whether nothing is left to decide at ``selection``."""
        return not self.expansions(selection)

    def step_of(self, selection: Selection) -> int:
        """How many expansions the longest way from the root to ``selection`` takes.

        An expansion therefore always leads to a later step, also where ways differ in length.
        """
        self._require_node(selection)
        return self._steps[selection]

    def index(self, selection: Selection) -> int:
        """The place of ``selection`` among the nodes."""
        self._require_node(selection)
        return self._places[selection]

    @cached_property
    def _steps(self) -> dict[Selection, int]:
        steps = {self.root: 0}
        # Expansions grow, so by ascending source every way into a node is known before it is left.
        for source, target in sorted(self.edges):
            if source in steps:
                steps[target] = max(steps.get(target, 0), steps[source] + 1)
        return steps

    @cached_property
    def _targets(self) -> dict[Selection, tuple[Selection, ...]]:
        targets: dict[Selection, tuple[Selection, ...]] = {}
        for source, target in self.edges:
            targets[source] = (*targets.get(source, ()), target)
        return targets

    @cached_property
    def _places(self) -> dict[Selection, int]:
        return {selection: place for place, selection in enumerate(self.nodes)}

    def _require_node(self, selection: Selection) -> None:
        if selection not in self:
            raise UnknownSelectionError(
                f"selection {selection} of layout {selection.layout} is not in this space; choose "
                f"one of {', '.join(map(str, self.nodes))} of layout {self.layout}"
            )

    def _require_one_layout(self) -> None:
        for selection in (self.root, *(end for edge in self.edges for end in edge)):
            if selection.layout != self.layout:
                raise LayoutMismatchError(
                    f"selection {selection} is of layout {selection.layout} and the space of "
                    f"layout {self.layout}; build every selection on the layout of the space"
                )

    def _require_growth(self) -> None:
        for edge in self.edges:
            if not grows(edge.source, edge.target):
                raise SettingError(
                    f"expansion {edge} does not grow; no group's prefix may get shorter and at "
                    f"least one must get longer"
                )

    def _require_distinct_edges(self) -> None:
        for edge, times in Counter(self.edges).items():
            if times > 1:
                raise SettingError(f"expansion {edge} is given {times} times; give it once")

    def _require_reachable(self) -> None:
        for edge in self.edges:
            if edge.source not in self:
                raise SettingError(
                    f"expansion {edge} starts at a selection that no way from the root "
                    f"{self.root} reaches; add an expansion that leads to {edge.source}"
                )


def grows(source: Selection, target: Selection) -> bool:
    """Whether ``target`` keeps everything that is active in ``source`` and adds to it."""
    return source != target and target.covers(source)


def coarse_to_fine(layout: GroupLayout) -> SelectionSpace:
    """The deployed space of App. A.2: one vector, one more in any group, half of each, all.

    Ways merge again in the half (rounded up). A selection that the half does not contain, or
    already equals, goes on to all positions; a step that adds nothing is left out. Layout (4, 4)
    has the five selections of the paper, (8) has 1, 2, 4, 8, and (1) has one and no expansion.
    """
    root, full = smallest_selection(layout), Selection.full(layout)
    half = Selection(layout, tuple((size + 1) // 2 for size in layout.sizes))
    firsts = one_vector_more(root)
    later = [node for node in dict.fromkeys((*firsts, half)) if node not in {root, full}]
    edges = [Expansion(root, first) for first in firsts] + [
        Expansion(source, half if grows(source, half) else full) for source in later
    ]
    return SelectionSpace(layout, root, tuple(edges))


def every_prefix(layout: GroupLayout) -> SelectionSpace:
    """The oracle's space of App. A.3: every combination of prefixes, grown one vector at a time.

    The first vector of the first group is always active. Layout (4, 4) has 20 nodes and 31 edges.
    """
    root = smallest_selection(layout)
    lengths = product(*(range(size + 1) for size in layout.sizes))
    nodes = sorted(Selection(layout, each) for each in lengths if each[0] > 0)
    edges = (Expansion(source, target) for source in nodes for target in one_vector_more(source))
    # By target, so that the nodes of the space stand in ascending order.
    ordered = sorted(edges, key=lambda edge: (edge.target, edge.source))
    return SelectionSpace(layout, root, tuple(ordered))


def smallest_selection(layout: GroupLayout) -> Selection:
    """Only the first vector of the first group, where every way starts."""
    require_layout(layout)
    return Selection(layout, (1, *([0] * (layout.num_groups - 1))))


def one_vector_more(selection: Selection) -> tuple[Selection, ...]:
    """The selections with one more vector in one of the groups, in the order of selections.

    The order puts a new coarse vector before a finer one: from (1, 0) to (1, 1), then (2, 0).
    """
    layout, lengths = selection.layout, selection.prefix_lengths
    return tuple(
        sorted(
            Selection(layout, (*lengths[:group], lengths[group] + 1, *lengths[group + 1 :]))
            for group, size in enumerate(layout.sizes)
            if lengths[group] < size
        )
    )
