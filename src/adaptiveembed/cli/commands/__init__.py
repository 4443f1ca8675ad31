"""One module for each command: its arguments, and a function that runs it.

Importing them imports nothing heavy; what a command needs is imported when it runs.
"""
