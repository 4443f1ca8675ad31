"""The demo shows report, analysis and searches, and writes what it showed."""

import json

import pytest

from adaptiveembed.cli import main, program
from adaptiveembed.evaluation.report import TIE_RULE

SMALL = ["demo", "--items", "60", "--seed", "3"]


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def shown(capsys, *arguments):
    assert main([*SMALL, *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def columns(file):
    return [line.split() for line in file.read_text().splitlines()]


def test_it_compares_fixed_selections_with_the_best_one_and_the_oracle(capsys):
    out = shown(capsys)
    for method in ("fixed 1+0", "fixed 4+4", "best of 20", "oracle of 20"):
        assert method in out
    assert "query" in out
    assert "compared" in out
    assert "stored" in out
    assert " ".join(TIE_RULE.split()) in " ".join(out.split())


def test_searches_name_items_scores_and_the_positions_that_matched(capsys):
    out = shown(capsys)
    assert "Search text→image: query item-" in out
    assert "g0-g0" in out
    assert "the answer" in out


def test_away_from_a_terminal_the_output_is_plain_and_fits(capsys):
    out = shown(capsys)
    assert "\x1b" not in out
    assert "\r" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_narrow_terminal_folds_and_cuts_nothing(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    out = shown(capsys)
    assert max(map(len, out.splitlines())) <= 50
    assert "…" not in out


def test_equal_seeds_show_the_same_and_another_seed_does_not(capsys):
    assert shown(capsys) == shown(capsys)
    assert shown(capsys) != shown(capsys, "--seed", "4")


def test_the_largest_seed_works(capsys):
    assert "oracle of 20" in shown(capsys, "--seed", str(program.LARGEST_SEED))


def test_output_holds_the_report_and_a_run_and_judgements_for_each_direction(capsys, tmp_path):
    folder = tmp_path / "deep" / "[red]results"
    out = shown(capsys, "--output", str(folder))
    assert f"are in {folder}.\n" in out
    report = json.loads((folder / "report.json").read_text())
    assert [row["method"] for row in report["rows"]][-1] == "oracle of 20"
    assert (folder / "report.md").read_text().startswith("# Synthetic pairs")
    for stem in ("text-image", "image-text"):
        for name in (f"{stem}.qrels", f"{stem}.best-fixed.run", f"{stem}.oracle.run"):
            assert len((folder / name).read_text().splitlines()) >= 20


def test_the_written_run_has_the_reciprocal_ranks_of_the_report(capsys, tmp_path):
    shown(capsys, "--output", str(tmp_path))
    answers = dict(line[::2] for line in columns(tmp_path / "text-image.qrels"))
    ranks = {
        query: int(rank)
        for query, _, item, rank, *_ in columns(tmp_path / "text-image.oracle.run")
        if answers[query] == item
    }
    report = json.loads((tmp_path / "report.json").read_text())
    expected = report["rows"][-1]["measures"]["text→image"]["MRR"]
    assert sum(1 / rank for rank in ranks.values()) / len(answers) == pytest.approx(expected)


def test_an_output_that_is_no_empty_folder_fails_before_the_work(capsys, tmp_path):
    kept = tmp_path / "report.json"
    kept.write_text("kept")
    for given, problem in (
        (kept, f"{kept} is a file; give a new or an empty folder"),
        (tmp_path, f"folder {tmp_path} is not empty; give a new or an empty one"),
    ):
        assert main([*SMALL, "--output", str(given)]) == 1
        assert capsys.readouterr() == ("", f"adaptiveembed: error: {problem}\n")
    assert kept.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [kept]
