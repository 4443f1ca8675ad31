"""The built-in encoder: fixed statistics of media, through fixed random features.

There are no weights, so nothing is downloaded and nothing is learned here. It is meant for trying
things out, for tests and as a floor that any trained encoder should stand above; see
``docs/decisions/training-free-encoder.md``.
"""
