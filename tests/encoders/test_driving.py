"""Many items reach the store, whatever a few of them do, and none is encoded twice."""

import threading

import numpy as np
import pytest
import torch

from adaptiveembed.data.feature_writer import FeatureWriter
from adaptiveembed.data.features import FeatureStore
from adaptiveembed.data.media import Audio, Image, Text, Video
from adaptiveembed.encoders import reading_ahead
from adaptiveembed.encoders.driving import EncodingSummary, encode_items
from adaptiveembed.encoders.reading_ahead import Item, batches_ahead
from adaptiveembed.errors import DuplicateIdError, EncoderError, MediaError, SettingError
from adaptiveembed.structure.encoded import EncodedMedia
from tests.encoders.own_encoders import LetterCounter


class MemorySink:
    """A store in memory that remembers how it was filled."""

    def __init__(self):
        self.stored = {}
        self.batches = []

    def holds(self, item_id, key):
        return self.stored.get(item_id, (None,))[0] == key

    def append(self, ids, keys, encoded):
        self.batches.append(list(ids))
        for place, (item_id, key) in enumerate(zip(ids, keys, strict=True)):
            self.stored[item_id] = (key, encoded.read([place]))


class Listener:
    def __init__(self):
        self.told = []

    def __call__(self, done, total, facts=None):
        self.told.append((done, total, dict(facts or {})))


def items(*texts):
    return [
        Item(f"id{place}", f"key of {text}", lambda text=text: Text(text))
        for place, text in enumerate(texts)
    ]


def broken(item_id="broken"):
    def load():
        raise MediaError(f"{item_id}.png is cut off")

    return Item(item_id, "k", load)


class Picky(LetterCounter):
    """Fails on texts that hold a word, in a way that the word names."""

    name = "picky"

    def encode(self, batch):
        for item in batch:
            if "bad" in item.text:
                raise RuntimeError("cannot read this")
        encoded = super().encode(batch)
        for place, item in enumerate(batch):
            if "nan" in item.text:
                features = encoded.global_feature.clone()
                features[place] = torch.nan
                return EncodedMedia(features, encoded.hidden_states, encoded.mask)
        return encoded


# What becomes of items.


def test_every_item_is_stored_with_its_key_and_what_it_gives_alone():
    texts = ["one", "two words", "now there are four", ""]
    sink = MemorySink()
    summary = encode_items(LetterCounter(), items(*texts), sink, batch_size=2)
    assert summary == EncodingSummary(4, 0, ())
    for place, text in enumerate(texts):
        key, encoded = sink.stored[f"id{place}"]
        alone = LetterCounter().encode([Text(text)])
        assert key == f"key of {text}"
        torch.testing.assert_close(encoded.hidden_states, alone.hidden_states)
        torch.testing.assert_close(encoded.global_feature, alone.global_feature)


def test_plain_tuples_are_items_too():
    sink = MemorySink()
    encode_items(LetterCounter(), [("a", "k", lambda: Text("x"))], sink)
    assert list(sink.stored) == ["a"]


def test_no_items_are_no_work():
    assert encode_items(LetterCounter(), [], MemorySink()) == EncodingSummary(0, 0, ())


def test_what_is_stored_with_the_same_content_is_neither_read_nor_encoded_again():
    sink = MemorySink()
    encode_items(LetterCounter(), items("one", "two"), sink)
    changed = [*items("one", "two"), Item("new", "k", lambda: Text("new"))]
    changed[0] = Item("id0", "key of one", lambda: pytest.fail("was read again"))
    changed[1] = Item("id1", "another key", lambda: Text("changed"))
    summary = encode_items(LetterCounter(), changed, sink)
    assert (summary.encoded, summary.skipped) == (2, 1)
    assert sink.stored["id1"][0] == "another key"


def test_an_interrupted_run_goes_on_where_it_stopped():
    class Interrupted(MemorySink):
        def append(self, ids, keys, encoded):
            if len(self.stored) >= 4:
                raise KeyboardInterrupt
            super().append(ids, keys, encoded)

    every = items(*(f"text {number}" for number in range(10)))
    sink = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        encode_items(LetterCounter(), every, sink, batch_size=2)
    resumed = MemorySink()
    resumed.stored = sink.stored
    assert encode_items(LetterCounter(), every, resumed).skipped == 4
    assert len(resumed.stored) == 10


