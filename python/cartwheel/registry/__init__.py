"""Gymnasium's registry: makes vector environments by id, and rebuilds them by their spec."""
