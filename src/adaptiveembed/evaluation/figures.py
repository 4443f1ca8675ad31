"""Figures as SVG text: how capacity was spread, and what it buys.

Every figure stands alone: it brings its own colours, for a light page and for a dark one, runs no
script and fetches nothing. Colour is never the only thing that tells two marks apart.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from math import ceil, floor

from adaptiveembed.errors import EmptyBatchError
from adaptiveembed.evaluation.results import Evaluation

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 62, 24, 46, 56
MEASURE = "mAP"

FARTHEST = 48
"""Vectors up to which a point has a place. What has more, such as MaxSim of all tokens, is a line
across: its place would leave no room between all others."""

Number = float | int
"""A value or a place; those that are drawn are whole numbers as often as not."""

STYLE = """\
.chart { font: 13px system-ui, sans-serif; color: #1d2430; --ours: #c2410c; --oracle: #1d4ed8;
  --rival: #0f766e; --baseline: #7e22ce; --fixed: #64748b; --page: #ffffff }
@media (prefers-color-scheme: dark) { .chart { color: #e4e8ee; --ours: #fb923c; --oracle: #93c5fd;
  --rival: #5eead4; --baseline: #d8b4fe; --fixed: #9aa7b8; --page: #14181f } }
.chart text { fill: currentColor }
.chart .title { font-weight: 600; font-size: 14px }
.chart .grid { stroke: currentColor; stroke-opacity: .14 }
.chart .axis { stroke: currentColor; stroke-opacity: .55 }
.chart .small { font-size: 11px }
.chart .halo { stroke: var(--page); stroke-width: 4px; paint-order: stroke; font-weight: 600 }
.chart .frontier { fill: none; stroke: var(--fixed); stroke-dasharray: 5 4 }
.chart .ours { fill: var(--ours); stroke: var(--ours) }
.chart .oracle { fill: var(--oracle); stroke: var(--oracle) }
.chart .rival { fill: var(--rival); stroke: var(--rival) }
.chart .baseline { fill: var(--baseline); stroke: var(--baseline) }
.chart .level { stroke-dasharray: 9 5; stroke-width: 1.5 }
.chart .fixed { fill: var(--fixed); stroke: var(--fixed) }
.chart .hollow { fill-opacity: .12; stroke-dasharray: 3 2; stroke-width: 1.5 }
"""


class Kind(StrEnum):
    """What a point of the curve is."""

    FIXED = "fixed"
    """One selection for all queries."""
    ADAPTIVE = "ours"
    """What the policy gave."""
    ORACLE = "oracle"
    """What somebody would give who knows the answers."""
    RIVAL = "rival"
    """Another method."""
    BASELINE = "baseline"
    """Another encoder."""


NAMES = {
    Kind.FIXED: "fixed selections",
    Kind.ADAPTIVE: "the policy",
    Kind.ORACLE: "the oracle, which knows the answers",
    Kind.RIVAL: "MetaEmbed",
    Kind.BASELINE: "other encoders",
}


@dataclass(frozen=True)
class Point:
    """One method: how many vectors a query has on average, and what that reaches."""

    name: str
    capacity: float
    score: float
    """In [0, 1]."""
    kind: Kind

    @classmethod
    def of(cls, evaluation: Evaluation, name: str, kind: Kind) -> "Point":
        """The point of an evaluation; its capacity is that of the paper's table (R16)."""
        sides = evaluation.query_vectors + evaluation.gallery_vectors_compared
        return cls(name, sides / 2, evaluation.means[MEASURE], kind)


def capacity_figure(direction: str, policy: Mapping[int, int], oracle: Mapping[int, int]) -> str:
    """Which share of the queries was given each capacity, by the policy and by the oracle.

    Args:
        direction: Who asks for what.
        policy: How many queries the policy gave each capacity.
        oracle: The same of the oracle.
    """
    series = [(Kind.ADAPTIVE, _shares(policy)), (Kind.ORACLE, _shares(oracle))]
    capacities = range(1, max(*policy, *oracle) + 1)
    scale = _Scale((0.5, len(capacities) + 0.5), (0.0, _rounded_up(series)))
    title = f"How many vectors the queries were given, {direction}"
    said = (
        f"{NAMES[kind]}: " + ", ".join(f"{share:.0%} got {one}" for one, share in shares.items())
        for kind, shares in series
    )
    parts = [
        *_frame(scale, "vectors of a query (capacity)", "share of the queries (%)"),
        *(_tick(scale, one, str(one)) for one in capacities),
        *(_bar(scale, kind, side, one, shares.get(one, 0.0))
          for side, (kind, shares) in enumerate(series) for one in capacities),
        _legend([Kind.ADAPTIVE, Kind.ORACLE], bars=True),
    ]  # fmt: skip
    return _chart(title, "; ".join(said), parts)


def capacity_curve(points: Sequence[Point], title: str = "What capacity buys") -> str:
    """The mAP at each capacity: every fixed selection, rivals, policy and oracle."""
    if not points:
        raise EmptyBatchError("there is no point to draw; give at least one")
    scores = [100 * one.score for one in points]
    low, high = _rounded_range(min(scores), max(scores))
    near = [one for one in points if one.capacity <= FARTHEST]
    farthest = max((one.capacity for one in near), default=1)
    scale = _Scale((0.5, ceil(farthest) + 0.9), (low, high))
    said = "; ".join(
        f"{one.name} {100 * one.score:.2f} with {one.capacity:.2f} vectors" for one in points
    )
    fixed = [one for one in near if one.kind is Kind.FIXED]
    kinds = [kind for kind in Kind if any(one.kind is kind for one in points)]
    parts = [
        *_frame(scale, "vectors, mean of the query's and the item's", f"{MEASURE} (%)"),
        *(_tick(scale, one, str(one)) for one in range(1, floor(scale.across[1]) + 1)),
        _frontier(scale, fixed),
        *_named_dots(scale, fixed),
        *(_mark(scale, one) for one in near if one.kind is not Kind.FIXED),
        *(_level(scale, one) for one in points if one.capacity > FARTHEST),
        _legend(kinds),
    ]
    return _chart(title, said, parts)


@dataclass(frozen=True)
class _Scale:
    """Where values stand in the picture."""

    across: tuple[Number, Number]
    up: tuple[Number, Number]

    def x(self, value: Number) -> float:
        first, last = self.across
        return LEFT + (value - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(self, value: Number) -> float:
        first, last = self.up
        return HEIGHT - BOTTOM - (value - first) / (last - first) * (HEIGHT - TOP - BOTTOM)


_OPENED = (
    '<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
    f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
)


def _chart(title: str, description: str, parts: Sequence[str]) -> str:
    return "\n".join(
        [
            _OPENED,
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(description)}</desc>",
            f"<style>{STYLE}</style>",
            _text(LEFT, 16, title, "title"),
            *parts,
            "</svg>\n",
        ]
    )


def _frame(scale: _Scale, across: str, up: str) -> Iterator[str]:
    """Lines across with their values, the axis, and what both axes are."""
    left, right, floor_line = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    for value in _round_values(*scale.up):
        y = scale.y(value)
        yield _line(left, y, right, y, "grid")
        yield _text(left - 8, y + 4, f"{value:g}", anchor="end")
    yield _line(left, floor_line, right, floor_line, "axis")
    yield _text((left + right) / 2, HEIGHT - 14, across, anchor="middle")
    middle = (TOP + floor_line) / 2
    turned = f' transform="rotate(-90 16 {middle:.1f})"'
    yield _text(16, middle, up, anchor="middle", more=turned)


def _tick(scale: _Scale, value: Number, name: str) -> str:
    x, y = scale.x(value), HEIGHT - BOTTOM
    return _line(x, y, x, y + 5, "axis") + _text(x, y + 20, name, anchor="middle")


def _bar(scale: _Scale, kind: Kind, side: int, capacity: int, share: float) -> str:
    """A bar beside its tick, with its height written on it where it has one."""
    slot = scale.x(2) - scale.x(1)
    width = 0.36 * slot
    x = scale.x(capacity) + (side - 1) * (width + 2) + 1
    top, bottom = scale.y(100 * share), scale.y(0)
    if not share:
        return ""
    shape = "hollow" if kind is Kind.ORACLE else ""
    bar = (
        f'<rect class="{kind} {shape}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{bottom - top:.1f}"/>'
    )
    return bar + _text(x + width / 2, top - 4, _percent(share), "small", anchor="middle")


def _percent(share: float) -> str:
    """In percent without its sign; what is little is not written as nothing."""
    return f"{100 * share:.0f}" if share >= 0.01 else f"{100 * share:.1f}"


def _best_by_capacity(fixed: Sequence[Point]) -> dict[float, Point]:
    ascending = sorted(fixed, key=lambda one: (one.capacity, one.score))
    return {one.capacity: one for one in ascending}


def _frontier(scale: _Scale, fixed: Sequence[Point]) -> str:
    """A line through the best fixed selection of each capacity."""
    corners = " ".join(
        f"{scale.x(one.capacity):.1f},{scale.y(100 * one.score):.1f}"
        for one in _best_by_capacity(fixed).values()
    )
    return f'<polyline class="frontier" points="{corners}"/>'


def _named_dots(scale: _Scale, points: Sequence[Point]) -> Iterator[str]:
    """Dots, of which the best of each capacity has its name above it.

    All twenty names would lie on one another; the others are told under the pointer.
    """
    best = _best_by_capacity(points)
    for one in points:
        x, y = scale.x(one.capacity), scale.y(100 * one.score)
        told = escape(f"{one.name}: {100 * one.score:.1f}")
        yield f"<g><title>{told}</title>{_shape(one.kind, x, y)}</g>"
        if one is best[one.capacity]:
            yield _text(x, y - 9, one.name, "small", anchor="middle")


def _mark(scale: _Scale, point: Point) -> str:
    """A large mark of its own shape with its figures; those of rivals stand below it."""
    x, y = scale.x(point.capacity), scale.y(100 * point.score)
    if point.kind is Kind.RIVAL:
        budget = point.name.split()[-1]
        name = _text(x, y + 21, f"{budget}: {100 * point.score:.1f}", "halo", anchor="middle")
    elif point.kind is Kind.BASELINE:
        inwards = "end" if x > WIDTH / 2 else "start"
        name = _text(x, y + 21, f"{point.name}: {100 * point.score:.1f}", "halo", anchor=inwards)
    else:
        name = _text(x - 4, y - 21, f"{point.name}: {100 * point.score:.1f}", "halo")
    return _shape(point.kind, x, y) + name


def _level(scale: _Scale, point: Point) -> str:
    """A line across at the height of a point that is too far to the right, with its figures."""
    y = scale.y(100 * point.score)
    told = f"{point.name}, {point.capacity:,.0f} vectors: {100 * point.score:.1f}"
    line = _line(LEFT, y, WIDTH - RIGHT, y, f"level {point.kind}")
    return line + _text(WIDTH - RIGHT - 4, y - 6, told, "halo", anchor="end")


def _shape(kind: Kind, x: Number, y: Number) -> str:
    """Circle, diamond, triangle up or down, or square: told apart without colour."""
    if kind is Kind.ADAPTIVE:
        corners = f"{x:.1f},{y - 9:.1f} {x + 9:.1f},{y:.1f} {x:.1f},{y + 9:.1f} {x - 9:.1f},{y:.1f}"
        return f'<polygon class="{kind}" points="{corners}"/>'
    if kind is Kind.ORACLE:
        corners = f"{x:.1f},{y - 9:.1f} {x + 9:.1f},{y + 7:.1f} {x - 9:.1f},{y + 7:.1f}"
        return f'<polygon class="{kind}" points="{corners}"/>'
    if kind is Kind.BASELINE:
        corners = f"{x:.1f},{y + 9:.1f} {x + 9:.1f},{y - 7:.1f} {x - 9:.1f},{y - 7:.1f}"
        return f'<polygon class="{kind}" points="{corners}"/>'
    if kind is Kind.RIVAL:
        return f'<rect class="{kind}" x="{x - 6:.1f}" y="{y - 6:.1f}" width="12" height="12"/>'
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'


def _legend(kinds: Sequence[Kind], *, bars: bool = False) -> str:
    """What each mark is, in a line under the title."""
    parts, x = [], float(LEFT + 6)
    for kind in kinds:
        hollow = " hollow" if kind is Kind.ORACLE else ""
        swatch = f'<rect class="{kind}{hollow}" x="{x - 6:.1f}" y="26" width="12" height="10"/>'
        parts.append(swatch if bars else f'<g transform="translate(0 0)">{_shape(kind, x, 31)}</g>')
        parts.append(_text(x + 14, 35, NAMES[kind], "small"))
        x += 34 + 6.2 * len(NAMES[kind])
    return "".join(parts)


def _shares(counts: Mapping[int, int]) -> dict[int, float]:
    total = sum(counts.values())
    return {capacity: count / total for capacity, count in sorted(counts.items())}


def _rounded_up(series: Sequence[tuple[Kind, Mapping[int, float]]]) -> float:
    """A height in percent that leaves room above the highest bar."""
    highest = max(share for _, shares in series for share in shares.values())
    return min(100.0, 10.0 * ceil(10 * highest)) + 4


def _rounded_range(low: float, high: float) -> tuple[Number, Number]:
    """Round values around those that are drawn, with room above and below for names."""
    room = max(high - low, 1.0)
    return max(0.0, floor(low - 0.12 * room)), ceil(high + 0.12 * room)


def _round_values(low: Number, high: Number) -> list[Number]:
    """Five values or so between two ends, at a step that people count in."""
    step = next(one for one in (0.5, 1, 2, 5, 10, 20, 50) if (high - low) / one <= 7)
    first = ceil(low / step)
    return [step * place for place in range(first, floor(high / step) + 1)]


def _line(x: Number, y: Number, to_x: Number, to_y: Number, style: str) -> str:
    return f'<line class="{style}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def _text(  # noqa: PLR0913 - where, what, and how
    x: Number, y: Number, words: str, style: str = "", *, anchor: str = "start", more: str = ""
) -> str:
    kind = f' class="{style}"' if style else ""
    return (
        f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'
    )
