"""Atari environments by the vector environment of ale-py, with its edges wrapped.

The extra is ``ale``: ``pip install 'cartwheel[ale]'``. ale-py is under the GPL-2.0; cartwheel
imports it where it is installed, and contains nothing of it.
"""

from cartwheel.extras import load

load("ale_py", "ale", "cartwheel.ale")

from cartwheel.ale.vector_env import AleVectorEnv  # noqa: E402 - it imports what was loaded

__all__ = ["AleVectorEnv"]
