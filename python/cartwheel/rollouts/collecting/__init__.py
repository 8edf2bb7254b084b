"""How a :class:`~cartwheel.Collector` collects: its orders, and what they share.

``lockstep`` steps all rows together, ``free`` and ``groups`` are two orders of one ``pipeline``,
and ``auto`` chooses among the three. ``background`` runs any of them in a thread.
"""
