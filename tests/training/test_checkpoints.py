"""A checkpoint is whole or not there, and is refused where it does not belong."""

import json

import pytest
import torch

from adaptiveembed.errors import CheckpointError
from adaptiveembed.training import checkpoints
from adaptiveembed.training.checkpoints import (
    Checkpoint,
    Standing,
    checkpoints_in,
    read_checkpoint,
    require_same_facts,
    write_checkpoint,
)
from tests.training.toys import same_bits

FACTS = {"layout": "2+2", "optimizer.betas": (0.9, 0.999), "seed": 3}


def checkpoint(step=7, *, best=True):
    weights = {"layer.weight": torch.rand(3, 2).T, "counts": torch.arange(4)}
    memory = {"layer.weight:exp_avg": torch.rand(2, 3), "layer.weight:step": torch.tensor(7.0)}
    standing = Standing(step, 1.5, 0.25, step, {"mAP": 0.1 + 0.2}, misses=1)
    return Checkpoint(standing, FACTS, weights, memory, dict(weights) if best else {})


@pytest.mark.parametrize("best", [True, False])
def test_what_is_written_is_read_bit_for_bit(tmp_path, best):
    written = checkpoint(best=best)
    read = read_checkpoint(write_checkpoint(written, tmp_path))
    assert read.standing == written.standing
    assert all(
        same_bits(getattr(read, part), getattr(written, part))
        for part in ("model", "optimizer", "best")
    )
    require_same_facts(read.facts, FACTS, tmp_path)


def test_the_two_last_checkpoints_are_kept(tmp_path):
    for step in (1, 9, 10, 200):
        write_checkpoint(checkpoint(step), tmp_path)
    assert [path.name for path in checkpoints_in(tmp_path)] == ["step-000000010", "step-000000200"]


def test_a_write_that_fails_leaves_the_others_and_nothing_else(tmp_path, monkeypatch):
    write_checkpoint(checkpoint(1), tmp_path)
    monkeypatch.setattr(checkpoints, "_settle", lambda path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_checkpoint(checkpoint(2), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000001"]


def test_what_a_killed_writer_left_is_no_checkpoint_and_is_removed_by_the_next(tmp_path):
    left = tmp_path / ".step-abc"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half of it")
    assert checkpoints_in(tmp_path) == []
    write_checkpoint(checkpoint(1), tmp_path)
    assert not left.exists()


def test_a_step_that_is_there_already_is_left_as_it_is(tmp_path):
    path = write_checkpoint(checkpoint(1), tmp_path)
    before = read_checkpoint(path)
    assert write_checkpoint(checkpoint(1), tmp_path) == path
    assert same_bits(read_checkpoint(path).model, before.model)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "name", ["state.json", "model.safetensors", "optimizer.safetensors", "best.safetensors"]
)
@pytest.mark.parametrize("place", [0, 0.3, 0.6, 0.99])
def test_a_flipped_bit_anywhere_is_noticed_and_the_one_before_is_offered(tmp_path, name, place):
    write_checkpoint(checkpoint(1), tmp_path)
    file = write_checkpoint(checkpoint(2), tmp_path) / name
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"damaged.*remove .*2 to continue from step-0+1$"):
        read_checkpoint(file.parent)


@pytest.mark.parametrize("name", ["state.json", "model.safetensors", "best.safetensors"])
def test_a_missing_file_is_named(tmp_path, name):
    path = write_checkpoint(checkpoint(), tmp_path)
    (path / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name}.*remove .* to begin again"):
        read_checkpoint(path)


def test_a_state_without_what_it_needs_is_damaged_though_its_checksum_is_right(tmp_path):
    path = write_checkpoint(checkpoint(), tmp_path)
    sealed = json.loads((path / "state.json").read_text())
    del sealed["state"]["facts"]
    (path / "state.json").write_text(checkpoints._sealed(sealed["state"]))
    with pytest.raises(CheckpointError, match=r"state.json is damaged.*'facts'.*to begin again"):
        read_checkpoint(path)


def test_a_checkpoint_of_another_version_says_so(tmp_path):
    path = write_checkpoint(checkpoint(), tmp_path)
    sealed = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(checkpoints._sealed(sealed["state"] | {"version": 99}))
    with pytest.raises(CheckpointError, match=r"version 99.*reads version 1"):
        read_checkpoint(path)


def test_another_training_is_refused_by_what_differs(tmp_path):
    given = FACTS | {"layout": "3+5", "seed": 4, "text": "new"}
    wanted = r"layout was '2\+2' and is '3\+5'; seed was 3 and is 4; text was not set and is 'new'"
    with pytest.raises(CheckpointError, match=wanted):
        require_same_facts({**FACTS, "optimizer.betas": [0.9, 0.999]}, given, tmp_path)


def test_many_differences_are_counted(tmp_path):
    with pytest.raises(CheckpointError, match=r"a was .*b was .*c was .*, and 2 more"):
        require_same_facts(dict.fromkeys("abcde", 0), dict.fromkeys("abcde", 1), tmp_path)


def test_only_a_higher_figure_is_an_improvement():
    standing = Standing(step=1).judged({"mAP": 0.5}, "mAP")
    equal = Standing(step=2, best_step=1, best={"mAP": 0.5}).judged({"mAP": 0.5}, "mAP")
    assert (standing.best_step, standing.misses) == (1, 0)
    assert (equal.best_step, equal.misses) == (1, 1)
    better = Standing(step=3, best_step=1, best={"mAP": 0.5}, misses=4).judged({"mAP": 1.0}, "mAP")
    assert (better.best_step, better.misses, better.best) == (3, 0, {"mAP": 1})
