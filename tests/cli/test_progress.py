"""Progress fits eighty columns, tells every figure, and is plain where nobody watches."""

import io
import re

import pytest
from rich.console import Console

from adaptiveembed.cli import progress as shown
from adaptiveembed.cli.progress import ShownProgress, folded, in_words

VALIDATED = {f"mAP {one}": 0.917 for one in ("1+0", "1+1", "2+0", "2+2", "4+4")} | {"cosine": 0.1}
STEP = {
    "loss": 0.526,
    "learning_rate": 9.89e-05,
    "epoch": 25.0,
    "items_per_second": 121.4,
    "seconds_left": 75.0,
}


def on(*, terminal, width=80):
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)


def told(console):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.file.getvalue())


@pytest.mark.parametrize("width", [60, 80])
def test_a_terminal_shows_bar_count_and_every_figure_within_its_width(width):
    console = on(terminal=True, width=width)
    with ShownProgress(console) as announce:
        progress = announce("Stage I: candidates")
        progress(12, 60, STEP)
        progress(12, 60, VALIDATED)
    last = told(console).rpartition("Stage I: candidates")
    text = "".join(last[1:])
    assert "━" in text
    assert "12/60" in text
    for figure in (*in_words(STEP), *in_words(VALIDATED)):
        assert figure in text
    assert "…" not in text
    assert max(map(len, re.split(r"[\r\n]", told(console)))) <= width


def test_figures_are_those_of_the_part_under_way():
    console = on(terminal=True)
    with ShownProgress(console) as announce:
        announce("Stage I")(12, 60, STEP)
        announce("embedding")(1, 2)
    assert "loss" not in told(console).rpartition("Stage I")[2]


def test_a_pipe_gets_a_line_at_the_beginning_and_one_at_the_end_of_each_part():
    console = on(terminal=False)
    with ShownProgress(console) as announce:
        progress = announce("encoding text")
        for done in range(0, 101, 5):
            progress(done, 100, {"failed": 0.0})
    assert told(console) == "encoding text ...\nencoding text: 100 of 100 (failed 0)\n"


def test_a_pipe_gets_a_line_now_and_then(monkeypatch):
    clock = iter(range(0, 1000, 8))
    monkeypatch.setattr(shown.time, "monotonic", lambda: float(next(clock)))
    console = on(terminal=False)
    with ShownProgress(console) as announce:
        progress = announce("encoding")
        for done in range(1, 7):
            progress(done, 9)
    assert told(console).splitlines() == [
        "encoding ...",
        "encoding: 3 of 9",
        "encoding: 6 of 9",
        "encoding: ended at 6 of 9",
    ]


def test_a_part_that_stops_early_says_where():
    console = on(terminal=False)
    with ShownProgress(console) as announce:
        announce("Stage I")(12, 60, {"loss": 0.5})
        announce("embedding")(2, 2)
    assert told(console).splitlines() == [
        "Stage I ...",
        "Stage I: ended at 12 of 60 (loss 0.5)",
        "embedding ...",
        "embedding: 2 of 2",
    ]


def test_figures_are_short_and_named_for_people():
    assert list(in_words(STEP)) == [
        "loss 0.526",
        "rate 9.89e-05",
        "epoch 25",
        "items/s 121",
        "left 1:15",
    ]


def test_no_figure_is_broken_in_two():
    lines = list(folded(["a 1", "bb 22", "ccc 333"], 14))
    assert lines == ["  a 1  bb 22", "  ccc 333"]
    assert list(folded([], 80)) == []
    assert list(folded(["too long to fit"], 4)) == ["  too long to fit"]
