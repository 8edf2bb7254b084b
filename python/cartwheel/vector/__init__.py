"""The vector environments over Gymnasium environments, and what they share with native ones.

:class:`~cartwheel.vector.pool_env.PoolVectorEnv` is the part of Gymnasium's interface that a pool
answers, whoever steps its rows; :class:`~cartwheel.vector.vector_env.VectorEnv` starts workers.
"""
