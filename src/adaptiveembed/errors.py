"""Every error that a wrong input can cause.

Catch ``AdaptiveEmbedError`` for all of them; it is a ``ValueError``. A message says what was given,
what is needed and what to do, and it is written where the error is raised.

    AdaptiveEmbedError
    ├── LayoutMismatchError     positions, selections or sets that belong to another group layout
    ├── UnknownSelectionError   a selection that the layout or the selection space does not have
    ├── UnequalCapacityError    two sets that must match one to one and differ in size
    ├── CapacityLimitError      a set larger than the exact assignment supports
    ├── NotNormalizedError      a vector that is not of unit length
    ├── NotFiniteError          a number that is NaN or infinite
    ├── ShapeError              an array or tensor of the wrong shape, or two that do not fit
    ├── DtypeError              an array or tensor of a number type that is not supported
    ├── EmptyBatchError         nothing at all, where at least one item is needed
    ├── DuplicateIdError        the same id, or the same item, twice
    ├── UnknownIdError          an id, or an item, that is not in the gallery
    ├── GalleryFormatError      a stored gallery that cannot be read
    ├── ManifestError           a list of pairs with something wrong in it; names every line
    ├── MediaError              a text, picture, video or sound that cannot be read
    ├── EncoderError            an encoder that cannot be found, or breaks its contract
    ├── FeatureStoreError       stored features that cannot be read, or belong to something else
    ├── CheckpointError         a stored state of training that cannot be continued
    ├── ModelFormatError        a saved model that cannot be read
    ├── TrainingError           a training that cannot go on; says at which step and why
    └── SettingError            a setting that cannot work
"""

__all__ = [
    "AdaptiveEmbedError",
    "CapacityLimitError",
    "CheckpointError",
    "DtypeError",
    "DuplicateIdError",
    "EmptyBatchError",
    "EncoderError",
    "FeatureStoreError",
    "GalleryFormatError",
    "LayoutMismatchError",
    "ManifestError",
    "MediaError",
    "ModelFormatError",
    "NotFiniteError",
    "NotNormalizedError",
    "SettingError",
    "ShapeError",
    "TrainingError",
    "UnequalCapacityError",
    "UnknownIdError",
    "UnknownSelectionError",
]


class AdaptiveEmbedError(ValueError):
    """Something given to this library cannot be used; the message says what and what to do."""


class LayoutMismatchError(AdaptiveEmbedError):
    """Positions, selections or candidate sets belong to another group layout."""


class UnknownSelectionError(AdaptiveEmbedError):
    """The layout or the selection space does not have this selection."""


class UnequalCapacityError(AdaptiveEmbedError):
    """Two sets that must be matched one to one differ in size."""


class CapacityLimitError(AdaptiveEmbedError):
    """A set is larger than the exact assignment supports."""


class NotNormalizedError(AdaptiveEmbedError):
    """A vector is not of unit length."""


class NotFiniteError(AdaptiveEmbedError):
    """A number is NaN or infinite."""


class ShapeError(AdaptiveEmbedError):
    """An array or tensor has the wrong shape, or two of them do not fit together."""


class DtypeError(AdaptiveEmbedError):
    """An array or tensor holds a type of number that is not supported."""


class EmptyBatchError(AdaptiveEmbedError):
    """At least one item is needed and none was given."""


class DuplicateIdError(AdaptiveEmbedError):
    """The same id, or the same item, was given twice."""


class UnknownIdError(AdaptiveEmbedError):
    """An id, or an item, is not in the gallery."""


class GalleryFormatError(AdaptiveEmbedError):
    """A stored gallery cannot be read."""


class ManifestError(AdaptiveEmbedError):
    """A list of pairs has something wrong in it."""


class MediaError(AdaptiveEmbedError):
    """A text, picture, video or sound cannot be read."""


class EncoderError(AdaptiveEmbedError):
    """An encoder cannot be found, or breaks its contract."""


class FeatureStoreError(AdaptiveEmbedError):
    """Stored features cannot be read, or belong to something else."""


class CheckpointError(AdaptiveEmbedError):
    """A stored state of training cannot be continued."""


class ModelFormatError(AdaptiveEmbedError):
    """A saved model cannot be read."""


class TrainingError(AdaptiveEmbedError):
    """A training cannot go on."""


class SettingError(AdaptiveEmbedError):
    """A setting cannot work."""
