"""Texts, described by hashed words: the words themselves, their letters, and their neighbours."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import torch

from adaptiveembed.data.media import Text
from adaptiveembed.encoders.training_free.chance import piece_vectors
from adaptiveembed.encoders.training_free.places import place_features
from adaptiveembed.encoders.training_free.projecting import (
    cached_projection,
    length_one,
    means_over_time,
    padded,
    root_mean_square_one,
)
from adaptiveembed.shapes import ItemDescriptions, PieceVector, PieceVectors, PlaceFeatures
from adaptiveembed.structure.encoded import EncodedMedia

MOST_STATES = 48
"""States of a long text; each then covers several words."""

LETTERS = (3, 4)
"""Lengths of the pieces of a word, by which words never seen before resemble known ones."""

LETTERS_WEIGHT = 0.4
"""Length of all pieces of a word together, beside 1 for the word."""

PAIR_WEIGHT = 0.25
"""Weight of two neighbouring words in the global feature, beside 1 for a word."""

NEIGHBOUR_WEIGHT = 0.5
"""Weight of the word before and of the word after in a state, beside 1 for the word."""

SENTENCE_WEIGHT = 0.5
"""Length of all words of the sentence together in a state, beside 1 for the word."""

PLACE_WEIGHT = 0.2
"""Weight of the numbers that say where a word stands in a state, beside 1 for the word."""

LONGEST_TEXT, MOST_SENTENCES, LONGEST_SENTENCE = 128, 8, 32
"""Words and sentences by which places are measured, along with the place within the text."""

LONGEST_WORD = 32
"""Letters of a word; longer ones, as in scripts that write no spaces, are cut."""

WORDS_KNOWN_BY_HEART = 1 << 14
"""Words whose vectors are kept."""

WORD = re.compile(rf"\w{{1,{LONGEST_WORD}}}")
SENTENCE_END = re.compile(r"[.!?…。！？]+\s+|\n+")


class Word(NamedTuple):
    """A word and where it stands: its sentence, and its place in the sentence."""

    letters: str
    sentence: int
    place: int


def encode_texts(batch: Sequence[Text], key: str, width: int) -> EncodedMedia:
    """One state for every word, or for every few words of a long text.

    The global feature adds up all words and pairs of neighbouring words, repeated ones with less
    and less weight, and has length 1.
    """
    texts = [words_of(item.text) for item in batch]
    states, mask = padded([_states(words, key, width) for words in texts])
    features = torch.stack([_global_feature(words, key, width) for words in texts])
    return EncodedMedia(length_one(features), states, mask)


def words_of(text: str) -> list[Word]:
    """The words in small letters; a text without any is one word without letters."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    sentences = filter(None, (WORD.findall(part) for part in SENTENCE_END.split(plain)))
    found = [
        Word(letters, number, place)
        for number, sentence in enumerate(sentences)
        for place, letters in enumerate(sentence)
    ]
    return found or [Word("", 0, 0)]


def _global_feature(words: Sequence[Word], key: str, width: int) -> PieceVector:
    singles = Counter(word.letters for word in words)
    total = _fading_counts(singles) @ _word_vectors(singles, key, width)
    pairs = Counter(_pairs(words))
    if pairs:
        vectors = piece_vectors((f"{key} pair {pair}" for pair in pairs), width)
        total = total + PAIR_WEIGHT * (_fading_counts(pairs) @ vectors)
    return total


def _fading_counts(counts: Counter[str]) -> torch.Tensor:
    """What a piece weighs that occurs so often: 1 for once, 2 for three times, 3 for seven."""
    return torch.tensor(list(counts.values()), dtype=torch.float32).add(1).log2()


def _pairs(words: Sequence[Word]) -> Iterable[str]:
    """Every two words that follow each other in one sentence."""
    for one, other in pairwise(words):
        if one.sentence == other.sentence:
            yield f"{one.letters} {other.letters}"


def _states(words: Sequence[Word], key: str, width: int) -> ItemDescriptions:
    """What every word is, what stands around it, and where it stands.

    What stands around is turned by fixed steps, so that it is told apart from the word itself.
    """
    vectors = _word_vectors((word.letters for word in words), key, width)
    outside = vectors.new_zeros(1, width)
    before, after = torch.cat((outside, vectors[:-1])), torch.cat((vectors[1:], outside))
    places = _places(words)
    parts = (
        vectors,
        NEIGHBOUR_WEIGHT * before.roll(width // 4, dims=1),
        NEIGHBOUR_WEIGHT * after.roll(width // 2, dims=1),
        SENTENCE_WEIGHT * _sentences(vectors, words).roll(-(width // 4), dims=1),
        PLACE_WEIGHT * places @ cached_projection(f"{key} places", places.shape[1], width),
    )
    states = torch.stack(parts).sum(dim=0)
    return root_mean_square_one(means_over_time(states, min(len(words), MOST_STATES)))


def _sentences(vectors: PieceVectors, words: Sequence[Word]) -> PieceVectors:
    """For every word the direction of the sum of its sentence."""
    numbers = torch.tensor([word.sentence for word in words])
    sums = vectors.new_zeros(int(numbers[-1]) + 1, vectors.shape[1])
    return length_one(sums.index_add(0, numbers, vectors))[numbers]


def _places(words: Sequence[Word]) -> PlaceFeatures:
    """Where every word stands: in its sentence, its sentence in the text, itself in the text."""
    place = torch.arange(len(words))
    sentence = torch.tensor([word.sentence for word in words])
    within = torch.tensor([word.place for word in words])
    measured = (
        (place + 0.5) / len(words),
        place / LONGEST_TEXT,
        sentence / MOST_SENTENCES,
        within / LONGEST_SENTENCE,
    )
    return place_features(torch.stack(measured, dim=1).clamp_max(1))


def _word_vectors(words: Iterable[str], key: str, width: int) -> PieceVectors:
    return torch.stack([_word_vector(word, key, width) for word in words])


@lru_cache(maxsize=WORDS_KNOWN_BY_HEART)
def _word_vector(word: str, key: str, width: int) -> PieceVector:
    """A vector for the word itself and, with less weight, for the pieces of it."""
    own = piece_vectors([f"{key} word {word}"], width)[0]
    pieces = (f"{key} letters {piece}" for piece in _letter_pieces(word))
    letters = length_one(piece_vectors(pieces, width).sum(dim=0, keepdim=True))[0]
    return own + LETTERS_WEIGHT * letters


def _letter_pieces(word: str) -> list[str]:
    """The pieces of three and four letters, with marks at both ends; the word, if it is short."""
    marked = f"<{word}>"
    pieces = [
        marked[start : start + length]
        for length in LETTERS
        for start in range(len(marked) - length + 1)
    ]
    return pieces or [marked]
