"""The model card: what a model is for, what made it, and what it really reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from adaptiveembed import __version__
from adaptiveembed.evaluation.report import TIE_RULE
from adaptiveembed.pipeline.settings import to_table, to_toml

if TYPE_CHECKING:
    from adaptiveembed.pipeline.model import AdaptiveEmbed


def model_card(model: AdaptiveEmbed) -> str:
    """The card as Markdown, with the front matter that the hub reads."""
    return "\n".join(_lines(model)) + "\n"


def _lines(model: AdaptiveEmbed) -> Iterator[str]:
    facts, settings = model.facts, model.embedder.settings
    source, target = facts.direction.source, facts.direction.target
    yield "---"
    yield "library_name: adaptiveembed"
    yield f"tags: [retrieval, multi-vector, {source}, {target}]"
    yield "---"
    yield ""
    yield f"# {facts.recipe.name}: {source} and {target}"
    yield ""
    yield (
        f"Searches {target} by {source} and {source} by {target}. Every item has "
        f"{model.layout.num_candidates} vectors of {settings.dim} dimensions (layout "
        f"{model.layout}); every query is given as many of them as a learned policy decides."
    )
    yield ""
    yield "```python"
    yield "from adaptiveembed import AdaptiveEmbed"
    yield ""
    yield 'model = AdaptiveEmbed.from_pretrained("path/to/this/folder", check=True)'
    yield "queries = model.encode_query(...)"
    yield "scores = model.similarity(queries, model.encode_document(...))"
    yield "```"
    yield ""
    yield "## Made from"
    yield ""
    for name, count in facts.counts.items():
        yield f"* {count:,} pairs for {name}"
    for modality, encoder in facts.encoders.items():
        yield f"* {modality} encoded by `{encoder.name}`, fingerprint `{encoder.fingerprint}`"
    yield f"* adaptiveembed {__version__}"
    yield ""
    yield "## Reached on validation"
    yield ""
    yield "| figure | value |"
    yield "| :--- | ---: |"
    for name, value in facts.figures.items():
        yield f"| {name} | {value:.4f} |"
    for direction, threshold in model.thresholds.items():
        yield f"| threshold {direction} | {threshold:.4f} |"
    yield ""
    yield f"mAP as a fraction of 1, among training pairs. {TIE_RULE}"
    yield ""
    yield "## Recipe"
    yield ""
    yield "```toml"
    yield to_toml(to_table(facts.recipe)).rstrip()
    yield "```"
