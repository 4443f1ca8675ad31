"""Inputs: where candidate sets and media come from."""
