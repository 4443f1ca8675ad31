"""Ordered groups of positions (Sec. 3.2 and App. A.1).

A candidate set is a row of positions. A layout cuts the row into ordered groups, one after another:
with sizes (4, 4) they are ``g0 z1 z2 z3 | g1 z4 z5 z6``. Only a prefix of a group is ever active.
"""

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, count
from typing import NamedTuple, SupportsIndex

from adaptiveembed.errors import LayoutMismatchError, SettingError


class GroupPrefix(NamedTuple):
    """The first ``length`` vectors of one group, the (g, k) of Eq. 3."""

    group: int
    length: int


@dataclass(frozen=True)
class GroupLayout:
    """How many positions each ordered group has.

    >>> GroupLayout((4, 4)).labels
    ('g0', 'z1', 'z2', 'z3', 'g1', 'z4', 'z5', 'z6')
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", whole_numbers(self.sizes, meaning="group sizes"))
        if not self.sizes or min(self.sizes) < 1:
            raise SettingError(
                f"a group layout needs at least one group and at least one position in each, "
                f"got sizes {self.sizes}; write for example GroupLayout((4, 4))"
            )

    @classmethod
    def parse(cls, text: str) -> "GroupLayout":
        """The layout written as ``"4+4"``."""
        return cls(parse_sum(text, meaning="group sizes"))

    def __str__(self) -> str:
        return "+".join(map(str, self.sizes))

    @property
    def num_groups(self) -> int:
        return len(self.sizes)

    @property
    def num_candidates(self) -> int:
        return sum(self.sizes)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The position at which each group begins."""
        return tuple(accumulate(self.sizes[:-1], initial=0))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The paper's names of the positions, for reports: group heads are g, all others z."""
        fine = count(1)
        return tuple(
            f"z{next(fine)}" if index else f"g{group}"
            for group, size in enumerate(self.sizes)
            for index in range(size)
        )

    def position(self, group: int, index: int) -> int:
        """The position of vector ``index`` of ``group``, both counted from 0."""
        size = self._size_of(group)
        if not 0 <= index < size:
            raise LayoutMismatchError(
                f"group {group} of layout {self} has vectors 0 to {size - 1}, got {index}"
            )
        return self.starts[group] + index

    def prefix_positions(self, prefix: GroupPrefix) -> tuple[int, ...]:
        """The positions of one group prefix, ascending."""
        size = self._size_of(prefix.group)
        if not 1 <= prefix.length <= size:
            raise LayoutMismatchError(
                f"a prefix of group {prefix.group} of layout {self} has 1 to {size} vectors, "
                f"got {prefix.length}; group_prefixes() lists those that exist"
            )
        start = self.starts[prefix.group]
        return tuple(range(start, start + prefix.length))

    def group_prefixes(self) -> Iterator[GroupPrefix]:
        """Every prefix of every group, group by group, shorter ones first."""
        return (
            GroupPrefix(group, length)
            for group, size in enumerate(self.sizes)
            for length in range(1, size + 1)
        )

    def _size_of(self, group: int) -> int:
        if not 0 <= group < self.num_groups:
            raise LayoutMismatchError(
                f"layout {self} has groups 0 to {self.num_groups - 1}, got group {group}"
            )
        return self.sizes[group]


def require_layout(layout: object) -> None:
    """Refuse anything but a layout."""
    if not isinstance(layout, GroupLayout):
        raise LayoutMismatchError(
            f"a group layout is needed, got {layout!r}; write for example GroupLayout((4, 4)), or "
            f"GroupLayout.parse('4+4')"
        )


def parse_sum(text: str, *, meaning: str) -> tuple[int, ...]:
    """The whole numbers of a text such as ``"2+1"``."""
    try:
        return tuple(int(part) for part in text.split("+"))
    except ValueError:
        raise SettingError(
            f"{meaning} are written as whole numbers joined by '+', for example '4+4', got {text!r}"
        ) from None


def whole_numbers(values: Iterable[SupportsIndex], *, meaning: str) -> tuple[int, ...]:
    """The values as a tuple of plain integers, so that equal ones are one key."""
    try:
        return tuple(int(operator.index(value)) for value in values)
    except TypeError:
        raise SettingError(
            f"{meaning} are whole numbers, for example (4, 4), got {values!r}; a text such as "
            f"'4+4' is read by parse"
        ) from None


PAPER_LAYOUT = GroupLayout((4, 4))
"""The layout of the paper (App. A.1): eight positions in two groups of four."""
