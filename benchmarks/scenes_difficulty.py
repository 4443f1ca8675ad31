"""How hard scenes are, by means that know nothing of capacity: words against simple statistics.

Run it as `python -m benchmarks.scenes_difficulty`; it takes some minutes on one core. It is
the only evidence that the generator may be tuned by, and ran before anything adaptive existed.
"""

import re
import sys
import time
import zlib
from collections.abc import Sequence

import numpy as np

from adaptiveembed.data.media import Media
from adaptiveembed.data.scenes import ScenesSettings, Telling, scene, scene_media, scene_text
from adaptiveembed.data.scenes import words as vocabulary
from adaptiveembed.data.scenes.latent import SceneKind
from adaptiveembed.structure.direction import Modality

TRAINED, QUERIES = 8000, 1000
FACT_QUERIES = 250
"""Queries that the slow bound is measured with."""
NUM = TRAINED + QUERIES
DIMS = 256
WORD_BINS = 1024
WORD = re.compile(r"[a-z-]+")
EVERYTHING = Telling(setting=1.0, main=1.0, others=1.0, details=1.0)
TELLS_ALL = ScenesSettings(
    distinct_telling=EVERYTHING,
    fine_telling=EVERYTHING,
    twin_telling=EVERYTHING,
    common_word_rate=1.0,
    vague_rate=0.0,
    error_rate=0.0,
)


