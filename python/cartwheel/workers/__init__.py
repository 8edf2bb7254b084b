"""Workers, which step the environments: how they start, serve, communicate and restart.

A :class:`~cartwheel.workers.worker.Worker` holds environments. It runs on the calling thread, on a
thread of its own or in a process. Worker processes may import every module of this package, none of
which imports :class:`cartwheel.VectorEnv`.
"""
