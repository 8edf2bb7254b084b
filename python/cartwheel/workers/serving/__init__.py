"""The worker's side, where the environments are: it makes, steps and saves them, and answers.

The caller's process imports these files, too, for the executors ``inline`` and ``thread``.
"""
