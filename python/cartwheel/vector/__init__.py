"""Vector environments over Gymnasium environments, and the base class of all vector environments.

:class:`~cartwheel.vector.base.PoolVectorEnv`, the base class, has the part of Gymnasium's
interface that only needs a native pool. :class:`~cartwheel.vector.vector_env.VectorEnv` starts
workers that step environments written in Python.
"""
