"""What runs where the environments are: a worker serves, and answers what the caller asks of rows.

The caller's process imports these files, too, for the executors ``inline`` and ``thread``.
"""
