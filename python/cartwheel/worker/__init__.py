"""What steps environments: a worker, the channels to it, the crew of them and who replaces one.

:class:`~cartwheel.worker.worker.Worker` holds environments; it runs on the calling thread, on a
thread or in a process. Everything here may be imported by a worker process and nothing here knows
:class:`cartwheel.VectorEnv`.
"""
