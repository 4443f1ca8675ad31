"""Protocol in, report out: who is asked what, how well it was found, and at what capacity.

``protocol`` says what is asked, ``evaluate`` answers it with an allocator, ``results`` holds what
came out, ``report`` prints it, ``analysis`` asks how capacity was spent. May import ``allocation``
and what lies below it.
"""
