"""Embedders, policies and losses of this library, so small that a step takes milliseconds."""

from dataclasses import replace

import torch

from adaptiveembed.allocation.bank import RetrievalBank
from adaptiveembed.allocation.feedback import FeedbackSettings, policy_inputs
from adaptiveembed.allocation.policy import PolicySettings, make_policy
from adaptiveembed.allocation.upo import upo_loss
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.representation.mgcl import MultiGroupContrastiveLoss, group_prefixes
from adaptiveembed.representation.settings import EmbedderSettings
from adaptiveembed.structure.space import coarse_to_fine
from adaptiveembed.training.stage_one import train_embedder
from adaptiveembed.training.stage_two import PolicyExamples, train_policy
from tests.training.toys import IMAGE, LAYOUT, STAGE_ONE, STAGE_TWO, TEXT, toy_pairs

DEPTH = 5
SETTINGS = EmbedderSettings(
    dim=8, layout="2+2", width=16, layers=1, heads=2, feed_forward=16, dropout=0.2
)
MGCL = MultiGroupContrastiveLoss(LAYOUT, group_prefixes(LAYOUT), 0.1)
POLICY = PolicySettings(width=16, heads=2)


def embedder(kind=PairEmbedder, settings=SETTINGS):
    pairs = toy_pairs()
    return kind.fitted(settings, (TEXT, pairs.source), (IMAGE, pairs.target), range(24), seed=0)


def policy(settings=POLICY):
    return make_policy(settings, coarse_to_fine(LAYOUT), SETTINGS.dim, DEPTH)


def examples():
    """Those of an untrained embedder, with utilities out of the air."""
    pairs, model = toy_pairs(), embedder()
    bank = RetrievalBank(pairs.ids, model.embed(IMAGE, pairs.target))
    text = model.embed(TEXT, pairs.source)
    inputs = policy_inputs(text, bank, coarse_to_fine(LAYOUT), FeedbackSettings(depth=DEPTH))
    admissible = policy().actions.admissible
    chance = torch.Generator().manual_seed(4)
    return PolicyExamples(inputs, torch.randn(24, *admissible.shape, generator=chance) * admissible)


def train_small_embedder(folder, changes, **listeners):
    settings = replace(STAGE_ONE, **changes)
    return train_embedder(embedder(), toy_pairs(same=3), MGCL, settings, folder, **listeners)


def train_small_policy(folder, changes, **listeners):
    settings = replace(STAGE_TWO, **changes)
    return train_policy(policy(), examples(), upo_loss, settings, folder, **listeners)
