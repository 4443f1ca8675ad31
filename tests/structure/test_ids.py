"""Ids are texts in a list, and a single text is no list."""

import pytest

from adaptiveembed.errors import DtypeError, DuplicateIdError
from adaptiveembed.structure.ids import checked_ids, distinct_ids


@pytest.mark.parametrize("given", [["ab", "c"], ("ab", "c"), iter(["ab", "c"])])
def test_any_list_of_texts_is_accepted(given):
    assert checked_ids(given) == ("ab", "c")


def test_the_letters_of_a_text_are_not_taken_for_ids():
    with pytest.raises(DtypeError, match=r"^query ids are a list of .* text 'ab'; use \['ab'\]$"):
        checked_ids("ab", meaning="query ids")


@pytest.mark.parametrize("wrong", [7, None, b"a"])
def test_an_id_that_is_no_text_is_refused_by_value(wrong):
    with pytest.raises(DtypeError) as refused:
        checked_ids(["a", wrong])
    assert str(refused.value) == f"ids are texts, got {wrong!r}; use str({wrong!r})"


def test_distinct_ids_are_checked_like_others_and_named_once():
    assert distinct_ids(["b", "a"]) == ("b", "a")
    with pytest.raises(DtypeError, match="the text 'ab'"):
        distinct_ids("ab")
    with pytest.raises(DuplicateIdError, match=r"^query ids name 'b' more than once; name each"):
        distinct_ids(["a", "b", "b"], meaning="query ids")