def bag_of_words(texts: Sequence[str]) -> np.ndarray:
    bags = np.zeros((len(texts), WORD_BINS), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in WORD.findall(text.lower()):
            bags[row, zlib.crc32(word.encode()) % WORD_BINS] += 1
    return np.sqrt(bags) * np.log(len(bags) / (1 + (bags > 0).sum(axis=0)))


def cells(pixels: np.ndarray, across: int = 12) -> np.ndarray:
    size = pixels.shape[0] // across
    cut = pixels[: size * across, : size * across].astype(np.float32)
    return cut.reshape(across, size, across, size, -1)


def image_statistics(media: Media) -> np.ndarray:
    parts = cells(media.pixels)
    return np.concatenate([parts.mean(axis=(1, 3)), parts.std(axis=(1, 3))], axis=-1).ravel()


def video_statistics(media: Media) -> np.ndarray:
    frames = media.frames.astype(np.float32)
    moved = np.abs(np.diff(frames, axis=0)).mean(axis=0)
    return np.concatenate(
        [
            cells(one, 8).mean(axis=(1, 3)).ravel()
            for one in (frames[0], frames.mean(axis=0), frames[-1], frames.std(axis=0), moved)
        ]
    )


def audio_statistics(media: Media) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(media.samples, 512)[::256]
    power = np.abs(np.fft.rfft(windows * np.hanning(512).astype(np.float32), axis=1)) ** 2
    bands = np.log(power[:, 1:].reshape(len(power), 64, 4).mean(axis=2) + 1e-4)
    times = [part.mean(axis=0) for part in np.array_split(bands, 12)]
    return np.concatenate([*times, bands.mean(axis=0), bands.std(axis=0)])


STATISTICS = {
    Modality.IMAGE: image_statistics,
    Modality.VIDEO: video_statistics,
    Modality.AUDIO: audio_statistics,
}


def aligned(texts: np.ndarray, media: np.ndarray, penalty: float) -> list[np.ndarray]:
    """Both sides in the space of a regularised CCA that is fitted on the first items."""
    whitened, maps = [], []
    for side in (texts, media):
        centred = (side - side[:TRAINED].mean(axis=0)) / (side[:TRAINED].std(axis=0) + 1e-6)
        values, vectors = np.linalg.eigh(centred[:TRAINED].T @ centred[:TRAINED] / TRAINED)
        scale = 1 / np.sqrt(np.maximum(values, 0) + penalty * values.mean())
        whitened.append(centred @ (vectors * scale))
    one, other = whitened
    left, shrink, right = np.linalg.svd(one[:TRAINED].T @ other[:TRAINED] / TRAINED)
    for side, directions in ((one, left), (other, right.T)):
        mapped = (side @ directions[:, :DIMS]) * shrink[:DIMS]
        maps.append(mapped / np.linalg.norm(mapped, axis=1, keepdims=True))
    return maps


def reciprocal_ranks(scores: np.ndarray, first: int) -> np.ndarray:
    """1 / rank of the item with the query's own number, ties against it."""
    own = scores[np.arange(len(scores)), first + np.arange(len(scores))]
    return 1 / (scores >= own[:, None]).sum(axis=1)


def common_words(text: str) -> str:
    return SYNONYMS.sub(lambda found: COMMON[found[0]], text.lower())


def _common() -> dict[str, str]:
    tables = [vars(vocabulary)[name] for name in vars(vocabulary) if name.isupper()]
    entries = [
        words
        for table in tables
        for words in (table.values() if isinstance(table, dict) else table)
        if isinstance(words, tuple) and words and isinstance(words[0], str)
    ]
    return {synonym: words[0].replace(" ", "-") for words in entries for synonym in words}


COMMON = _common()
SYNONYMS = re.compile(
    r"\b(" + "|".join(map(re.escape, sorted(COMMON, key=len, reverse=True))) + r")(?=s?\b)"
)


FACT_WORDS = {word.rstrip("s") for words in COMMON.values() for word in WORD.findall(words)}


def sentence_vectors(texts: Sequence[str], bins: int = 2**14) -> tuple[np.ndarray, np.ndarray]:
    """The words for facts in every sentence, and the item that each sentence belongs to."""
    vectors, owners = [], []
    for item, text in enumerate(texts):
        for sentence in common_words(text).split(". "):
            bag = np.zeros(bins, dtype=np.float32)
            for word in WORD.findall(sentence):
                if word.rstrip("s") in FACT_WORDS:
                    bag[zlib.crc32(word.rstrip("s").encode()) % bins] = 1
            vectors.append(bag.astype(bool))
            owners.append(item)
    return np.array(vectors), np.array(owners)


def by_facts(told: Sequence[str], complete: Sequence[str]) -> np.ndarray:
    """Scores of narratives against complete descriptions: each sentence by its best match.

    An upper bound of sorts: it reads facts exactly, thing by thing, on the gallery's side.
    """
    gallery, owners = sentence_vectors(complete)
    used = gallery.any(axis=0)
    gallery = gallery[:, used].astype(np.float32)
    gallery *= np.log(len(gallery) / (1 + gallery.sum(axis=0)))
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    queries, askers = sentence_vectors(told)
    scores = np.zeros((len(told), len(complete)), dtype=np.float32)
    for vector, asker in zip(queries[:, used].astype(np.float32), askers, strict=True):
        scores[asker] += np.maximum.reduceat(gallery @ vector, starts)
    return scores


def shares(values: np.ndarray, kinds: np.ndarray) -> str:
    return "  ".join(
        f"{100 * values[kinds[: len(values)] == kind].mean():5.1f}" for kind in SceneKind
    )


def main(seed: int = 7) -> None:
    settings = ScenesSettings()
    latents = [scene(number, seed, settings) for number in range(NUM)]
    kinds = np.array([one.kind for one in latents])[TRAINED:]
    print(f"mAP in percent over {NUM} items, {QUERIES} queries: all, then {', '.join(SceneKind)}")
    for medium, statistics in STATISTICS.items():
        start = time.perf_counter()
        texts = [scene_text(one, medium, settings).text for one in latents]
        media = np.array([statistics(scene_media(one, medium, settings)) for one in latents])
        text_side, media_side = aligned(bag_of_words(texts), media, penalty=0.3)
        there = reciprocal_ranks(text_side[TRAINED:] @ media_side.T, TRAINED)
        back = reciprocal_ranks(media_side[TRAINED:] @ text_side.T, TRAINED)
        complete = [scene_text(one, medium, TELLS_ALL).text for one in latents]
        facts = by_facts(texts[TRAINED : TRAINED + FACT_QUERIES], complete)
        exact = reciprocal_ranks(facts, TRAINED)
        for name, values in (("text→" + medium, there), (medium + "→text", back), ("facts", exact)):
            print(f"{name:12}{100 * values.mean():6.1f}   {shares(values, kinds)}")
        print(f"{'':12}{time.perf_counter() - start:6.1f} s", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
