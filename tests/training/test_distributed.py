"""Two processes compute what one computes, and agree on everything that they decide."""

import pytest
import torch
from torch import nn

from adaptiveembed.errors import TrainingError
from adaptiveembed.training import stage_one
from adaptiveembed.training.checkpoints import checkpoints_in, read_checkpoint
from adaptiveembed.training.distributed import ALONE, Process, add_up, current, gather
from adaptiveembed.training.scalars import read_scalars
from adaptiveembed.training.settings import LastBatch
from tests.training.processes import gradients, run_apart, trainings
from tests.training.toys import differ, same_bits, toy_pairs, train_one


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """A folder with what two processes did, and what they returned."""
    folder = tmp_path_factory.mktemp("apart")
    return folder, run_apart(folder, 2)


def test_two_processes_have_the_gradient_of_one(apart, tmp_path):
    alone = gradients(tmp_path, 0)
    for found in apart[1]["gradients"]:
        assert found.keys() == alone.keys()
        for name, wanted in alone.items():
            assert differ(found[name], wanted) < 1e-6, name


def test_two_processes_train_what_one_trains(apart, tmp_path):
    alone = trainings(tmp_path, 0)
    first, second = apart[1]["trainings"]
    assert same_bits(first, second)
    assert all(differ(first[name], wanted) < 1e-4 for name, wanted in alone.items())


def test_the_first_process_writes_as_one_alone_would(apart):
    folder, (first, _) = apart[0] / "trainings", apart[1]["trainings"]
    assert [line["step"] for line in read_scalars(folder / "one")] == list(range(1, 10))
    best = read_checkpoint(checkpoints_in(folder / "one/checkpoints")[-1]).best
    assert all(torch.equal(first[name], weight) for name, weight in best.items())


def test_all_processes_end_after_the_same_step_when_one_is_asked_to(apart):
    folder, found = apart[0] / "interrupted", apart[1]["interrupted"]
    assert [int(each["steps"]) for each in found] == [4, 4]
    (stored,) = checkpoints_in(folder / "checkpoints")
    assert read_checkpoint(stored).standing.step == 4


def test_all_processes_end_when_one_is_asked_to_after_the_last_step(apart):
    folder, found = apart[0] / "interrupted_at_the_end", apart[1]["interrupted_at_the_end"]
    assert [int(each["finished"]) for each in found] == [1, 1]
    stored = checkpoints_in(folder / "checkpoints")[-1]
    assert read_checkpoint(stored).standing.finished


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("num_items", [5, 6, 13])
def test_shares_follow_each_other_and_differ_by_one_at_most(size, num_items):
    shares = [Process(rank, size).share(num_items) for rank in range(size)]
    items = [item for share in shares for item in range(num_items)[share]]
    assert items == list(range(num_items))
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_without_a_group_a_process_is_alone():
    assert current() == ALONE
    rows = torch.randn(3, 2, requires_grad=True)
    assert torch.equal(gather(rows, 3, ALONE), rows)
    assert not gather(rows, 3, ALONE).requires_grad
    weight = nn.Parameter(torch.zeros(2))
    assert add_up([weight], torch.ones(1), ALONE).tolist() == [1]
    assert weight.grad is None


def test_a_batch_too_small_for_the_processes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(stage_one, "current", lambda: Process(0, 4))
    changes = {"last_batch": LastBatch.KEEP}
    with pytest.raises(TrainingError, match="a batch of 3 pairs is too small for 4 processes"):
        train_one(tmp_path, pairs=toy_pairs(19), changes=changes)
