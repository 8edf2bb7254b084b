"""Vector environments over Gymnasium environments, and the base class of all vector environments.

:class:`~cartwheel.vector.base.PoolVectorEnv`, the base class, has the part of Gymnasium's
interface that only needs a native pool. :class:`~cartwheel.vector.vector_env.VectorEnv` starts
workers that step environments written in Python. Public names are those of ``cartwheel``.
"""

from typing import TYPE_CHECKING

from cartwheel._internal.suggestions import missing_name

if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> object:
        """Raises an error that names the place of a public name, such as ``AsyncVectorEnv``."""
        raise missing_name(__name__, name)
