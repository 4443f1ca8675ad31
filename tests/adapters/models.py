"""A model of texts and pictures that nobody trained: its policy still divides its queries."""

from functools import cache

from adaptiveembed.allocation.adaptive import AdaptiveAllocator
from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import FeedbackSettings
from adaptiveembed.allocation.policy import PolicySettings, make_policy
from adaptiveembed.pipeline.inputs import EncoderFacts, encoded_in_batches
from adaptiveembed.pipeline.model import AdaptiveEmbed, ModelFacts
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.structure import Direction, Modality
from tests.pipeline.tiny import NAMES, Cells, Words, facts, picture_of, text_of, tiny_recipe

TEXT, IMAGE = Modality.TEXT, Modality.IMAGE
# The words of a text have no order, so only one of "red on blue" and "blue on red" is among them.
FACTS = [fact for fact in facts(120) if fact[0] < fact[1]]
TEXTS = tuple(text_of(*one) for one in FACTS)
PICTURES = tuple(picture_of(*one) for one in FACTS)
DEPTH = 5
THRESHOLDS = {TEXT: 0.4, IMAGE: 0.46}
"""Of the queries of either modality, some are expanded and some are not."""


@cache
def small_model(*, seed=0, encoder="words-1"):
    recipe = tiny_recipe()
    texts = encoded_in_batches(Words(), TEXTS, 32)
    pictures = encoded_in_batches(Cells(), PICTURES, 32)
    settings = recipe.representation.embedder
    embedder = PairEmbedder.fitted(settings, (TEXT, texts), (IMAGE, pictures), range(60), seed)
    direction = Direction(TEXT, IMAGE)
    banks = {
        direction: embedder.embed(IMAGE, pictures),
        direction.reversed: embedder.embed(TEXT, texts),
    }
    encoders = {
        TEXT: EncoderFacts(NAMES[TEXT], encoder),
        IMAGE: EncoderFacts(NAMES[IMAGE], Cells.fingerprint),
    }
    allocators = {
        asked: _allocator(recipe, bank, THRESHOLDS[asked.source]) for asked, bank in banks.items()
    }
    return AdaptiveEmbed(
        embedder.eval(), allocators, ModelFacts(recipe, direction, encoders, {}, {})
    )


def _allocator(recipe, bank, threshold):
    dim = recipe.representation.embedder.dim
    policy = make_policy(PolicySettings(width=8, heads=2), recipe.space, dim, DEPTH, seed=3)
    ids = tuple(f"b{item}" for item in range(len(bank)))
    feedback = FeedbackSettings(depth=DEPTH)
    return AdaptiveAllocator(policy, RetrievalBank(ids, bank), threshold, feedback)
