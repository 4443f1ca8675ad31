"""Ids of items and queries: texts, in a list."""

from collections import Counter
from collections.abc import Iterable

from adaptiveembed.errors import DtypeError, DuplicateIdError


def checked_ids(ids: Iterable[object], *, meaning: str = "ids") -> tuple[str, ...]:
    """The ids, if they are a list of texts.

    A single text is refused, because its letters would be taken for ids.
    """
    if isinstance(ids, str):
        raise DtypeError(f"{meaning} are a list of texts, got the text {ids!r}; use [{ids!r}]")
    return tuple(_text(one, meaning) for one in ids)


def distinct_ids(ids: Iterable[object], *, meaning: str = "ids") -> tuple[str, ...]:
    """The ids, if they are a list of texts of which none is named twice."""
    checked = checked_ids(ids, meaning=meaning)
    repeated = [one for one, times in Counter(checked).items() if times > 1]
    if repeated:
        raise DuplicateIdError(f"{meaning} name {repeated[0]!r} more than once; name each once")
    return checked


def _text(one: object, meaning: str) -> str:
    if not isinstance(one, str):
        raise DtypeError(f"{meaning} are texts, got {one!r}; use str({one!r})")
    return one
