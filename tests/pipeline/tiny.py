"""A corpus, encoders and a recipe so small that a whole training takes seconds."""

import csv
from itertools import islice, product

import numpy as np
import torch
from PIL import Image as PillowImage

from adaptiveembed.encoders.protocol import checked_batch
from adaptiveembed.pipeline.paired import QUERY, TRAIN, PairedFeatures
from adaptiveembed.pipeline.recipe_files import read_recipe
from adaptiveembed.structure.direction import Direction, Modality
from adaptiveembed.structure.encoded import EncodedMedia

COLOURS = {
    "red": (220, 30, 40),
    "green": (40, 180, 60),
    "blue": (50, 70, 220),
    "yellow": (230, 210, 60),
    "black": (20, 20, 25),
    "white": (240, 240, 235),
}
PLACES = ("top left", "top right", "bottom left", "bottom right")
WIDTH = 24
NAMES = {
    Modality.TEXT: "tests.pipeline.tiny:Words",
    Modality.IMAGE: "tests.pipeline.tiny:Cells",
}
ENCODERS = [f"{modality}={name}" for modality, name in NAMES.items()]
SETTINGS = (
    "splits.validation_share=0.1",
    "splits.policy_share=0.25",
    "splits.folds=1",
    "representation.embedder.dim=16",
    "representation.embedder.width=16",
    "representation.embedder.layers=1",
    "representation.embedder.heads=2",
    "representation.embedder.feed_forward=16",
    "representation.training.epochs=2",
    "representation.training.batch_size=32",
    "representation.training.validate_epochs=1",
    "allocation.policy.width=16",
    "allocation.policy.heads=2",
    "allocation.feedback.depth=5",
    "allocation.training.epochs=1",
    "allocation.training.batch_size=32",
)
"""What makes a recipe tiny."""
SET = [part for one in SETTINGS for part in ("--set", one)]
"""The same on a command line."""


def tiny_recipe(name="laptop", *changes):
    """A built-in recipe, made tiny."""
    return read_recipe(name, [*SETTINGS, *changes])


def facts(count):
    """The two colours and the two places of every item; all of them differ."""
    chosen = product(COLOURS, COLOURS, PLACES)
    return list(islice(((one, two, place) for one, two, place in chosen if one != two), count))


def text_of(one, two, place):
    return f"a {one} square at the {place} on {two}"


def picture_of(one, two, place):
    pixels = np.empty((16, 16, 3), np.uint8)
    pixels[:] = COLOURS[two]
    rows = slice(0, 8) if "top" in place else slice(8, 16)
    columns = slice(0, 8) if "left" in place else slice(8, 16)
    pixels[rows, columns] = COLOURS[one]
    return PillowImage.fromarray(pixels)


def write_corpus(folder, count=90, *, splits=True):
    """A manifest in CSV, and a folder of pictures beside it."""
    (folder / "pictures").mkdir(parents=True)
    with (folder / "pairs.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "text", "media", *(["split"] if splits else [])])
        for number, fact in enumerate(facts(count)):
            name = f"pictures/{number:03}.png"
            picture_of(*fact).save(folder / name)
            split = QUERY if number % 5 == 4 else TRAIN
            table.writerow(
                [f"item-{number:03}", text_of(*fact), name, *([split] if splits else [])]
            )
    return folder / "pairs.csv"


class Words:
    """A state for every word, the same wherever it stands."""

    name, fingerprint, space = "words", "words-1", "words"
    modalities = (Modality.TEXT,)
    width = WIDTH
    matryoshka_widths = ()

    def encode(self, batch):
        parts = [self._states(item.text.split()) for item in checked_batch(self, batch)]
        return _padded(parts)

    def _states(self, words):
        return torch.stack([_seeded("".join(pair)) for pair in zip(words, words, strict=True)])


class Cells:
    """A state for each quarter of a picture: its mean colour at its place."""

    name, fingerprint, space = "cells", "cells-1", "cells"
    modalities = (Modality.IMAGE,)
    width = WIDTH
    matryoshka_widths = ()

    def encode(self, batch):
        return _padded([self._states(item.pixels) for item in checked_batch(self, batch)])

    def _states(self, pixels):
        height, width = pixels.shape[0] // 2, pixels.shape[1] // 2
        found = []
        for number, (row, column) in enumerate(product((0, height), (0, width))):
            colour = pixels[row : row + height, column : column + width].mean(axis=(0, 1)) / 255
            state = torch.zeros(WIDTH)
            state[6 * number : 6 * number + 3] = torch.from_numpy(colour).float()
            state[6 * number + 3] = 1.0
            found.append(state)
        return torch.stack(found)


class OtherWords(Words):
    """Of the same width, and yet another encoder."""

    fingerprint = "words-2"


def _seeded(word):
    generator = torch.Generator().manual_seed(int.from_bytes(word.encode()[:7], "big"))
    return torch.randn(WIDTH, generator=generator)


def _padded(parts):
    states = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
    counts = torch.tensor([len(each) for each in parts])
    mask = torch.arange(states.shape[1]) < counts[:, None]
    return EncodedMedia(torch.stack([each.mean(dim=0) for each in parts]), states, mask)


def encoded(count):
    """Both sides of the first items in memory."""
    from adaptiveembed.pipeline.inputs import as_media

    chosen = facts(count)
    return (
        Words().encode([as_media(text_of(*one)) for one in chosen]),
        Cells().encode([as_media(picture_of(*one)) for one in chosen]),
    )


def tiny_pairs(count=90, name="pairs", start=0):
    """Encoded pairs in memory; every fifth is a query."""
    source, target = encoded(start + count)
    rows = np.arange(start, start + count)
    return PairedFeatures(
        Direction(Modality.TEXT, Modality.IMAGE),
        tuple(f"item-{row:03}" for row in rows),
        source.read(rows),
        target.read(rows),
        tuple(QUERY if row % 5 == 4 else TRAIN for row in rows),
        name,
    )
