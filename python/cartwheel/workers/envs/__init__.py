"""Environments as a worker holds them: of one agent or several, their attributes, forms and chains.

No file of this package knows of workers, channels or the caller.
"""
