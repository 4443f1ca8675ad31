"""Training that is killed again and again ends as if it had never been disturbed.

    python -m tests.kills.training [--kills 3] [--stages one,two] [--seed 0]

Both stages are trained once undisturbed, and once in a process that gets SIGKILL at random moments
and is started again until it is done. The states at the end must be equal bit for bit.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from adaptiveembed.training.checkpoints import checkpoints_in, read_checkpoint
from adaptiveembed.training.scalars import read_scalars
from tests.training.small import train_small_embedder, train_small_policy
from tests.training.toys import same_bits, validate

STAGES = {"one": train_small_embedder, "two": train_small_policy}
PACE = 0.01
"""Seconds that every step takes at least, so that there is time to kill it."""

KILLED_WITHIN = 1.5 * PACE
"""Seconds after a step is told in which its process is killed: while it stores its state, takes the
next step, or waits in it."""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=3, help="how often each training is killed")
    parser.add_argument("--stages", default="one,two", help="which stages, joined by commas")
    parser.add_argument("--epochs", type=int, default=8, help="how long each training is")
    parser.add_argument("--seed", type=int, default=None, help="of the moments of the kills")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        for stage in options.stages.split(","):
            disturb(stage, Path(folder), chance, options)


def disturb(stage, folder, chance, options):
    """Train undisturbed and disturbed, and compare."""
    undisturbed, disturbed = folder / f"{stage}-undisturbed", folder / f"{stage}-disturbed"
    train_to_the_end(stage, undisturbed, options.epochs)
    steps = last_standing(undisturbed).step
    moments = sorted(chance.sample(range(1, steps - 2), options.kills))
    killed = [kill_at(moment, stage, disturbed, options.epochs, chance) for moment in moments]
    train_to_the_end(stage, disturbed, options.epochs)
    require_equal(undisturbed, disturbed)
    say(f"stage {stage}: killed after steps {killed} of {steps}, ends with the same bits")


def start(stage, folder, epochs):
    """Train in a process of its own, which has nothing of this one but its imports.

    Returns its id and what it tells, a line for every step that it has done itself.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, os.fdopen(reading)
    try:
        changes = {"epochs": epochs, "checkpoint_steps": 2, "seed": 5}
        STAGES[stage](folder, changes, validate=validate, progress=slow_teller(writing))
    except BaseException:  # noqa: BLE001 - a fork that went on would be this process again
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def slow_teller(pipe):
    def progress(done, total, facts=None):
        time.sleep(PACE)
        os.write(pipe, f"{done}\n".encode())

    return progress


def train_to_the_end(stage, folder, epochs):
    child, told = start(stage, folder, epochs)
    with told:
        _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"a training ended with status {status}")


def kill_at(moment, stage, folder, epochs, chance):
    """Train, and SIGKILL soon after the first step from this one on; that step."""
    child, told = start(stage, folder, epochs)
    with told:
        step = next((int(line) for line in told if int(line) >= moment), None)
        time.sleep(chance.uniform(0, KILLED_WITHIN))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if os.WTERMSIG(status) != signal.SIGKILL:
        raise SystemExit(f"the training was not killed but ended with status {status}")
    return step


def last_standing(folder):
    return read_checkpoint(checkpoints_in(folder / "checkpoints")[-1]).standing


def require_equal(undisturbed, disturbed):
    """That states, figures and logged steps are the same."""
    one, other = (
        read_checkpoint(checkpoints_in(each / "checkpoints")[-1])
        for each in (undisturbed, disturbed)
    )
    for part in ("model", "optimizer", "best"):
        if not same_bits(getattr(one, part), getattr(other, part)):
            raise SystemExit(f"{disturbed.name}: {part} differs")
    ends = [
        (each.standing.step, each.standing.best_step, each.standing.best) for each in (one, other)
    ]
    if ends[0] != ends[1]:
        raise SystemExit(f"{disturbed.name} ends at {ends[1]}, undisturbed at {ends[0]}")
    logs = [
        [without_speed(line) for line in read_scalars(each)] for each in (undisturbed, disturbed)
    ]
    if logs[0] != logs[1]:
        raise SystemExit(f"{disturbed.name}: the logged figures differ")


def without_speed(line):
    return {name: value for name, value in line.items() if name != "items_per_second"}


if __name__ == "__main__":
    main()
