"""Encoders made of published checkpoints. Importing it imports no transformers."""
