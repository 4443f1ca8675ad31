"""Encoders as a user might write them, good ones and broken ones, named ``module:object``."""

from dataclasses import dataclass

import numpy as np
import torch

from adaptiveembed.data.media import Text
from adaptiveembed.encoders.protocol import checked_batch
from adaptiveembed.structure.direction import Modality
from adaptiveembed.structure.encoded import EncodedMedia


class LetterCounter:
    """Counts letters; a state for every word, which counts the letters of it."""

    name = "letter counter"
    fingerprint = "letters-1"
    modalities = (Modality.TEXT,)
    width = 27
    space = "letters"
    matryoshka_widths = ()

    def encode(self, batch):
        texts = [item.text.lower() for item in checked_batch(self, batch)]
        words = [text.split() or [text] for text in texts]
        states = torch.nn.utils.rnn.pad_sequence(
            [torch.stack([self.count(word) for word in each]) for each in words], batch_first=True
        )
        counts = torch.tensor([len(each) for each in words])
        mask = torch.arange(states.shape[1]) < counts[:, None]
        return EncodedMedia(torch.stack([self.count(text) for text in texts]), states, mask)

    def count(self, text):
        letters = [text.count(chr(place + ord("a"))) for place in range(26)]
        return torch.tensor([1.0, *letters])


class WithoutFingerprint(LetterCounter):
    fingerprint = None

    def __init__(self, scale=1.0):
        self.scale = scale
        self.weights = {"table": np.arange(3.0), "bias": torch.ones(2, dtype=torch.bfloat16)}
        self.layer = torch.nn.Linear(2, 2)
        torch.nn.init.constant_(self.layer.weight, 0.5)
        torch.nn.init.zeros_(self.layer.bias)
        self.itself = self


@dataclass(frozen=True)
class Settings:
    size: int = 3


def factory():
    return LetterCounter()


ready = LetterCounter()
number = 3


class Incomplete:
    name = ""
    modalities = ("text", "smell")
    width = True
    space = "x"
    matryoshka_widths = (4, 2)


class NeedsArguments(LetterCounter):
    def __init__(self, folder):
        self.folder = folder


class Fails(LetterCounter):
    def __init__(self):
        raise OSError("no weights here")


class Holder:
    encoder = LetterCounter()


__all__ = ["Holder", "Text"]
