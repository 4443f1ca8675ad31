"""Examples are joined, cut and told apart as Stage II needs them, and their gradient is Eq. 4's."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from adaptiveembed.allocation.actions import Actions
from adaptiveembed.allocation.upo import upo_loss
from adaptiveembed.errors import EmptyBatchError, ShapeError, TrainingError
from adaptiveembed.structure.space import coarse_to_fine
from adaptiveembed.training.settings import LastBatch
from adaptiveembed.training.stage_two import PolicyExamples, train_policy
from tests.reference import upo as literal
from tests.training.toys import (
    ACTIONS,
    LAYOUT,
    STAGE_TWO,
    STATES,
    ToyPolicy,
    same_bits,
    toy_examples,
    train_two,
)

ADMISSIBLE = Actions(coarse_to_fine(LAYOUT)).admissible


class TablePolicy(torch.nn.Module):
    """A logit of its own for every sample, state and action; its samples are found by number."""

    def __init__(self, samples):
        super().__init__()
        self.logits = torch.nn.Parameter(torch.zeros(samples, *ADMISSIBLE.shape))

    def forward(self, inputs):
        numbers = inputs.top_items[:, 0, 0]
        return self.logits[numbers].masked_fill(~ADMISSIBLE, -torch.inf)


def numbered_examples(samples=6, seed=0):
    """Examples of the library's space whose first top item is the number of the sample."""
    examples = toy_examples(samples)
    examples.inputs.top_items[:, 0, 0] = torch.arange(samples)
    chance = torch.Generator().manual_seed(seed)
    utilities = torch.randn(samples, *ADMISSIBLE.shape, generator=chance) * ADMISSIBLE
    utilities[..., 0] = 0
    return replace(examples, utilities=utilities)


def test_one_step_on_a_table_is_the_closed_form(tmp_path):
    """The first step of AdamW is the gradient where rate and epsilon are equal and large."""
    examples, policy, epsilon = numbered_examples(), TablePolicy(6), 1e6
    optimizer = replace(
        STAGE_TWO.optimizer, learning_rate=epsilon, epsilon=epsilon, weight_decay=0.0
    )
    settings = replace(STAGE_TWO, optimizer=optimizer, batch_size=6, epochs=1, micro_batch=4)
    train_policy(policy, examples, upo_loss, settings, tmp_path)
    start = torch.zeros(6, *ADMISSIBLE.shape).masked_fill(~ADMISSIBLE, -torch.inf)
    rows = zip(start.flatten(0, 1).tolist(), examples.utilities.flatten(0, 1).tolist(), strict=True)
    expected = -torch.tensor(literal.gradient(list(rows))).view_as(policy.logits)
    torch.testing.assert_close(policy.logits.detach(), expected, rtol=1e-4, atol=1e-7)


def test_a_table_of_logits_converges_to_the_best_action(tmp_path):
    examples, policy = numbered_examples(), TablePolicy(6)
    optimizer = replace(STAGE_TWO.optimizer, learning_rate=0.2)
    settings = replace(STAGE_TWO, optimizer=optimizer, epochs=60, batch_size=4)
    train_policy(policy, examples, upo_loss, settings, tmp_path)
    best = examples.utilities.masked_fill(~ADMISSIBLE, -torch.inf).argmax(dim=-1)
    found = policy.logits.masked_fill(~ADMISSIBLE, -torch.inf).argmax(dim=-1)
    assert torch.equal(found, best)


def test_the_last_samples_are_kept_or_dropped_as_set(tmp_path):
    sizes = []

    class Counting(ToyPolicy):
        def forward(self, inputs):
            sizes.append(len(inputs))
            return super().forward(inputs)

    for last_batch in LastBatch:
        changes = {"epochs": 1, "last_batch": last_batch}
        train_two(tmp_path / last_batch, Counting(), toy_examples(21), changes)
    assert sizes == [8, 8, 8, 8, 5]


def test_both_directions_are_joined_sample_by_sample():
    one, other = numbered_examples(4, seed=1), numbered_examples(3, seed=2)
    joined = PolicyExamples.concatenate([one, other])
    assert len(joined) == 7
    assert torch.equal(joined.utilities, torch.cat([one.utilities, other.utilities]))
    assert joined.inputs.top_items[:, 0, 0].tolist() == [0, 1, 2, 3, 0, 1, 2]
    with pytest.raises(EmptyBatchError, match="nothing to concatenate"):
        PolicyExamples.concatenate([])


def test_samples_that_are_taken_out_keep_their_utilities():
    examples, chosen = toy_examples(9), torch.tensor([7, 2])
    part = examples[chosen]
    assert torch.equal(part.utilities, examples.utilities[chosen])
    assert torch.equal(part.inputs.feedback, examples.inputs.feedback[chosen])


def test_the_order_of_the_samples_decides_the_order_of_learning_alone(tmp_path):
    """With one batch an epoch, turned samples teach the same."""
    examples = toy_examples(8)
    order = torch.from_numpy(np.random.default_rng(0).permutation(8))
    changes = {"epochs": 3, "batch_size": 8}
    one, _ = train_two(tmp_path / "one", ToyPolicy(), examples, changes)
    other, _ = train_two(tmp_path / "other", ToyPolicy(), examples[order], changes)
    for found, wanted in zip(other.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["candidates", "feedback", "top scores", "utilities"])
def test_a_changed_number_changes_the_fingerprint(name):
    examples = toy_examples(5)
    before = examples.fingerprint
    assert toy_examples(5).fingerprint == before
    examples.named_tensors[name].view(-1)[3] += 1e-3
    assert examples.fingerprint != before


@pytest.mark.parametrize("name", ["candidates", "feedback", "top scores", "utilities"])
def test_what_is_not_finite_is_named_with_its_sample(tmp_path, name):
    examples = toy_examples()
    examples.named_tensors[name][11].view(-1)[0] = torch.inf
    with pytest.raises(TrainingError, match=rf"the {name} of sample 11 hold NaN or infinity"):
        train_two(tmp_path, examples=examples)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shape", [(5, STATES, ACTIONS), (24, STATES)])
def test_utilities_of_another_shape_are_refused(shape):
    with pytest.raises(ShapeError, match=r"inputs of 24 samples and utilities \(.*give utilities"):
        PolicyExamples(toy_examples().inputs, torch.zeros(shape))


def test_training_in_parts_ends_as_training_whole(tmp_path):
    whole, _ = train_two(tmp_path / "whole", ToyPolicy())
    parts, _ = train_two(tmp_path / "parts", ToyPolicy(), changes={"micro_batch": 3})
    assert not same_bits(whole, ToyPolicy())
    for found, wanted in zip(parts.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_a_shift_of_all_actions_of_a_state_changes_nothing_that_is_learned(tmp_path):
    examples = toy_examples()
    shifts = torch.randn(24, STATES, 1, generator=torch.Generator().manual_seed(8))
    shifted = replace(examples, utilities=examples.utilities + shifts)
    one, summary = train_two(tmp_path / "one", ToyPolicy(), examples)
    other, shifted_summary = train_two(tmp_path / "other", ToyPolicy(), shifted)
    for found, wanted in zip(other.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    assert summary.loss != pytest.approx(shifted_summary.loss, abs=1e-3)
