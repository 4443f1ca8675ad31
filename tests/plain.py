"""Answers as users get them: from a process without the type checks of the test run.

Those checks refuse a wrong type before our own errors can say what to do.
"""

import json
import os
import subprocess
import sys

SETTING = """
import numpy as np
import torch

import adaptiveembed as ae
from adaptiveembed.data import synthetic_pairs
from adaptiveembed.evaluation import evaluate as evaluation

layout = ae.GroupLayout((2, 2))
selection = ae.Selection(layout, (1, 1))
text, image = synthetic_pairs(5, layout, dim=4)
direction = ae.Direction(ae.Modality.TEXT, ae.Modality.IMAGE)
tasks = ae.full_gallery(list("abcde"), text, image, list("de"), direction)
task = tasks[0]
"""
"""What the expressions below may name."""


def check_answers(expected):
    """That every expression has its value, as text, or its error, as ``Class: message``."""
    assert dict(zip(expected, answers(*expected), strict=True)) == expected


def answers(*expressions):
    """The value of each expression as text, or its error."""
    done = subprocess.run(
        [sys.executable, "-c", "from tests.plain import main; main()"],
        input=json.dumps(expressions),
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def main():
    names = {}
    exec(SETTING, names)
    json.dump([answer(one, names) for one in json.load(sys.stdin)], sys.stdout)


def answer(expression, names):
    try:
        return str(eval(expression, names))
    except Exception as error:  # noqa: BLE001 - whatever a user would see
        return f"{type(error).__name__}: {error}"
