"""Records episodes and videos of vector environments, and reads the records."""
