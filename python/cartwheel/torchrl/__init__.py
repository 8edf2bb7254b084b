"""A batched environment of TorchRL over the vector environments of cartwheel.

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

from cartwheel.extras import load

load("torchrl", "torchrl", "cartwheel.torchrl", "0.14")

from cartwheel.torchrl.env import CartwheelEnv  # noqa: E402 - it needs what was checked

__all__ = ["CartwheelEnv"]
