"""The native environments: their keywords, and what ``python -m cartwheel envs`` prints."""
