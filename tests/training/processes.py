"""Work in several processes of one group, each forked from a fresh one.

    python -m tests.training.processes FOLDER SIZE

does the work in ``SIZE`` processes that find what torchrun would tell them in their environment.
What each returns, tensors by name, is stored in the folder by its rank.
"""

import os
import signal
import socket
import subprocess
import sys
import traceback
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from adaptiveembed.allocation.upo import upo_loss
from adaptiveembed.training import distributed
from adaptiveembed.training.distributed import process_group
from adaptiveembed.training.stage_one import _StageOne
from adaptiveembed.training.stage_two import _StageTwo
from tests.training.small import MGCL, SETTINGS, embedder, examples, policy
from tests.training.toys import (
    STAGE_ONE,
    STAGE_TWO,
    ToyEmbedder,
    ToyPolicy,
    contrast,
    expected_loss,
    toy_examples,
    toy_pairs,
    train_one,
    train_two,
    validate,
)

ROOT = Path(__file__).parents[2]
ITEMS = torch.arange(24).flip(0)[:13]


def gradients(folder, rank):
    """Loss and gradient of one batch of both stages, with and without dropout and micro-batches.

    They are of toys, and of the embedder, the policy and the losses of this library.
    """
    found = {}
    for micro_batch in (None, 2):
        one, two = (replace(each, micro_batch=micro_batch) for each in (STAGE_ONE, STAGE_TWO))
        for share in (0.0, 0.4):
            settings = replace(SETTINGS, dropout=share, state_dropout=share)
            for model, loss in (
                (ToyEmbedder(share), contrast),
                (embedder(settings=settings).train(), MGCL),
            ):
                task = _StageOne(model, toy_pairs(same=5), loss, one)
                found |= of_batch(task, f"{type(model).__name__} {share} {micro_batch}")
        for model, taught, loss in (
            (ToyPolicy(), toy_examples(), expected_loss),
            (policy().train(), examples(), upo_loss),
        ):
            task = _StageTwo(model, taught, loss, two)
            found |= of_batch(task, f"{type(model).__name__} {micro_batch}")
    return found


def of_batch(task, name):
    process = distributed.current()
    weights = list(task.model.parameters())
    loss = task.backward(task.prepare(ITEMS), 4)
    (loss,) = distributed.add_up(weights, loss[None], process)
    gradient = torch.cat([weight.grad.flatten() for weight in weights])
    return {f"{name}:loss": loss, f"{name}:gradient": gradient}


def trainings(folder, rank):
    """Both stages from beginning to end; other starts in other processes are of no matter."""
    model, one = train_one(folder / "one", ToyEmbedder(0.3, seed=rank), validate=validate)
    policy, two = train_two(folder / "two", ToyPolicy(), validate=validate)
    ends = {"losses": torch.tensor([one.loss, two.loss])}
    return {**model.state_dict(), **policy.state_dict(), **ends}


def interrupted(folder, rank):
    """A training of which only the last process is asked to end, in its fourth step."""
    calls = []

    def objective(source, target, same_item):
        calls.append(0)
        if rank == 1 and len(calls) == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return contrast(source, target, same_item)

    try:
        train_one(folder, objective=objective)
    except KeyboardInterrupt:
        return {"steps": torch.tensor(len(calls))}
    raise AssertionError("nothing was interrupted")


def interrupted_at_the_end(folder, rank):
    """A training of which only the first process is asked to end, after its last step."""

    def pressed(model):
        os.kill(os.getpid(), signal.SIGTERM)
        return validate(model)

    try:
        train_one(folder, validate=pressed, changes={"validate_epochs": 3})
    except KeyboardInterrupt:
        return {"finished": torch.tensor(1)}
    raise AssertionError("nothing was interrupted")


WORK = (gradients, trainings, interrupted, interrupted_at_the_end)


def run_apart(folder, size):
    """What each process returned for each piece of work, in the order of their ranks."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.processes", str(folder), str(size)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {
        work.__name__: [
            load_file(folder / work.__name__ / f"{rank}.safetensors") for rank in range(size)
        ]
        for work in WORK
    }


def main():
    folder, size = Path(sys.argv[1]), int(sys.argv[2])
    for work in WORK:
        (folder / work.__name__).mkdir()
    port = free_port()
    children = [start(folder, rank, size, port) for rank in range(size)]
    while children:
        ended, status = os.wait()
        children.remove(ended)
        if status:
            # the others would wait for it
            for child in children:
                os.kill(child, signal.SIGKILL)
            raise SystemExit("a process failed")


def start(folder, rank, size, port):
    child = os.fork()
    if child:
        return child
    try:
        os.environ |= {
            "RANK": f"{rank}",
            "LOCAL_RANK": f"{rank}",
            "WORLD_SIZE": f"{size}",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": f"{port}",
        }
        with process_group():
            for work in WORK:
                own = folder / work.__name__
                save_file(work(own, rank), own / f"{rank}.safetensors")
    except BaseException:  # noqa: BLE001 - a fork that went on would be this process again
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    main()
