"""One tree of errors."""

import inspect
import re

import pytest

from adaptiveembed import errors
from adaptiveembed.errors import AdaptiveEmbedError

TREE = [getattr(errors, name) for name in errors.__all__]


def test_the_outline_draws_every_error_once():
    drawn = re.findall(r"^    (?:[├└]── )?(\w+Error)\b", errors.__doc__, flags=re.MULTILINE)
    assert sorted(drawn) == sorted(errors.__all__)


def test_every_class_of_the_module_is_public():
    classes = [name for name, _ in inspect.getmembers(errors, inspect.isclass)]
    assert classes == sorted(errors.__all__)


@pytest.mark.parametrize("error", TREE, ids=lambda error: error.__name__)
def test_every_error_is_caught_as_ours_and_as_a_value_error(error):
    with pytest.raises(AdaptiveEmbedError, match="what and what to do"):
        raise error("what and what to do")
    assert issubclass(error, ValueError)


def test_no_error_hides_another():
    """Catching one kind does not catch a different kind."""
    kinds = [error for error in TREE if error is not AdaptiveEmbedError]
    assert all(kind.__bases__ == (AdaptiveEmbedError,) for kind in kinds)
