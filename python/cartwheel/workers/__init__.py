"""Workers, which step the environments: how they start, serve, communicate and restart.

A :class:`~cartwheel.workers.serving.worker.Worker` holds environments. It runs on the calling
thread, on a thread of its own or in a process. Files here are the caller's side, and what both
sides use; ``serving`` is the side of the worker, and ``envs`` what it knows of environments. Worker
processes may import every module of this package, none of which imports
:class:`cartwheel.VectorEnv`.
"""
