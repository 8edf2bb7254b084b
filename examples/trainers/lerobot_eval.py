"""LeRobot's evaluation in cartwheel's worker processes; takes the arguments of ``lerobot-eval``.

    python examples/trainers/lerobot_eval.py --policy.path=lerobot/diffusion_pusht \
        --env.type=pusht --eval.batch_size=10 --eval.n_episodes=50

LeRobot makes its asynchronous environments by ``gymnasium.vector.AsyncVectorEnv``, which
``cartwheel.patch_gymnasium`` replaces. Their processes come from a server, which imports LeRobot
once for all of them, and the package of the environments, without which workers do not know the id.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import sys
from typing import TYPE_CHECKING

import cartwheel

if TYPE_CHECKING:
    from collections.abc import Sequence


def preload(arguments: Sequence[str]) -> list[str]:
    """Returns what the server of worker processes imports.

    Args:
        arguments: Those of ``lerobot-eval``, of which ``--env.type`` counts.
    """
    types = [one.partition("=")[2] for one in arguments if one.startswith("--env.type=")]
    packages = [package for name in types for package in (f"gym_{name}", f"lerobot.envs.{name}")]
    return ["lerobot.scripts.lerobot_eval", *filter(_exists, packages)]


def _exists(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


if __name__ == "__main__":
    from lerobot.scripts import lerobot_eval

    multiprocessing.set_forkserver_preload(preload(sys.argv[1:]))
    cartwheel.patch_gymnasium()
    lerobot_eval.main()
