"""Gymnasium's registry: making vector environments by id, and making them again by their spec."""
