"""Ids of items and queries: texts, in a list."""

from collections.abc import Iterable

from adaptiveembed.errors import DtypeError


def checked_ids(ids: Iterable[object], *, meaning: str = "ids") -> tuple[str, ...]:
    """The ids, if they are a list of texts.

    A single text is refused, because its letters would be taken for ids.
    """
    if isinstance(ids, str):
        raise DtypeError(f"{meaning} are a list of texts, got the text {ids!r}; use [{ids!r}]")
    return tuple(_text(one, meaning) for one in ids)


def _text(one: object, meaning: str) -> str:
    if not isinstance(one, str):
        raise DtypeError(f"{meaning} are texts, got {one!r}; use str({one!r})")
    return one
