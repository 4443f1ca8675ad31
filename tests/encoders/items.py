"""Small media of every modality, all different, and of different lengths."""

import numpy as np

from adaptiveembed.data.media import Audio, Image, Text, Video
from adaptiveembed.structure.direction import Modality

TEXTS = (
    "Two cats sleep on a red sofa. A lamp is on.",
    "A dog",
    "",
    "The boat is near the shore. " * 20,
)


def picture(seed, height=20, width=30):
    """A smooth ground with a block on it and some noise."""
    random = np.random.default_rng(seed)
    ground = random.integers(0, 200, 3) + np.linspace(0, 40, height)[:, None, None]
    pixels = ground + np.zeros((height, width, 3))
    top, left = random.integers(0, height // 2), random.integers(0, width // 2)
    pixels[top : top + 8, left : left + 8] = random.integers(0, 255, 3)
    noisy = pixels + random.normal(0, 5, pixels.shape)
    return noisy.clip(0, 255).astype(np.uint8)


def tone(hertz, seconds=1.0, rate=8000, loudness=0.5):
    times = np.arange(round(seconds * rate)) / rate
    return Audio((loudness * np.sin(2 * np.pi * hertz * times)).astype(np.float32), rate)


def moving_block(across, down, frames=8, side=48):
    """A soft block that moves by so many pixels from frame to frame."""
    rows, columns = np.mgrid[:side, :side]
    shown = [
        np.exp(
            -((columns - 20 - across * (time - 3)) ** 2 + (rows - 20 - down * (time - 3)) ** 2) / 50
        )
        for time in range(frames)
    ]
    pixels = (200 * np.stack(shown)).astype(np.uint8)
    return Video(np.repeat(pixels[..., None], 3, axis=3), 4.0)


BATCHES = {
    Modality.TEXT: [Text(text) for text in TEXTS],
    Modality.IMAGE: [
        Image(picture(1)),
        Image(picture(2, 96, 96)),
        Image(picture(3, 200, 20)),
        Image(np.zeros((1, 1, 3), np.uint8)),
    ],
    Modality.VIDEO: [
        moving_block(1, 0),
        moving_block(0, -2, frames=20),
        Video(np.stack([picture(seed) for seed in (1, 2, 3)]), 1.0),
        Video(picture(4)[None], 1.0),
    ],
    Modality.AUDIO: [
        tone(440),
        tone(880, seconds=0.3, rate=16000),
        tone(100, seconds=9.0),
        Audio(np.zeros(5, np.float32), 8000),
    ],
}
