"""A training that was stopped, however it was, ends with the bits of one that was not."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from adaptiveembed.errors import CheckpointError
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.training.checkpoints import checkpoints_in, read_checkpoint
from adaptiveembed.training.scalars import read_scalars
from adaptiveembed.training.settings import Autocast, OptimizerSettings, Schedule
from tests.training.toys import (
    ToyEmbedder,
    encoded,
    same_bits,
    toy_examples,
    toy_pairs,
    train_one,
    train_two,
    validate,
)

ROOT = Path(__file__).parents[2]
COSINE = OptimizerSettings(
    learning_rate=0.02, schedule=Schedule.COSINE, warmup=0.3, clip_norm=0.5, weight_decay=0.1
)


class Killed(BaseException):
    """Stands for an end without warning: nothing catches it."""


def killer(moment):
    def progress(done, total, facts=None):
        if done == moment:
            raise Killed

    return progress


def interrupter(moment):
    def progress(done, total, facts=None):
        if done == moment:
            os.kill(os.getpid(), signal.SIGINT)

    return progress


def end(folder):
    return read_checkpoint(checkpoints_in(folder / "checkpoints")[-1])


@pytest.mark.parametrize("stage", [train_one, train_two])
def test_killed_and_started_again_it_ends_bit_for_bit_the_same(tmp_path, stage):
    changes = {"optimizer": COSINE, "checkpoint_steps": 2}
    model, summary = stage(tmp_path / "undisturbed", changes=changes, validate=validate)
    for moment in (1, 4, 5, 8):
        with pytest.raises(Killed):
            stage(tmp_path / "killed", changes=changes, validate=validate, progress=killer(moment))
        torch.rand(7)  # what happens in between has no part in it
    again, summary_again = stage(tmp_path / "killed", changes=changes, validate=validate)
    assert same_bits(model, again)
    one, other = end(tmp_path / "undisturbed"), end(tmp_path / "killed")
    assert all(
        same_bits(getattr(one, part), getattr(other, part))
        for part in ("model", "optimizer", "best")
    )
    assert (summary.best, summary.loss) == (summary_again.best, summary_again.loss)


def test_a_validation_that_draws_draws_the_same_when_it_is_continued(tmp_path):
    def drawn(model):
        return {"mAP": float(torch.rand(()))}

    _, summary = train_one(tmp_path / "undisturbed", validate=drawn)
    with pytest.raises(Killed):
        train_one(tmp_path / "killed", validate=drawn, progress=killer(5))
    _, again = train_one(tmp_path / "killed", validate=drawn, changes={"micro_batch": 3})
    assert (again.best, again.best_step) == (summary.best, summary.best_step)


def test_no_step_is_logged_twice_or_left_out(tmp_path):
    with pytest.raises(Killed):
        train_one(tmp_path, changes={"checkpoint_steps": 2}, progress=killer(6))
    train_one(tmp_path, changes={"checkpoint_steps": 2}, validate=validate)
    assert [line["step"] for line in read_scalars(tmp_path)] == list(range(1, 10))


def test_a_killed_process_is_continued_bit_for_bit():
    """The long form is ``python -m tests.kills.training`` itself, of more steps."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.kills.training", "--kills=3", "--epochs=4", "--seed=0"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.stdout.count("ends with the same bits") == 2, done.stdout + done.stderr


@pytest.mark.parametrize("stage", [train_one, train_two])
def test_ctrl_c_finishes_the_step_and_stores_it(tmp_path, stage):
    with pytest.raises(KeyboardInterrupt, match=r"after step 5; its state is in .*goes on"):
        stage(tmp_path, progress=interrupter(4))
    # the signal comes while step 4 is told, so the next one is the last
    assert end(tmp_path).standing.step == 5
    interrupted, _ = stage(tmp_path)
    undisturbed, _ = stage(tmp_path / "undisturbed")
    assert same_bits(interrupted, undisturbed)


@pytest.mark.parametrize("stage", [train_one, train_two])
@pytest.mark.parametrize("moment", [8, 9])
def test_ctrl_c_in_the_last_step_ends_too_and_goes_on_behind_it(tmp_path, stage, moment):
    with pytest.raises(KeyboardInterrupt, match=r"after step 9; its state is in .*goes on"):
        stage(tmp_path, progress=interrupter(moment))
    assert end(tmp_path).standing.finished
    interrupted, summary = stage(tmp_path)
    undisturbed, wanted = stage(tmp_path / "undisturbed")
    assert same_bits(interrupted, undisturbed)
    assert (summary.steps, summary.loss) == (wanted.steps, wanted.loss)


def test_ctrl_c_while_the_last_step_is_validated_ends_too(tmp_path):
    def pressed(model):
        os.kill(os.getpid(), signal.SIGINT)
        return validate(model)

    with pytest.raises(KeyboardInterrupt, match="after step 9"):
        train_one(tmp_path, validate=pressed, changes={"validate_epochs": 3})
    assert train_one(tmp_path, validate=validate, changes={"validate_epochs": 3})[1].steps == 9


