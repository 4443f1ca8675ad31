import numpy as np
import pytest

from adaptiveembed.errors import EmptyBatchError, ModelFormatError
from adaptiveembed.evaluation.evaluate import (
    evaluate_every_selection,
    fixed_evaluation,
    oracle_evaluation,
)
from adaptiveembed.evaluation.records import read_evaluations, write_evaluations
from adaptiveembed.evaluation.report import Report
from adaptiveembed.evaluation.results import Evaluation, TaskEvaluation
from adaptiveembed.structure.groups import GroupLayout
from adaptiveembed.structure.selection import Selection
from adaptiveembed.structure.space import every_prefix
from tests.evaluation.worlds import LAYOUT, TEXT_TO_IMAGE, both_directions


@pytest.fixture
def evaluations():
    space = every_prefix(LAYOUT)
    tables = [evaluate_every_selection(task, space) for task in both_directions()]
    return (fixed_evaluation(tables, space.root), oracle_evaluation(tables))


def test_what_was_written_is_read(tmp_path, evaluations):
    write_evaluations(tmp_path, evaluations)
    found = read_evaluations(tmp_path)
    assert Report.from_evaluations(found) == Report.from_evaluations(evaluations)
    for one, other in zip(found, evaluations, strict=True):
        for mine, theirs in zip(one.directions, other.directions, strict=True):
            assert mine.selections == theirs.selections
            assert mine.query_ids == theirs.query_ids
            np.testing.assert_array_equal(mine.ranks, theirs.ranks)


def test_numbers_of_compared_vectors_are_kept(tmp_path):
    selection = Selection(GroupLayout((16,)), (2,))
    one = TaskEvaluation(
        direction=TEXT_TO_IMAGE,
        query_ids=("a", "b"),
        selections=(selection, selection),
        ranks=np.array([[1], [2]]),
        gallery_size=5,
        dim=4,
        gallery_vectors_stored=64,
        compared=np.array([4, 4]),
    )
    write_evaluations(tmp_path, [Evaluation("MetaEmbed 2/4", (one,))])
    (found,) = read_evaluations(tmp_path)
    assert (found.query_vectors, found.gallery_vectors_compared) == (2, 4)


def test_a_folder_without_a_readable_evaluation_is_refused(tmp_path, evaluations):
    with pytest.raises(ModelFormatError, match="evaluate again"):
        read_evaluations(tmp_path)
    write_evaluations(tmp_path, evaluations)
    arrays = tmp_path / "evaluation.npz"
    arrays.write_bytes(arrays.read_bytes()[:100])
    with pytest.raises(ModelFormatError, match="evaluate again"):
        read_evaluations(tmp_path)


def test_nothing_is_not_written(tmp_path):
    with pytest.raises(EmptyBatchError):
        write_evaluations(tmp_path, [])
