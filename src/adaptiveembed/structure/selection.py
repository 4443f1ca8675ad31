"""Which positions of a candidate set are active: a prefix of each group (App. A.1)."""

from dataclasses import dataclass
from functools import cached_property, total_ordering

from adaptiveembed.errors import LayoutMismatchError, UnknownSelectionError
from adaptiveembed.structure.groups import (
    GroupLayout,
    GroupPrefix,
    parse_sum,
    require_layout,
    whole_numbers,
)


@total_ordering
@dataclass(frozen=True)
class Selection:
    """One prefix of every group, at least one vector in all.

    Selections of one layout are ordered by capacity, then by prefix lengths.

    >>> Selection(GroupLayout((4, 4)), (2, 1)).positions
    (0, 1, 4)
    """

    layout: GroupLayout
    prefix_lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        require_layout(self.layout)
        lengths = whole_numbers(self.prefix_lengths, meaning="prefix lengths")
        object.__setattr__(self, "prefix_lengths", lengths)
        self._require_a_length_per_group()
        self._require_lengths_within_groups()
        if not any(self.prefix_lengths):
            raise UnknownSelectionError(
                f"selection {self} is empty; activate at least one vector, for example "
                f"{'+'.join(['1'] + ['0'] * (self.layout.num_groups - 1))}"
            )

    @classmethod
    def parse(cls, text: str, layout: GroupLayout) -> "Selection":
        """The selection written as ``"2+1"``: the prefix length of each group in order."""
        return cls(layout, parse_sum(text, meaning="prefix lengths"))

    @classmethod
    def full(cls, layout: GroupLayout) -> "Selection":
        """The selection of every position."""
        return cls(layout, layout.sizes)

    def __str__(self) -> str:
        return "+".join(map(str, self.prefix_lengths))

    def __lt__(self, other: "Selection") -> bool:
        self._require_same_layout(other)
        return (self.capacity, self.prefix_lengths) < (other.capacity, other.prefix_lengths)

    @property
    def capacity(self) -> int:
        return sum(self.prefix_lengths)

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The active positions, ascending."""
        return tuple(
            position
            for group, length in enumerate(self.prefix_lengths)
            if length
            for position in self.layout.prefix_positions(GroupPrefix(group, length))
        )

    @property
    def mask(self) -> tuple[bool, ...]:
        """For every position of the layout, whether it is active."""
        return tuple(
            index < length
            for size, length in zip(self.layout.sizes, self.prefix_lengths, strict=True)
            for index in range(size)
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The paper's names of the active positions, for reports."""
        return tuple(self.layout.labels[position] for position in self.positions)

    def covers(self, other: "Selection") -> bool:
        """Whether every group's prefix is at least as long as in ``other``."""
        self._require_same_layout(other)
        return all(
            mine >= theirs
            for mine, theirs in zip(self.prefix_lengths, other.prefix_lengths, strict=True)
        )

    def _require_same_layout(self, other: "Selection") -> None:
        if self.layout != other.layout:
            raise LayoutMismatchError(
                f"selection {self} is of layout {self.layout} and selection {other} of layout "
                f"{other.layout}; compare selections of one layout"
            )

    def _require_a_length_per_group(self) -> None:
        given, needed = len(self.prefix_lengths), self.layout.num_groups
        if given != needed:
            raise LayoutMismatchError(
                f"selection {self} has {given} prefix lengths and layout {self.layout} has "
                f"{needed} groups; give one length per group, 0 for a group that is not active"
            )

    def _require_lengths_within_groups(self) -> None:
        for group, length in enumerate(self.prefix_lengths):
            size = self.layout.sizes[group]
            if not 0 <= length <= size:
                raise UnknownSelectionError(
                    f"selection {self} asks for {length} vectors of group {group}, which has "
                    f"{size} in layout {self.layout}; choose 0 to {size}"
                )


def require_selection(given: object) -> None:
    """Refuse anything but a selection."""
    if not isinstance(given, Selection):
        raise UnknownSelectionError(
            f"got {given!r} where a selection is needed; use Selection.parse(text, layout)"
        )
