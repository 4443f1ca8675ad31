"""Frozen backbones: media to a global feature and hidden states.

May import ``data`` and what lies below it; knows nothing of what is learned on top.
"""
