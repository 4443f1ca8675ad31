"""What the figures of a finished training warn of."""

from collections.abc import Iterator, Mapping

COLLAPSED = 0.98
"""Above this mean cosine between two positions of an item, all of them say the same."""
NOTHING_TO_GAIN = 0.001
"""Below this lead of the oracle over the best fixed selection, no policy can gain anything."""


def cautions(figures: Mapping[str, float]) -> Iterator[str]:
    """A line for everything that should be looked at before the model is used."""
    cosine, headroom = figures.get("cosine", 0.0), figures.get("headroom", 1.0)
    if cosine > COLLAPSED:
        yield (
            f"Caution: the mean cosine between positions is {cosine:.3f}, so all of them hold "
            f"nearly the same vector; train longer, or with another learning rate"
        )
    if headroom < NOTHING_TO_GAIN:
        yield (
            f"Caution: the oracle leads the best fixed selection by {headroom:.4f} mAP on "
            f"validation, so there is nothing for a policy to gain there; more or harder pairs "
            f"would show whether that is so"
        )