def test_an_item_that_cannot_be_read_is_reported_and_left_out():
    sink = MemorySink()
    summary = encode_items(LetterCounter(), [broken(), *items("one", "two")], sink)
    assert summary.failed == (("broken", "broken.png is cut off"),)
    assert sorted(sink.stored) == ["id0", "id1"]
    assert str(summary) == "2 encoded, 0 stored before, 1 failed"


@pytest.mark.parametrize(
    ("text", "reason"), [("bad", "RuntimeError: cannot read this"), ("nan", "NaN or infinity")]
)
def test_an_item_that_cannot_be_encoded_does_not_take_its_batch_with_it(text, reason):
    sink = MemorySink()
    summary = encode_items(Picky(), items("one", text, "three", "four"), sink)
    assert sorted(sink.stored) == ["id0", "id2", "id3"]
    [(failed, said)] = summary.failed
    assert failed == "id1"
    assert said.startswith("picky cannot encode 'id1': ")
    assert reason in said


def test_a_strict_run_stops_at_what_cannot_be_read():
    with pytest.raises(MediaError, match=r"item 'broken': broken.png is cut off"):
        encode_items(LetterCounter(), [broken(), *items("one")], MemorySink(), strict=True)


def test_a_strict_run_stops_at_what_cannot_be_encoded_by_its_id():
    with pytest.raises(EncoderError, match=r"item 'id1': picky cannot encode 'id1': RuntimeError"):
        encode_items(Picky(), items("one", "bad", "three"), MemorySink(), strict=True)


def test_a_fault_of_the_program_is_not_taken_for_a_fault_of_the_item():
    def load():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        encode_items(LetterCounter(), [Item("a", "k", load)], MemorySink())


# What is wrong with an encoder.


class TooFew(LetterCounter):
    def encode(self, batch):
        return super().encode(batch[:1])


class TooWide(LetterCounter):
    width = 5


class Other(LetterCounter):
    def encode(self, batch):
        return [0 for _ in batch]


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        (TooFew(), "gave 1 items for 4"),
        (TooWide(), "gave width 27, and says of itself that it is 5"),
        (Other(), "gave list, needed is EncodedMedia"),
    ],
)
def test_an_encoder_that_breaks_its_contract_is_refused_with_the_items(encoder, said):
    every = items("one", "two", "three", "four")
    with pytest.raises(EncoderError, match=f"letter counter {said}, at .*'id.'.* and 1 more"):
        encode_items(encoder, every, MemorySink())


def test_a_global_feature_of_zeros_is_a_failure_of_its_item():
    class Zero(LetterCounter):
        def count(self, text):
            return super().count(text) * ("zero" not in text)

    summary = encode_items(Zero(), items("one", "zero", "two"), MemorySink())
    assert [failure.id for failure in summary.failed] == ["id1"]
    assert "global feature is zero" in summary.failed[0].reason


def test_an_encoder_that_fails_on_all_of_its_first_items_is_refused():
    with pytest.raises(EncoderError, match=r"nothing could be encoded.*cannot read this"):
        encode_items(Picky(), items("bad", "bad too", "bad as well"), MemorySink())


def test_a_resumed_run_may_fail_on_all_that_is_left():
    sink = MemorySink()
    every = items("good", "bad", "bad too")
    encode_items(Picky(), every, sink)
    summary = encode_items(Picky(), every, sink)
    assert (summary.encoded, summary.skipped, len(summary.failed)) == (0, 1, 2)


def test_numbers_too_large_for_the_store_are_a_failure_of_their_item(tmp_path):
    class Loud(LetterCounter):
        def count(self, text):
            return super().count(text) * (1e6 if "loud" in text else 1)

    with FeatureWriter(tmp_path, "f", 27) as writer:
        summary = encode_items(Loud(), items("one", "loud", "two"), writer)
    assert [failure.id for failure in summary.failed] == ["id1"]
    assert "half precision" in summary.failed[0].reason


@pytest.mark.parametrize("name", ["batch_size", "readers"])
def test_a_setting_that_cannot_work_is_refused(name):
    with pytest.raises(SettingError, match=f"{name} is 0; give at least 1"):
        encode_items(LetterCounter(), [], MemorySink(), **{name: 0})


def test_an_id_that_is_given_twice_is_refused():
    with pytest.raises(DuplicateIdError, match="'id0' more than once"):
        encode_items(LetterCounter(), [*items("one"), *items("two")], MemorySink())


