"""The loops of both stages: steps, epochs, logging, resuming.

May import ``evaluation`` and what lies below it; has no mathematics of its own.
"""
