"""The embedders, policies and losses of this library are trained by the loop as it is."""

from dataclasses import replace

import pytest
import torch

from adaptiveembed.allocation.policy import PolicyKind
from adaptiveembed.allocation.upo import upo_loss
from adaptiveembed.errors import CheckpointError
from adaptiveembed.representation.embedder import PairEmbedder
from adaptiveembed.representation.metaembed import Budget, MetaEmbedder, MetaEmbedLoss, by_role
from adaptiveembed.representation.mgcl import MultiGroupContrastiveLoss, whole_set
from adaptiveembed.training.stage_one import _StageOne, train_embedder
from adaptiveembed.training.stage_two import _StageTwo, train_policy
from tests.training.small import MGCL, POLICY, SETTINGS, embedder, examples, policy
from tests.training.test_gradient_cache import ITEMS, gradient, plain_gradient
from tests.training.toys import LAYOUT, STAGE_ONE, STAGE_TWO, differ, same_bits, toy_pairs

WITHOUT_MGCL = MultiGroupContrastiveLoss(LAYOUT, whole_set(LAYOUT), 0.1)
ROLES = by_role(SETTINGS, "2+4")
METAEMBED = MetaEmbedLoss(ROLES.group_layout, (Budget(1, 1), Budget(2, 4)), 0.1)

STAGES = pytest.mark.parametrize(
    ("kind", "settings", "objective"),
    [
        (PairEmbedder, SETTINGS, MGCL),
        (PairEmbedder, SETTINGS, WITHOUT_MGCL),
        (MetaEmbedder, ROLES, METAEMBED),
    ],
    ids=["mgcl", "without mgcl", "metaembed"],
)


@STAGES
def test_an_embedder_learns_and_goes_on_bit_for_bit(tmp_path, kind, settings, objective):
    seen = []

    def progress(done, total, facts=None):
        seen.append(facts["loss"])
        if done == 4 and len(seen) == 4:
            raise InterruptedError

    run = replace(STAGE_ONE, checkpoint_steps=3)
    model = embedder(kind, settings)
    train_embedder(model, toy_pairs(same=2), objective, run, tmp_path / "undisturbed")
    again = embedder(kind, settings)
    with pytest.raises(InterruptedError):
        train_embedder(again, toy_pairs(same=2), objective, run, tmp_path, progress=progress)
    train_embedder(again, toy_pairs(same=2), objective, run, tmp_path, progress=progress)
    assert same_bits(model, again)
    assert seen[-1] < seen[0]


@STAGES
@pytest.mark.parametrize("share", [0.0, 0.4])
def test_any_micro_batch_gives_an_embedder_the_gradient_of_the_full_batch(
    kind, settings, objective, share
):
    def task_of(size):
        model = embedder(kind, replace(settings, dropout=share, state_dropout=share)).train()
        run = replace(STAGE_ONE, micro_batch=size)
        return _StageOne(model, toy_pairs(same=5), objective, run)

    loss, whole = plain_gradient(task_of(None), ITEMS)
    for size in (None, 1, 4):
        found_loss, found = gradient(task_of(size), ITEMS)
        assert differ(found, whole) < 1e-6
        assert float(found_loss) == pytest.approx(float(loss), rel=1e-6)


@pytest.mark.parametrize("kind", list(PolicyKind))
def test_any_micro_batch_gives_a_policy_the_gradient_of_the_full_batch(kind):
    def task_of(size):
        run = replace(STAGE_TWO, micro_batch=size)
        return _StageTwo(policy(replace(POLICY, kind=kind)), examples(), upo_loss, run)

    whole = task_of(None)
    loss = upo_loss(whole.model(whole.examples.inputs[ITEMS]), whole.examples.utilities[ITEMS])
    gradients = torch.autograd.grad(loss, whole.model.parameters())
    wanted = torch.cat([each.flatten() for each in gradients])
    for size in (None, 1, 4):
        assert differ(gradient(task_of(size), ITEMS)[1], wanted) < 1e-6


def test_another_embedder_or_temperature_is_another_training(tmp_path):
    def train(model, objective, epochs=1):
        run = replace(STAGE_ONE, epochs=epochs)
        return train_embedder(model, toy_pairs(), objective, run, tmp_path)

    train(embedder(), MGCL)
    with pytest.raises(CheckpointError, match=r"objective.temperature was '0.1' and is '0.2'"):
        train(embedder(), replace(MGCL, temperature=0.2))
    with pytest.raises(CheckpointError, match=r"model.dropout was '0.2' and is '0.5'"):
        train(embedder(settings=replace(SETTINGS, dropout=0.5)), MGCL)


@pytest.mark.parametrize("kind", list(PolicyKind))
def test_a_policy_learns_the_better_action(tmp_path, kind):
    learner = policy(replace(POLICY, kind=kind))
    # to stop is worth nothing, every expansion one
    worth = learner.actions.admissible.float()
    worth[:, 0] = 0
    taught = replace(examples(), utilities=worth.repeat(24, 1, 1))
    run = replace(STAGE_TWO, epochs=15)
    summary = train_policy(learner, taught, upo_loss, run, tmp_path)
    assert summary.loss < -0.9
