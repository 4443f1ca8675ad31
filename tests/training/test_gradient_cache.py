"""Parts of a batch give the gradient of the whole batch."""

from dataclasses import replace

import pytest
import torch

from adaptiveembed.training.gradient_cache import backward_in_parts
from adaptiveembed.training.stage_one import _StageOne
from adaptiveembed.training.stage_two import _StageTwo
from tests.training.toys import (
    STAGE_ONE,
    STAGE_TWO,
    TEXT,
    ToyEmbedder,
    ToyPolicy,
    contrast,
    differ,
    expected_loss,
    toy_examples,
    toy_pairs,
)


def gradient(task, items, step=4):
    """The loss of a batch and its gradient as one vector."""
    task.model.zero_grad()
    loss = task.backward(task.prepare(items), step)
    return loss, torch.cat([weight.grad.flatten() for weight in task.model.parameters()])


def stage_one(micro_batch, share, same=0):
    settings = replace(STAGE_ONE, micro_batch=micro_batch)
    return _StageOne(ToyEmbedder(share), toy_pairs(same=same), contrast, settings)


def plain_gradient(task, items):
    """By autograd through the whole batch at once, as one would write it."""
    loss = task.objective(*task._embed(task._read(items), 4), task._same_item(items))
    gradients = torch.autograd.grad(loss, task.model.parameters())
    return loss.detach(), torch.cat([each.flatten() for each in gradients])


ITEMS = torch.randperm(24, generator=torch.Generator().manual_seed(0))[:13]


@pytest.mark.parametrize("same", [0, 5])
@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("micro_batch", [None, 1, 3, 5, 12, 13, 50])
def test_any_micro_batch_gives_the_gradient_of_the_full_batch(micro_batch, share, same):
    loss, found = gradient(stage_one(micro_batch, share, same), ITEMS)
    plain_loss, wanted = plain_gradient(stage_one(None, share, same), ITEMS)
    assert differ(found, wanted) < 1e-6
    assert float(loss) == pytest.approx(float(plain_loss), rel=1e-6)


def test_gradients_of_single_items_would_not_add_up_to_it():
    """So the test above is not passed by a loss over parts."""
    parts = [gradient(stage_one(None, 0.0), part)[1] for part in ITEMS.split(5)]
    whole = plain_gradient(stage_one(None, 0.0), ITEMS)[1]
    assert differ(torch.stack(parts).mean(dim=0), whole) > 0.1


def test_masks_of_dropout_change_with_the_step_and_with_the_seed():
    task = stage_one(3, 0.4)
    other_seed = replace(task, settings=replace(task.settings, seed=1))
    first = gradient(task, ITEMS)[1]
    assert differ(first, gradient(task, ITEMS, step=5)[1]) > 1e-3
    assert differ(first, gradient(other_seed, ITEMS)[1]) > 1e-3
    assert torch.equal(first, gradient(task, ITEMS)[1])


def test_a_whole_batch_is_embedded_once_and_parts_twice():
    whole, parts = stage_one(None, 0.0), stage_one(5, 0.0)
    gradient(whole, ITEMS)
    gradient(parts, ITEMS)
    assert (whole.model.passes, parts.model.passes) == (2, 3 * 2 * 2)


def test_the_gradient_is_added_to_what_the_weights_already_have():
    weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
    parts = [torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0]])]
    for _ in range(2):
        loss = backward_in_parts(
            lambda part: (part * weight,), parts, lambda rows: rows.sum() ** 2, 3
        )
    # (6 · (2 + 3))² and its derivative 2 · 30 · 6, twice
    assert float(loss) == 900
    assert weight.grad.tolist() == [720, 720]


def test_dropout_of_the_models_own_is_the_same_in_both_passes():
    """Such masks depend on the micro-batches, yet gradient and loss belong together."""
    torch.manual_seed(0)
    layer, dropout = torch.nn.Linear(3, 3), torch.nn.Dropout(0.5)
    rows = torch.randn(8, 3)

    def embed(part):
        torch.manual_seed(part)
        return (dropout(layer(rows[4 * part : 4 * part + 4])),)

    backward_in_parts(embed, [0, 1], lambda vectors: vectors.pow(3).sum(), 8)
    found = layer.weight.grad.clone()
    whole = torch.cat([embed(0)[0], embed(1)[0]]).pow(3).sum()
    assert differ(found, torch.autograd.grad(whole, layer.weight)[0]) < 1e-6


class OwnDropout(ToyEmbedder):
    """Draws its masks from torch's generator, as models from elsewhere do."""

    def __init__(self):
        super().__init__()
        self.dropout, self.seen = torch.nn.Dropout(0.4), []

    def forward(self, modality, encoded, dropout_keys=None):
        vectors = super().forward(modality, encoded, dropout_keys)
        self.seen.append(vectors.detach())
        return vectors


def test_stage_one_has_such_a_model_draw_alike_whatever_was_drawn_before():
    task, gradients = replace(stage_one(5, 0.0), model=OwnDropout()), []
    for disturbance in (1, 2):
        torch.manual_seed(disturbance)
        gradients.append(gradient(task, ITEMS)[1])
    assert torch.equal(*gradients)
    without_graph, with_graph = task.model.seen[:6], task.model.seen[6:12]
    assert all(map(torch.equal, without_graph, with_graph))
    assert not torch.equal(without_graph[0], ToyEmbedder()(TEXT, task._read(ITEMS[:5]).source))


@pytest.mark.parametrize("micro_batch", [1, 5, 13])
def test_parts_of_samples_give_the_gradient_of_stage_two(micro_batch):
    def gradient_of(size):
        settings = replace(STAGE_TWO, micro_batch=size)
        return gradient(_StageTwo(ToyPolicy(), toy_examples(), expected_loss, settings), ITEMS)

    (loss, found), (whole_loss, wanted) = gradient_of(micro_batch), gradient_of(None)
    assert differ(found, wanted) < 1e-6
    assert float(loss) == pytest.approx(float(whole_loss), rel=1e-6)
