"""Media read and decoded while the encoder works, in bounded memory and batches of like length."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from adaptiveembed.data.media import Audio, Image, Media, Text, Video
from adaptiveembed.errors import MediaError

SORTED_BATCHES = 4
"""Batches whose items are sorted by length together, so that little of a batch is padding."""

MOST_BYTES = 1 << 28
"""Decoded media that wait, and those that are sorted together, take about so much memory each."""


Load = Callable[[], Media]
"""Reads and decodes one item; what cannot be read is a MediaError."""


class Item(NamedTuple):
    """Something to encode: its id, a key that changes with its content, and how to read it."""

    id: str
    key: str
    load: Load


class LoadedItem(NamedTuple):
    """An item and its media."""

    item: Item
    media: Media


def batches_ahead(
    items: Iterable[Item],
    batch_size: int,
    readers: int,
    fail: Callable[[Item, MediaError], None],
    most_bytes: int = MOST_BYTES,
) -> Iterator[list[LoadedItem]]:
    """All items that can be read, in batches of similar length; ``fail`` is told of the others.

    While a batch is being used, threads read what comes after it.
    """
    most_items = SORTED_BATCHES * batch_size
    with _pool(readers) as pool:
        outcomes = _read_ahead(items, pool, readers, most_items, most_bytes)
        for window in _windows(_readable(outcomes, fail), most_items, most_bytes):
            by_length = sorted(window, key=lambda loaded: media_length(loaded.media))
            for start in range(0, len(by_length), batch_size):
                yield by_length[start : start + batch_size]


def media_length(media: Media) -> int:
    """How long media are, in the unit of their modality: letters, samples or pixels."""
    match media:
        case Text():
            return len(media.text)
        case Audio():
            return len(media.samples)
        case Image():
            return media.pixels.size
        case Video():
            return media.frames.size


def media_bytes(media: Media) -> int:
    """How much memory media take."""
    match media:
        case Text():
            return 4 * len(media.text)
        case Audio():
            return media.samples.nbytes
        case Image():
            return media.pixels.nbytes
        case Video():
            return media.frames.nbytes


_Outcome = tuple[Item, Media | MediaError]


def _read_ahead(
    items: Iterable[Item],
    pool: ThreadPoolExecutor,
    readers: int,
    most_items: int,
    most_bytes: int,
) -> Iterator[_Outcome]:
    """The items in their order, each read before it is asked for, as far as memory allows."""
    rest = iter(items)
    waiting: deque[Future[_Outcome]] = deque()
    allowed, largest = readers, 1
    while True:
        new = islice(rest, max(0, allowed - len(waiting)))
        waiting.extend([pool.submit(_read, item) for item in new])
        if not waiting:
            return
        item, media = waiting.popleft().result()
        yield item, media
        if not isinstance(media, MediaError):
            # How much the next ones take is not known; they may be as large as the largest so far.
            largest = max(largest, media_bytes(media))
            allowed = min(most_items, max(1, most_bytes // largest))


def _read(item: Item) -> _Outcome:
    try:
        return item, item.load()
    except MediaError as error:
        return item, error


def _readable(
    outcomes: Iterable[_Outcome], fail: Callable[[Item, MediaError], None]
) -> Iterator[LoadedItem]:
    for item, media in outcomes:
        if isinstance(media, MediaError):
            fail(item, media)
        else:
            yield LoadedItem(item, media)


def _windows(
    loaded: Iterable[LoadedItem], most_items: int, most_bytes: int
) -> Iterator[Sequence[LoadedItem]]:
    """Items that follow each other, as many at a time as are allowed and fit into the memory."""
    window: list[LoadedItem] = []
    taken = 0
    for one in loaded:
        window.append(one)
        taken += media_bytes(one.media)
        if len(window) == most_items or taken >= most_bytes:
            yield window
            window, taken = [], 0
    if window:
        yield window


@contextmanager
def _pool(readers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that read; what they have not begun when it ends is not read any more."""
    pool = ThreadPoolExecutor(readers, "read-media")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
