"""Protocol in, report out: who is asked what, how well it was found, and at what capacity."""
