"""The commands ``envs`` and ``new`` of ``python -m cartwheel``."""
