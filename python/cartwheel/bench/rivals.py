"""Packages beside which cartwheel is measured where they are installed, and what they can step."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, get_args

import gymnasium as gym

from cartwheel.bench import envpool, pufferlib, sb3, torchrl
from cartwheel.bench.contenders import ENVPOOL, Contender

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Rival = Literal["sb3", "pufferlib", "torchrl", "envpool"]
RIVALS: tuple[Rival, ...] = get_args(Rival)
"""In the order in which they are built: those that fork before the one that has threads."""
PACKAGES: dict[Rival, Callable[[], str | None]] = {
    "sb3": sb3.why_not,
    "pufferlib": pufferlib.why_not,
    "torchrl": torchrl.why_not,
}
SERIAL = (Contender("sb3 dummy", sb3.dummy), Contender("pufferlib serial", pufferlib.serial))
SB3_SUBPROC = Contender("sb3 subproc", sb3.subproc)
TORCHRL = Contender("torchrl parallel", torchrl.parallel)
PUFFERLIB = Contender("pufferlib workers", pufferlib.processes)
ONE_PROCESS_EACH = (SB3_SUBPROC.name, TORCHRL.name)
"""Those that start a process for each environment, as Gymnasium's ``AsyncVectorEnv`` does."""


def why_not(rival: Rival, env: gym.Env[Any, Any], native_id: str | None) -> str | None:
    """Why ``rival`` cannot take part; ``None`` when it can.

    Args:
        rival: A package.
        env: One of the environments of the race; closed or not.
        native_id: That of the same environments in Rust, without a namespace, if there are any.
    """
    if rival == "envpool":
        if native_id is None:
            return "envpool is raced where there is a native environment"
        return envpool.why_not(native_id)
    for name, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not _is_one_array(space):
            return f"{rival} is raced with spaces of one array: the {name} space is {space}"
    return PACKAGES[rival]()


def python_rivals(rivals: Sequence[Rival]) -> Iterator[Contender]:
    """The contenders of these packages that step environments in Python."""
    for serial in SERIAL:
        if serial.name.partition(" ")[0] in rivals:
            yield serial
    for contender in (SB3_SUBPROC, PUFFERLIB, TORCHRL):
        if contender.name.partition(" ")[0] in rivals:
            yield contender


def pufferlib_with(num_workers: int) -> Contender:
    """PufferLib's processes, so many of them."""
    return Contender(
        PUFFERLIB.name, functools.partial(pufferlib.processes, num_workers=num_workers)
    )


def envpool_with(env_id: str, num_threads: int) -> Contender:
    """EnvPool with so many threads."""
    return Contender(
        ENVPOOL,
        lambda env_fns: envpool.fastest(env_id, len(env_fns), num_threads=num_threads),
    )


def _is_one_array(space: gym.Space[Any]) -> bool:
    """Whether all rivals have such a space, with the same values."""
    kinds = (gym.spaces.Box, gym.spaces.MultiDiscrete, gym.spaces.MultiBinary)
    if isinstance(space, gym.spaces.Discrete):
        return bool(space.start == 0)
    return isinstance(space, kinds)
