"""The orders in which a :class:`~cartwheel.Collector` collects, and their common parts.

``lockstep`` steps all rows together, ``free`` and ``groups`` are two orders of one ``pipeline``,
and ``auto`` chooses among the three. ``background`` runs any of them in a thread.
"""
