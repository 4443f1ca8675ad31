"""Exported runs keep our order in every tool that sorts them again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptiveembed.errors import DtypeError, DuplicateIdError, SettingError, ShapeError
from adaptiveembed.retrieval.ranking import Rankings
from adaptiveembed.retrieval.runs import (
    Qrel,
    ScoredDoc,
    qrels_to_ir_measures,
    qrels_to_ranx,
    qrels_to_trec,
    strictly_falling,
    to_ir_measures,
    to_ranx,
    to_trec,
)


def rankings(scores, ids=None):
    scores = np.array(scores, dtype=np.float32)
    indices = np.where(np.isfinite(scores), np.arange(scores.shape[1]), -1)
    ids = ids or tuple(f"d{place}" for place in range(scores.shape[1]))
    return Rankings(indices, scores, ids, np.ones(len(scores), dtype=np.int64))


def order_in_trec_eval(rows):
    """How trec_eval sorts: by single-precision score, then by document id, both descending."""
    return [
        one.doc_id for one in sorted(rows, key=lambda row: (np.float32(row.score), row.doc_id))
    ][::-1]


rows_of_scores = st.lists(
    st.sampled_from([1.0, 0.5, 0.1, 1e-30, 0.0, -1e-30, -0.1, -1.0]) | st.floats(-1, 1, width=32),
    min_size=1,
    max_size=30,
).map(lambda row: [sorted(row, reverse=True)])


@given(rows_of_scores)
def test_every_tool_that_sorts_by_score_sees_our_order(scores):
    rows = to_ir_measures(rankings(scores), ["q"])
    assert order_in_trec_eval(rows) == [f"d{place}" for place in range(len(scores[0]))]


@given(rows_of_scores)
def test_an_exported_score_is_lowered_by_no_more_than_its_ties_need(scores):
    scores = np.array(scores, dtype=np.float32)
    lowered = scores - strictly_falling(scores)
    assert (lowered >= 0).all()
    assert lowered.max() <= scores.shape[1] * 2.0**-22


def test_scores_without_ties_are_exported_as_they_are():
    scores = np.array([[0.75, 0.5, -0.25]], dtype=np.float32)
    assert strictly_falling(scores).tolist() == scores.tolist()


def test_a_trec_line_has_the_six_columns_and_ranks_count_from_one(tmp_path):
    to_trec(tmp_path / "run", rankings([[0.5, 0.25], [0.125, -np.inf]]), ["q1", "q2"], tag="ours")
    assert (tmp_path / "run").read_text().splitlines() == [
        "q1 Q0 d0 1 0.5 ours",
        "q1 Q0 d1 2 0.25 ours",
        "q2 Q0 d0 1 0.125 ours",
    ]


def test_tied_scores_still_differ_when_a_trec_file_is_read_back(tmp_path):
    to_trec(tmp_path / "run", rankings([[1.0] * 5]), ["q"])
    columns = [line.split() for line in (tmp_path / "run").read_text().splitlines()]
    read_back = [np.float32(column[4]) for column in columns]
    assert len(set(read_back)) == 5
    assert sorted(read_back, reverse=True) == read_back


def test_ranx_gets_a_dict_per_query_also_for_a_query_that_found_nothing():
    assert to_ranx(rankings([[0.5], [-np.inf]]), ["q1", "q2"]) == {"q1": {"d0": 0.5}, "q2": {}}


def test_ir_measures_gets_named_rows():
    assert to_ir_measures(rankings([[0.5]]), ["q"]) == [ScoredDoc("q", "d0", 0.5)]


def test_judgements_have_the_shape_of_each_tool(tmp_path):
    query_ids, relevant = ["q1", "q2"], [["a"], ["b", "c"]]
    qrels_to_trec(tmp_path / "qrels", query_ids, relevant)
    assert (tmp_path / "qrels").read_text() == "q1 0 a 1\nq2 0 b 1\nq2 0 c 1\n"
    assert qrels_to_ranx(query_ids, relevant) == {"q1": {"a": 1}, "q2": {"b": 1, "c": 1}}
    assert qrels_to_ir_measures(["q"], [["a"]]) == [Qrel("q", "a", 1, "0")]


@pytest.mark.parametrize("bad", ["a b", "tab\there", "line\n", "", "wide\u00a0space"])
def test_an_id_that_would_break_a_trec_line_is_refused(tmp_path, bad):
    with pytest.raises(SettingError, match=r"gallery id .* cannot stand in a TREC file.*to_ranx"):
        to_trec(tmp_path / "run", rankings([[0.5]], ids=(bad,)), ["q"])
    with pytest.raises(SettingError, match="query id"):
        to_trec(tmp_path / "run", rankings([[0.5]]), [bad])
    with pytest.raises(SettingError, match="gallery id"):
        qrels_to_trec(tmp_path / "qrels", ["q"], [[bad]])
    assert not list(tmp_path.iterdir())


def test_query_ids_must_be_one_per_query_and_distinct():
    with pytest.raises(ShapeError, match="got 1 query ids for 2 queries"):
        to_ir_measures(rankings([[0.5], [0.5]]), ["q"])
    with pytest.raises(DuplicateIdError, match="query ids name 'q' more than once"):
        to_ranx(rankings([[0.5], [0.5]]), ["q", "q"])
    with pytest.raises(DuplicateIdError, match="query ids name 'q' more than once"):
        qrels_to_ranx(["q", "q"], [["a"], ["b"]])


def test_a_path_may_be_a_text(tmp_path):
    to_trec(str(tmp_path / "run"), rankings([[0.5]]), ["q"])
    qrels_to_trec(str(tmp_path / "qrels"), ["q"], [["d0"]])
    assert (tmp_path / "run").read_text() == "q Q0 d0 1 0.5 adaptiveembed\n"
    assert (tmp_path / "qrels").read_text() == "q 0 d0 1\n"


def test_refused_query_ids_leave_no_file(tmp_path):
    for wrong in (["q"], "ab"):
        with pytest.raises((ShapeError, DtypeError)):
            to_trec(tmp_path / "run", rankings([[0.5], [0.5]]), wrong)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("export", [to_ranx, to_ir_measures])
def test_the_letters_of_a_text_are_not_taken_for_query_ids(export):
    with pytest.raises(DtypeError, match=r"query ids are a list of texts, got the text 'ab'"):
        export(rankings([[0.5], [0.5]]), "ab")


@pytest.mark.parametrize("export", [qrels_to_ranx, qrels_to_ir_measures])
def test_the_letters_of_a_text_are_not_taken_for_relevant_ids(export):
    with pytest.raises(DtypeError, match=r"relevant ids of query 'q' .* text 'd0'; use \['d0'\]"):
        export(["q"], ["d0"])