def test_the_handlers_of_signals_are_put_back(tmp_path):
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    train_one(tmp_path)
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_thread_may_train_though_it_may_not_decide_on_signals(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(1) as worker:
        model, _ = worker.submit(train_one, tmp_path / "thread").result()
    assert signal.getsignal(signal.SIGINT) is before
    assert same_bits(model, train_one(tmp_path / "main")[0])


def test_a_second_ctrl_c_ends_at_once(tmp_path):
    def twice(done, total, facts=None):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=r"^$"):
        train_one(tmp_path, progress=twice)
    assert not (tmp_path / "checkpoints").exists()


def test_a_finished_training_is_found_finished(tmp_path):
    model, summary = train_one(tmp_path, validate=validate)
    seen = []
    again, summary_again = train_one(
        tmp_path, validate=validate, progress=lambda *facts: seen.append(facts)
    )
    assert same_bits(model, again)
    assert summary == summary_again
    assert seen == []


def test_the_start_of_the_model_has_no_part_in_a_continued_training(tmp_path):
    model, _ = train_one(tmp_path)
    again, _ = train_one(tmp_path, model=ToyEmbedder(share=0.3, seed=9))
    assert same_bits(model, again)


def interrupted(folder, **arguments):
    with pytest.raises(KeyboardInterrupt):
        train_one(folder, progress=interrupter(2), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"changes": {"seed": 1}}, "seed was 0 and is 1"),
        ({"changes": {"epochs": 5}}, "epochs was 3 and is 5"),
        (
            {"changes": {"optimizer": OptimizerSettings(learning_rate=0.5)}},
            r"optimizer.learning_rate was 0.02 and is 0.5",
        ),
        ({"changes": {"bf16": Autocast.ON}}, "autocast to bfloat16 was False and is True"),
        ({"pairs": toy_pairs(25)}, "pairs was '24 of .*' and is '25 of"),
        ({"model": ToyEmbedder(layout=GroupLayout((1, 3)))}, r"layout was '2\+2' and is '1\+3'"),
        ({"facts": {"encoder": "new"}}, "encoder was not set and is 'new'"),
    ],
)
def test_another_training_is_refused_and_nothing_is_lost(tmp_path, change, message):
    interrupted(tmp_path)
    before = sorted(path for path in tmp_path.rglob("*"))
    with pytest.raises(CheckpointError, match=f"belongs to another training: {message}"):
        train_one(tmp_path, **change)
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_other_features_of_the_same_pairs_are_other_data(tmp_path):
    interrupted(tmp_path)
    pairs = toy_pairs()
    object.__setattr__(pairs, "target", encoded(24, 77))
    with pytest.raises(CheckpointError, match="pairs was"):
        train_one(tmp_path, pairs=pairs)


def test_other_examples_of_a_policy_are_other_data(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train_two(tmp_path, progress=interrupter(2))
    examples = toy_examples()
    examples.utilities[0, 0, 1] += 1
    with pytest.raises(CheckpointError, match="examples was"):
        train_two(tmp_path, examples=examples)


def test_a_model_of_other_weights_is_refused(tmp_path):
    interrupted(tmp_path)
    model = ToyEmbedder(share=0.3)
    model.inner["text"] = torch.nn.Linear(12, 8, bias=False)
    with pytest.raises(CheckpointError, match=r"inner.text.bias is \(8,\), and missing"):
        train_one(tmp_path, model=model)


def test_a_weight_that_learned_and_no_longer_does_is_refused(tmp_path):
    interrupted(tmp_path)
    model = ToyEmbedder(share=0.3)
    model.outer["image"].bias.requires_grad_(requires_grad=False)
    with pytest.raises(CheckpointError, match=r"knows a weight outer.image.bias that does not"):
        train_one(tmp_path, model=model)


def test_what_does_not_change_the_result_may_change_at_a_restart(tmp_path):
    interrupted(tmp_path)
    _, summary = train_one(tmp_path, changes={"log_steps": 3, "micro_batch": 3})
    assert summary.steps == 9


def test_a_damaged_checkpoint_is_refused_and_its_predecessor_goes_on(tmp_path):
    with pytest.raises(Killed):
        train_one(tmp_path, changes={"checkpoint_steps": 2}, progress=killer(7))
    before, last = checkpoints_in(tmp_path / "checkpoints")
    content = bytearray((last / "model.safetensors").read_bytes())
    content[-5] ^= 4
    (last / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model.safetensors is damaged.*remove"):
        train_one(tmp_path, changes={"checkpoint_steps": 2})
    last.rename(tmp_path / "out-of-the-way")
    assert before.exists()
    model, _ = train_one(tmp_path, changes={"checkpoint_steps": 2})
    undisturbed, _ = train_one(tmp_path / "undisturbed")
    assert same_bits(model, undisturbed)
