"""A stack of wrappers around a vector environment, for their base class.

Its source calls the environment and knows where each row is; the rest freezes, saves and records
all wrappers of the stack together.
"""
