"""What a search found, as it stands in a terminal."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from adaptiveembed.allocation.adaptive import Decision, Explanation
from adaptiveembed.pipeline.searching import Findings

SHOWN_BANK_ITEMS = 3


def print_findings(console: Console, findings: Findings, *, explain: bool = False) -> None:
    """The query with its capacity, and a line for every item."""
    selection = findings.selection
    heading = Text.assemble(
        ("\n" + shortened(findings.query, 240), "bold"),
        f"\n{vectors(selection.capacity)}, selection {selection} ({' '.join(selection.labels)})\n",
    )
    console.print(heading)
    if explain and findings.explanation is not None:
        console.print(explained(findings.explanation, findings.threshold or 0.0))
    table = plain_table("rank", "score", "id", "matched", "what it is")
    for rank, found in enumerate(findings.found, start=1):
        matched = " ".join(f"{mine}-{theirs}" for mine, theirs in found.matched)
        words = shortened(found.text or "", 120)
        shown = f"{near(found.media)}\n{words}" if found.media is not None else words
        table.add_row(str(rank), f"{found.score:.4f}", found.id, matched, shown)
    console.print(table)


def explained(explanation: Explanation, threshold: float) -> Text:
    """Every decision in words, with the threshold that it was held against."""
    lines = [_decision(decision, threshold) for decision in explanation.decisions]
    return Text("\n".join(lines) + "\n")


def near(path: Path) -> Path:
    """The path as seen from the current folder, where it lies below that."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def vectors(count: int) -> str:
    """A number of vectors in words."""
    return f"{count} vector" if count == 1 else f"{count} vectors"


def shortened(text: str, length: int) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def plain_table(*headers: str) -> Table:
    """A table without a frame, whose cells are folded where the terminal is narrow."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def _decision(decision: Decision, threshold: float) -> str:
    odds = ", ".join(f"{target} {share:.0%}" for target, share in decision.expansions.items())
    stops = decision.chosen == decision.state
    went = (
        f"no expansion is above the threshold of {threshold:.0%}, so it stops"
        if stops
        else f"above the threshold of {threshold:.0%}, so it goes on to {decision.chosen}"
    )
    nearest = ", ".join(
        f"{item} {score:.2f}"
        for item, score in zip(
            decision.bank_ids[:SHOWN_BANK_ITEMS],
            decision.bank_scores[:SHOWN_BANK_ITEMS],
            strict=True,
        )
    )
    return (
        f"at {decision.state}: stop {decision.stop:.0%}, {odds}; {went}\n"
        f"  nearest of the bank: {nearest}"
    )
