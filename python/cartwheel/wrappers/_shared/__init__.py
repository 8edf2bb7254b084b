"""What several wrappers share: base classes, and functions of batches, spaces and states."""
