"""Measures of other tools on our rankings are our own measures."""

import warnings

import numpy as np
import pytest

from adaptiveembed.adapters.runs import (
    IR_MEASURES,
    RANX,
    measured_by_ir_measures,
    ranx_qrels,
    ranx_run,
)
from adaptiveembed.evaluation.protocol import positive_indices
from adaptiveembed.metrics.measures import MEASURES
from adaptiveembed.metrics.ranks import ranks_of_positives
from adaptiveembed.retrieval import score_gallery, search
from adaptiveembed.structure import PAPER_LAYOUT
from tests.retrieval.galleries import make_world

QUERIES = tuple(f"q{place}" for place in range(9))


def answered(kind="random"):
    """A gallery with its rankings, what is relevant, and the ranks by all scores."""
    world = make_world(kind, 40, len(QUERIES), PAPER_LAYOUT, dim=6)
    ids = world.gallery.ids
    relevant = [
        list(dict.fromkeys([ids[3 * place], ids[5 * place % 40], ids[17]]))
        for place in range(len(QUERIES))
    ]
    positives = positive_indices(relevant, world.gallery)
    ranks = ranks_of_positives(score_gallery(world.gallery, world.queries), positives)
    return search(world.gallery, world.queries, 40), relevant, ranks


def test_ir_measures_finds_what_we_find_for_every_query():
    pytest.importorskip("ir_measures")
    rankings, relevant, ranks = answered()
    found = measured_by_ir_measures(rankings, QUERIES, relevant)
    assert set(found) == set(MEASURES) - {"MeanR"}
    for name, values in found.items():
        assert len(set(values)) > 1
        np.testing.assert_allclose(values, MEASURES[name](ranks), atol=1e-6, err_msg=name)


def test_equal_scores_are_never_better_with_us():
    pytest.importorskip("ir_measures")
    rankings, relevant, ranks = answered("copied")
    found = measured_by_ir_measures(rankings, QUERIES, relevant)
    for name, values in found.items():
        assert (MEASURES[name](ranks) <= values + 1e-6).all()
    assert MEASURES["mAP"](ranks).mean() < found["mAP"].mean()


def test_a_query_that_found_nothing_has_zeros():
    pytest.importorskip("ir_measures")
    rankings, relevant, _ = answered()
    indices, scores = rankings.indices.copy(), rankings.scores.copy()
    indices[2], scores[2] = -1, -np.inf
    nothing = type(rankings)(indices, scores, rankings.gallery_ids, rankings.capacities)
    found = measured_by_ir_measures(nothing, QUERIES, relevant)
    assert {float(each[2]) for each in found.values()} == {0}


def test_both_tools_are_asked_for_the_same_measures():
    assert IR_MEASURES.keys() == RANX.keys()


def test_ranx_finds_what_we_find_for_every_query():
    ranx = pytest.importorskip("ranx")
    rankings, relevant, ranks = answered()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's, of ranx's own kernels
        run, qrels = ranx_run(rankings, QUERIES, name="ours"), ranx_qrels(QUERIES, relevant)
        means = ranx.evaluate(qrels, run, list(RANX.values()))
    assert run.name == "ours"
    for name, theirs in RANX.items():
        assert means[theirs] == pytest.approx(MEASURES[name](ranks).mean(), abs=1e-6)
        values = [run.scores[theirs][query] for query in QUERIES]
        np.testing.assert_allclose(values, MEASURES[name](ranks), atol=1e-6, err_msg=name)
