"""The demo goes the whole way, is kept, goes on, and writes over nothing."""

import json
import shutil

import pytest
from PIL import Image

from adaptiveembed.cli import main
from adaptiveembed.evaluation.report import TIE_RULE
from adaptiveembed.pipeline import demo as demos
from tests.pipeline.tiny import SET

SMALL = ["demo", "--items", "200", "--seed", "3", *SET]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished demo; only to be read, or gone on with."""
    folder = tmp_path_factory.mktemp("demo") / "deep" / "[red]results"
    assert main([*SMALL, "--output", str(folder)]) == 0
    return folder


def test_it_leaves_two_runs_a_report_and_a_picture_to_search_with(made):
    assert {each.name for each in made.iterdir()} == set(demos.MADE)
    for run in ("adaptive", "metaembed"):
        assert (made / run / "model" / "config.json").exists()
    report = json.loads((made / "report.json").read_text())
    methods = [row["method"] for row in report["rows"]]
    assert {"fixed 1+0", "adaptive", "oracle of 20", "MetaEmbed 1/1"} <= set(methods)
    assert (made / "report.html").read_text().startswith("<!doctype html>")
    with Image.open(made / "query.png") as picture:
        assert picture.width > 0


def test_a_finished_demo_only_shows_and_searches_again(call, made):
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    done = call(*SMALL, "--output", made)
    assert done.status == 0
    for told in ("fixed 1+0", "adaptive", "oracle of 20", "MetaEmbed 1/1", "g0-g0", "nearest of"):
        assert told in done.out
    assert " ".join(TIE_RULE.split()) in " ".join(done.out.split())
    assert "Stage I" not in done.err
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before


def test_away_from_a_terminal_the_output_is_plain_and_fits(call, made):
    done = call(*SMALL, "--output", made)
    told = done.out.split("The report, with figures")[0]
    assert "\x1b" not in done.out + done.err
    assert "\r" not in done.out + done.err
    assert max(map(len, told.splitlines())) <= 80
    assert f"adaptiveembed search {made / 'adaptive'} " in done.out


def test_its_last_words_are_commands_that_work(call, made):
    line = call(*SMALL, "--output", made).out.splitlines()[-1]
    assert line.split()[:2] == ["adaptiveembed", "search"]
    done = call(*line.split()[1:])
    assert done.status == 0
    assert "rank" in done.out


@pytest.mark.parametrize("changed", [["--items", "201"], ["--seed", "4"], ["--set", "seed=1"]])
def test_another_demo_is_refused_in_its_folder(call, made, changed):
    kept = (made / "demo.json").read_bytes()
    assert "holds a demo of other" in call(*SMALL, *changed, "--output", made).error
    assert (made / "demo.json").read_bytes() == kept


def test_an_output_that_holds_anything_else_fails_before_the_work(call, tmp_path):
    kept = tmp_path / "thesis.txt"
    kept.write_text("kept")
    for given, problem in (
        (kept, f"{kept} is a file; give a new or an empty folder"),
        (tmp_path, f"folder {tmp_path} holds something else; give a new or an empty one"),
    ):
        for more in ([], ["--fresh"]):
            assert call(*SMALL, "--output", given, *more).error == problem
    assert kept.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [kept]


def test_fresh_removes_what_a_demo_wrote_and_nothing_else(made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "demo")
    (folder / "notes.txt").write_text("kept")
    demos.remove_demo(folder)
    assert [each.name for each in folder.iterdir()] == ["notes.txt"]
