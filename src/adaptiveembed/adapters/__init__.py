"""Ways to other systems: what is made here, as they take it.

May import everything but the programs. Their libraries are optional (the extra ``adapters``) and
imported when something is asked of them.
"""
