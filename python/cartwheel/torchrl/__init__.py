"""Batched environments of TorchRL over the vector environments of cartwheel.

Example:
    >>> import cartwheel
    >>> from cartwheel.torchrl import CartwheelEnv
    >>> envs = cartwheel.make_vec("cartwheel/CartPole-v1", 8, autoreset_mode="disabled")
    >>> env = CartwheelEnv(envs)
    >>> env.rollout(100, break_when_any_done=False).batch_size
    torch.Size([8, 100])

``docs/trainers/torchrl.md`` is the guide.

Raises:
    ImportError: TorchRL is missing or too old: ``pip install 'cartwheel[torchrl]'``.
"""

from typing import TYPE_CHECKING

from cartwheel._internal.versions import load

load("torchrl", "torchrl", "cartwheel.torchrl", "0.14")

# ruff: noqa: E402 - they import what was loaded

# Packages before files of them: threads that import both at once would wait for each other.
if not TYPE_CHECKING:  # type checkers would see a circle
    import cartwheel.wrappers  # noqa: F401 - for the order

from cartwheel.torchrl.agents_env import CartwheelAgentsEnv
from cartwheel.torchrl.env import CartwheelEnv

__all__ = ["CartwheelAgentsEnv", "CartwheelEnv"]
