"""The whole way as one object: recipes, runs and the model ``AdaptiveEmbed``.

May import everything below the programs; nothing here reads arguments or prints.
"""
