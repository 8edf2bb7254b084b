"""Spaces and what travels in them: descriptions for the core, batches, nested arrays."""
