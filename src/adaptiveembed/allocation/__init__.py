"""Who gets how much: allocators turn candidate sets into a selection per item (Stage II).

May import ``retrieval`` and what lies below it; ``retrieval`` never knows of allocators.
"""
