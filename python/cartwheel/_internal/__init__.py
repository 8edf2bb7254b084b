"""Spaces: their descriptions for the native code, batches, and nested arrays."""