# The real store.


def test_a_feature_store_holds_what_was_encoded_and_a_second_run_adds_nothing(tmp_path):
    every = items("one", "two words", "three words here", "")
    for skipped in (0, 4):
        with FeatureWriter(tmp_path, LetterCounter.fingerprint, LetterCounter.width) as writer:
            summary = encode_items(LetterCounter(), every, writer, batch_size=3)
        assert (summary.encoded, summary.skipped) == (4 - skipped, skipped)
    store = FeatureStore.open(tmp_path)
    assert len(store) == 4
    place = store.places(["id1"])
    alone = LetterCounter().encode([Text("two words")])
    torch.testing.assert_close(store.read(place).hidden_states, alone.hidden_states)


# Progress.


def test_progress_counts_all_items_and_ends_with_all_of_them():
    sink, listener = MemorySink(), Listener()
    encode_items(LetterCounter(), items("one", "two"), sink)
    every = [*items("one", "two", "three", "four", "five"), broken()]
    encode_items(LetterCounter(), every, sink, batch_size=2, progress=listener)
    done = [told[0] for told in listener.told]
    assert done[0] == 2
    assert done == sorted(done)
    assert listener.told[-1][:2] == (6, 6)
    facts = listener.told[-1][2]
    assert facts["failed"] == 1
    assert facts["items_per_second"] > 0
    assert facts["seconds_left"] == 0


# Reading ahead.


def batches(every, batch_size, **settings):
    settings = {"readers": 2, "fail": lambda *_: None} | settings
    found = batches_ahead(every, batch_size, **settings)
    return [[loaded.item.id for loaded in batch] for batch in found]


def test_batches_hold_items_of_similar_length():
    texts = ["x" * length for length in (9, 1, 8, 2, 7, 3, 6, 4)]
    found = batches(items(*texts), 2)
    assert found == [["id1", "id3"], ["id5", "id7"], ["id6", "id4"], ["id2", "id0"]]


def test_items_of_equal_length_keep_their_order():
    assert batches(items(*["xx"] * 5), 2) == [["id0", "id1"], ["id2", "id3"], ["id4"]]


def test_only_a_few_batches_are_sorted_together():
    texts = ["x" * length for length in range(40, 0, -1)]
    first = batches(items(*texts), 2)[:4]
    assert sorted(one for batch in first for one in batch) == [f"id{place}" for place in range(8)]


def test_what_waits_is_bounded_by_the_largest_item_so_far():
    size = 1000
    read, used = [], []

    def load(number):
        read.append(number)
        return Audio(np.zeros(size, np.float32), 8000)

    every = [Item(str(number), "k", lambda number=number: load(number)) for number in range(60)]
    most_bytes = 5 * 4 * size
    for batch in batches_ahead(every, 4, 2, lambda *_: None, most_bytes):
        used.extend(batch)
        # five that wait, and five that are sorted together, of which some may be used already
        assert len(read) - len(used) <= 5 + 5
    assert len(used) == 60


def test_one_item_larger_than_the_memory_is_still_read():
    every = [Item("a", "k", lambda: Image(np.zeros((9, 9, 3), np.uint8)))] * 3
    assert batches(every, 4, most_bytes=10) == [["a"]] * 3


def test_items_are_read_by_other_threads_while_a_batch_is_used():
    main, readers = threading.get_ident(), set()

    def load():
        readers.add(threading.get_ident())
        return Text("x")

    batches([Item(str(number), "k", load) for number in range(20)], 4)
    assert main not in readers
    assert len(readers) <= 2


def test_no_thread_is_left_when_the_user_of_batches_stops_early():
    before = threading.active_count()
    running = batches_ahead(items(*["x"] * 100), 2, 2, lambda *_: None)
    next(running)
    running.close()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("media", "length", "size"),
    [
        (Text("four"), 4, 16),
        (Audio(np.zeros(7, np.float32), 8000), 7, 28),
        (Image(np.zeros((2, 3, 3), np.uint8)), 18, 18),
        (Video(np.zeros((5, 2, 3, 3), np.uint8), 1.0), 90, 90),
    ],
)
def test_length_and_memory_of_media_are_counted(media, length, size):
    assert reading_ahead.media_length(media) == length
    assert reading_ahead.media_bytes(media) == size
