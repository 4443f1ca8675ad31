"""Figures as XML that can be read, with everything that is drawn also said."""

from xml.etree.ElementTree import fromstring

import pytest

from adaptiveembed.errors import EmptyBatchError
from adaptiveembed.evaluation.figures import Kind, Point, capacity_curve, capacity_figure

POINTS = [
    Point("1+0", 1.0, 0.30, Kind.FIXED),
    Point("1+1", 2.0, 0.35, Kind.FIXED),
    Point("2+0", 2.0, 0.33, Kind.FIXED),
    Point("adaptive", 1.6, 0.36, Kind.ADAPTIVE),
    Point("oracle", 1.7, 0.41, Kind.ORACLE),
    Point("<MetaEmbed> 2/4", 3.0, 0.31, Kind.RIVAL),
]
SPACE = "{http://www.w3.org/2000/svg}"


def texts(figure, tag="text"):
    return [one.text for one in fromstring(figure).iter(f"{SPACE}{tag}")]


def test_only_the_best_selection_of_each_capacity_is_named_in_the_picture():
    drawn = texts(capacity_curve(POINTS))
    assert {"1+0", "1+1"} <= set(drawn)
    assert "2+0" not in drawn
    assert "2+0: 33.0" in texts(capacity_curve(POINTS), "title")


def test_policy_oracle_and_budgets_stand_with_their_figures():
    drawn = texts(capacity_curve(POINTS))
    assert {"adaptive: 36.0", "oracle: 41.0", "2/4: 31.0"} <= set(drawn)


def test_every_point_is_said_to_those_who_do_not_see_it():
    (said,) = texts(capacity_curve(POINTS), "desc")
    assert "2+0 33.00 with 2.00 vectors" in said
    assert "<MetaEmbed> 2/4 31.00 with 3.00 vectors" in said


def test_higher_scores_stand_higher_and_larger_capacities_further_right():
    circles = [
        [float(one.get(axis)) for axis in ("cx", "cy")]
        for one in fromstring(capacity_curve(POINTS[:3])).iter(f"{SPACE}circle")
    ]
    (single, both, other) = circles[:3]
    assert single[0] < both[0] == other[0]
    assert both[1] < other[1] < single[1]


def test_another_encoder_stands_by_its_name_and_far_to_the_right_as_a_line_across():
    near = Point("pooled to 4 (rival)", 4.0, 0.32, Kind.BASELINE)
    far = Point("MaxSim (rival)", 578.3, 0.39, Kind.BASELINE)
    drawn = texts(capacity_curve([*POINTS, near, far]))
    assert {"pooled to 4 (rival): 32.0", "MaxSim (rival), 578 vectors: 39.0"} <= set(drawn)
    assert "other encoders" in drawn
    assert "5" not in drawn
    lines = [one.get("class") for one in fromstring(capacity_curve([far])).iter(f"{SPACE}line")]
    assert lines.count("level baseline") == 1
    assert "level baseline" not in capacity_curve([*POINTS, near])


def test_shares_of_capacities_are_written_on_their_bars():
    drawn = texts(capacity_figure("text→image", {1: 30, 2: 70}, {1: 50, 4: 50}))
    assert {"30", "70", "50"} <= set(drawn)


def test_nothing_to_draw_is_refused():
    with pytest.raises(EmptyBatchError, match="no point to draw"):
        capacity_curve([])
