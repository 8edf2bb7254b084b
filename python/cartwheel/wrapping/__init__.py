"""What wrappers of vector environments are made of: batches, kinds of rows, the base class."""
