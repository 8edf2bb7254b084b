"""Base classes of several wrappers, and functions of batches, spaces and states that they share."""
