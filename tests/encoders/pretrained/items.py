"""Media on which encoders are compared with the official path."""

import numpy as np

from adaptiveembed.data.media import Audio
from tests.encoders.items import TEXTS, picture

SHORT_AND_LONG_TEXTS = (*TEXTS, "rain on a tin roof", "Ünïcode — and  blanks\n")
PICTURES = tuple(picture(seed, 40 + 3 * seed, 64) for seed in range(3))


def noise(seconds, rate, seed=0):
    """A sound that is different everywhere, so that it shows which part of it is heard."""
    random = np.random.default_rng(seed)
    times = np.arange(round(seconds * rate)) / rate
    sweep = np.sin(2 * np.pi * (200 + 300 * times) * times)
    samples = 0.5 * sweep + 0.1 * random.normal(size=len(times))
    return Audio(samples.clip(-1, 1).astype(np.float32), rate)
