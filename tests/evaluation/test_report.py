"""A report says the same in all three forms, and never a figure without the tie rule."""

import io
import json
import re

import numpy as np
import pytest
from rich.console import Console

from adaptiveembed.errors import EmptyBatchError, SettingError
from adaptiveembed.evaluation.evaluate import evaluate
from adaptiveembed.evaluation.report import TIE_RULE, Report
from adaptiveembed.evaluation.results import Evaluation, TaskEvaluation
from adaptiveembed.metrics.measures import MEASURES
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection
from tests.evaluation.worlds import LAYOUT, both_directions

PAPER = GroupLayout((4, 4))
TEXT_TO_IMAGE = Direction(Modality.TEXT, Modality.IMAGE)


def direction_result(direction, ranks, selections, **facts):
    return TaskEvaluation(
        direction=direction,
        query_ids=tuple(f"q{query}" for query in range(len(ranks))),
        selections=tuple(Selection.parse(text, PAPER) for text in selections),
        ranks=np.array(ranks, dtype=np.int64)[:, None],
        **({"dim": 256, "gallery_vectors_stored": 8, "gallery_size": 123_287} | facts),
    )


def evaluation(method, ranks=((1, 2), (4, 4)), selections=("1+0", "2+1"), **facts):
    forward, backward = (
        direction_result(direction, one, selections, **facts)
        for direction, one in zip((TEXT_TO_IMAGE, TEXT_TO_IMAGE.reversed), ranks, strict=True)
    )
    return Evaluation(method, (forward, backward))


@pytest.fixture
def report():
    methods = [
        evaluation("fixed 1+0", selections=("1+0", "1+0"), gallery_vectors_stored=1),
        evaluation("AdaptiveEmbed", ranks=((1, 1), (2, 40_000))),
        evaluation("Oracle AdaptiveEmbed", ranks=((1, 1), (1, 1))),
    ]
    return Report.from_evaluations(methods, title="Ours")


def printed(report, width=80):
    out = io.StringIO()
    Console(file=out, width=width).print(report.table())
    return out.getvalue()


def markdown_tables(text):
    """The cells of every Markdown table, header first."""
    blocks = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    rows = [
        [re.split(r"\s*\|\s*", line.strip("| ")) for line in one.splitlines()] for one in blocks
    ]
    return [[row for row in table if not row[0].startswith(":-")] for table in rows]


def test_hand_made_figures_come_out_in_json():
    content = json.loads(Report.from_evaluations([evaluation("ours")], title="Ours").json())
    (row,) = content["rows"]
    assert row["measures"]["text→image"]["mAP"] == 0.75
    assert row["measures"]["image→text"]["mAP"] == 0.25
    assert row["measures"]["mean"]["mAP"] == 0.5
    assert row["measures"]["mean"]["MeanR"] == 2.75
    assert (row["query_vectors"], row["gallery_vectors_compared"]) == (2, 2)
    assert (row["gallery_vectors_stored"], row["dim"], row["method"]) == (8, 256, "ours")
    assert content["directions"][0] == {
        "direction": "text→image",
        "queries": 2,
        "gallery": 123_287,
    }


def test_a_query_may_meet_more_vectors_than_it_has():
    met = evaluation("by role", selections=("1+1", "1+1"), compared=np.array([4, 4]))
    assert (met.query_vectors, met.gallery_vectors_compared) == (2, 4)


def test_query_compared_and_stored_vectors_are_three_columns(report):
    header, fixed, adaptive, _ = markdown_tables(report.markdown())[0]
    assert header[1:4] == ["query vectors", "gallery compared", "gallery stored"]
    assert fixed[1:4] == ["1.00", "1.00", "1"]
    assert adaptive[1:4] == ["2.00", "2.00", "8"]


def test_markdown_holds_every_figure_of_the_json(report):
    content = json.loads(report.json())
    headline, *sections = markdown_tables(report.markdown())
    for place, column in enumerate(("text→image", "image→text", "mean")):
        for row, line in zip(content["rows"], sections[place][1:], strict=True):
            values = row["measures"][column]
            assert sections[place][0][1:] == list(values)
            shown = {name: float(cell) for name, cell in zip(values, line[1:], strict=True)}
            exact = {
                name: value if name == "MeanR" else 100 * value for name, value in values.items()
            }
            assert shown == pytest.approx(exact, abs=0.051)
    assert [line[0] for line in headline[1:]] == [row["method"] for row in content["rows"]]


def test_the_terminal_shows_every_figure_of_the_markdown(report):
    words = printed(report).split()
    for table in markdown_tables(report.markdown()):
        for row in table[1:]:
            assert not [cell for cell in row[1:] if cell not in words]


def test_the_tie_rule_stands_under_every_table(report):
    flowing = " ".join(printed(report).split())
    assert flowing.count(TIE_RULE) == flowing.count("method") == 4
    assert report.markdown().count(TIE_RULE) == len(markdown_tables(report.markdown())) == 4
    assert json.loads(report.json())["tie_rule"] == TIE_RULE


@pytest.mark.parametrize("modality", [one for one in Modality if one != Modality.TEXT])
def test_the_table_fits_eighty_columns(report, modality):
    direction = Direction(modality, Modality.TEXT)
    results = tuple(
        direction_result(one, [300_000, 400_000], ["4+4", "4+4"])
        for one in (direction, direction.reversed)
    )
    wide = Report.from_evaluations([Evaluation("Oracle AdaptiveEmbed", results)])
    for one in (report, wide):
        lines = printed(one).splitlines()
        assert max(map(len, lines)) <= 80
        assert "…" not in printed(one)


def test_the_dimension_and_the_sizes_are_stated(report):
    flowing = " ".join(printed(report).split())
    assert "d = 256." in flowing
    assert "text→image: 2 queries, 123,287 gallery items" in flowing


def test_different_dimensions_are_stated_per_method():
    report = Report.from_evaluations([evaluation("wide", dim=2048), evaluation("narrow", dim=64)])
    assert "d: wide 2048, narrow 64." in report.markdown()
    several = [evaluation("a"), evaluation("wide", dim=2048), evaluation("b")]
    assert "d = 256; wide 2048." in Report.from_evaluations(several).markdown()


def test_all_measures_are_reported(report):
    assert markdown_tables(report.markdown())[1][0] == ["method", *MEASURES]


def test_a_bar_in_a_method_name_does_not_break_the_markdown_table():
    text = Report.from_evaluations([evaluation("a|b")]).markdown()
    assert text.count("\n| a\\|b |") == 4


def test_square_brackets_in_a_method_name_are_printed_as_they_are():
    assert "[red]ours" in printed(Report.from_evaluations([evaluation("[red]ours")]))


def test_one_direction_alone_makes_a_report():
    report = Report.from_evaluations([evaluate(both_directions()[:1], Selection.full(LAYOUT))])
    assert [one.direction for one in report.directions] == ["text→image"]


def test_a_report_of_nothing_is_refused():
    with pytest.raises(EmptyBatchError, match="no evaluation was given to report"):
        Report.from_evaluations([])


def test_methods_evaluated_on_other_galleries_are_refused_by_name():
    with pytest.raises(SettingError, match="'other' was evaluated on text→image 2/7"):
        Report.from_evaluations([evaluation("ours"), evaluation("other", gallery_size=7)])
