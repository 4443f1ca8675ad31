"""How much of a medium is read."""

from dataclasses import dataclass, fields

from adaptiveembed.errors import SettingError


@dataclass(frozen=True)
class MediaLimits:
    """Bounds of what is read, so that no file takes more memory or time than is granted.

    What is larger than ``max_bytes`` or ``max_source_pixels`` is refused; all else is made smaller
    or cut.
    """

    max_bytes: int = 2**30
    """Bytes of a file."""
    max_source_pixels: int = 100_000_000
    """Pixels of a picture or a frame as it is stored; small files can unfold to very many."""
    max_pixels: int = 2**20
    """Pixels of a picture; a larger one is made smaller."""
    max_frame_pixels: int = 200_704
    """Pixels of a frame of a video; larger ones are made smaller. The default is 448 × 448."""
    max_seconds: float = 300.0
    """Seconds of a video or a sound; what comes later is not read."""
    frames_per_second: float = 1.0
    """Frames that are taken of each second of a video."""
    max_frames: int = 64
    """Frames of a video; of a long one, they are spread over all that is read."""
    rate: int = 16_000
    """Samples of each second of a sound, which is resampled."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise SettingError(f"{field.name} is {value}; give a number above 0")
