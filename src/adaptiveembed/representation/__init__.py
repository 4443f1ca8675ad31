"""Stage I: encoded media to candidate sets, and the losses that teach it.

May import ``similarity``, ``data`` and what lies below them.
"""
