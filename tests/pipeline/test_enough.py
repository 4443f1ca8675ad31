"""What a recipe asks for is compared with what there is, all at once and before the work."""

import numpy as np
import pytest

from adaptiveembed.errors import TrainingError
from adaptiveembed.pipeline.cautions import cautions
from adaptiveembed.pipeline.enough import require_enough, shortages
from adaptiveembed.pipeline.rows import TrainingRows
from tests.pipeline.tiny import tiny_recipe


def rows(learned, policy=None):
    """So many pairs of Stage I, and, if not the same ones, of the policy."""
    representation = np.arange(learned)
    apart = representation if policy is None else np.arange(learned, learned + policy)
    return TrainingRows(representation, apart, np.arange(1000, 1010))


def names(given, *changes, recipe="laptop"):
    return [(one.setting, one.most) for one in shortages(given, tiny_recipe(recipe, *changes))]


def test_enough_is_enough():
    assert names(rows(32)) == []
    require_enough(rows(32), tiny_recipe())


FOLDS = ["splits.folds=2", "splits.policy_share=0"]
BATCH, DEPTH = "representation.training.batch_size", "allocation.feedback.depth"


@pytest.mark.parametrize(
    ("given", "changes", "expected"),
    [
        (rows(31), [], [(BATCH, 31)]),
        (rows(31), ["representation.training.last_batch=keep"], []),
        (
            rows(40, 3),
            ["allocation.training.last_batch=drop"],
            [("allocation.training.batch_size", 6)],
        ),
        (rows(40, 16), ["allocation.training.last_batch=drop"], []),
        (
            rows(40, 16),
            ["allocation.training.last_batch=drop", "allocation.policy.sharing=each"],
            [("allocation.training.batch_size", 16)],
        ),
        (rows(64), FOLDS, []),
        (rows(63), FOLDS, [(BATCH, 31)]),
        (rows(80), [*FOLDS, "allocation.feedback.depth=40"], []),
        (rows(80), [*FOLDS, "allocation.feedback.depth=41"], [(DEPTH, 40)]),
        (rows(40, 5), ["allocation.feedback.depth=40"], []),
        (rows(40), ["allocation.feedback.depth=40"], [(DEPTH, 39)]),
        (
            rows(40),
            ["allocation.feedback.depth=40", "allocation.feedback.leave_partner_out=false"],
            [],
        ),
        (rows(40, 5), ["allocation.bank.size=4"], [(DEPTH, 4)]),
        (rows(40, 5), ["allocation.bank.size=4", "allocation.bank.sampling=all"], []),
        (rows(3), [], [(BATCH, 3), (DEPTH, 2)]),
    ],
)
def test_every_setting_that_asks_for_too_much_is_found_with_the_most_that_works(
    given, changes, expected
):
    assert names(given, *changes) == expected


def test_metaembed_needs_no_bank():
    layout = "representation.embedder.layout=16+64"
    assert names(rows(3), layout, recipe="metaembed") == [(BATCH, 3)]


def test_the_message_has_all_of_them_as_arguments_of_the_command():
    with pytest.raises(TrainingError) as caught:
        require_enough(rows(3), tiny_recipe())
    assert str(caught.value) == (
        "the recipe laptop asks for more pairs than there are: representation.training.batch_size "
        "is 32, of 3, and allocation.feedback.depth is 5, of 2 items of the bank; give more pairs "
        "of split 'train', or smaller settings: --set representation.training.batch_size=3 "
        "--set allocation.feedback.depth=2"
    )


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"cosine": 0.5, "headroom": 0.1}, []),
        ({"mAP": 0.3}, []),
        ({"cosine": 0.995, "headroom": 0.1}, ["cosine between positions is 0.995"]),
        ({"cosine": 0.5, "headroom": 0.0}, ["nothing for a policy to gain"]),
        ({"cosine": 1.0, "headroom": 0.0}, ["nearly the same vector", "nothing for a policy"]),
    ],
)
def test_a_collapse_or_a_vanished_headroom_is_told(figures, words):
    told = list(cautions(figures))
    assert len(told) == len(words)
    assert all(word in line for word, line in zip(words, told, strict=True))
