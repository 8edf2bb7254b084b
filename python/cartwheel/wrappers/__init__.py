"""Wrappers for every vector environment: cartwheel's and Gymnasium's, in every autoreset mode."""
