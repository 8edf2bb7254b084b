"""Installs the wheel of dist/ with each extra, in an environment of its own, and uses the extra.

``make test-extras``; ``python -m release.extras sb3 record`` tries some of them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / "target" / "extras"
POLES = 'cartwheel.make_vec("cartwheel/CartPole-v1", 4, autoreset_mode="{}")'
#: Code that uses the extra, after ``import cartwheel``. ``all`` does all that its parts do.
USES = {
    "agilerl": "import pettingzoo\nfrom cartwheel.agilerl import CartwheelPettingZooVecEnv\n"
    "make = lambda: pettingzoo.make('parallel', 'classic/rps-v2')\n"
    "CartwheelPettingZooVecEnv([make] * 2).close()",
    "ale": 'cartwheel.make_vec("ALE/Pong-v5", 2, executor="ale").reset(seed=1)',
    "bench": "import cv2, matplotlib",
    "dm": "import cartwheel.envpool\ncartwheel.envpool.make_dm('CartPole-v1', num_envs=2).reset()",
    "envpool": "import envpool",
    "jax": "import jax\nfrom cartwheel.jax import envs_to_jax\n"
    f"init, step, _ = envs_to_jax({POLES.format('next_step')})\n"
    "jax.block_until_ready(step(init(1)[0], jax.numpy.ones(4, int)))",
    "mujoco": "for name in ('HalfCheetah-v5', 'cartwheel/HalfCheetah-v5'):\n"
    "    envs = cartwheel.make_vec(name, 2)\n    envs.reset(seed=1)\n    envs.close()",
    "pettingzoo": "import pettingzoo\nenvs = cartwheel.ParallelVectorEnv("
    "[lambda: pettingzoo.make('parallel', 'classic/rps-v2')] * 2)\n"
    "envs.reset(seed=1)\nenvs.close()",
    "ray": "import cartwheel.ray",
    "record": (
        "import tempfile\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        f"    envs = {POLES.format('next_step')}\n"
        "    envs = cartwheel.RecordEpisode(envs, folder, trajectory_name='poles')\n"
        "    envs.reset(seed=1)\n"
        "    for _ in range(50): envs.step(envs.action_space.sample())\n"
        "    envs.close()\n"
        "    assert len(cartwheel.TrajectoryDataset(folder + '/poles.h5'))"
    ),
    "rllib": "import cartwheel.rllib\ncartwheel.rllib.register('poles', 'CartPole-v1')",
    "sb3": "from cartwheel.sb3 import CartwheelVecEnv\n"
    "CartwheelVecEnv('cartwheel/CartPole-v1', num_envs=4).reset()",
    "skrl": f"import cartwheel.skrl\nfrom skrl.envs.wrappers.torch import wrap_env\n"
    f"wrap_env({POLES.format('same_step')}).reset()",
    "test": "import hypothesis, mypy, pytest",
    "tianshou": "from cartwheel.tianshou import CartwheelVectorEnv\n"
    f"CartwheelVectorEnv({POLES.format('disabled')}).reset()",
    "torch": "import torch\nassert torch.as_tensor("
    f"{POLES.format('next_step')}.reset(seed=1)[0]).shape == (4, 4)",
    "torchrl": "from cartwheel.torchrl import CartwheelEnv\n"
    f"CartwheelEnv({POLES.format('disabled')}).rollout(10)",
}


def extras() -> dict[str, list[str]]:
    """The extras of ``pyproject.toml`` and what they install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = project["project"]["optional-dependencies"]
    return found


def parts_of_all() -> list[str]:
    """The extras that ``all`` installs."""
    (requirement,) = extras()["all"]
    return requirement.removeprefix("cartwheel[").removesuffix("]").split(",")


def run(*command: str | Path) -> None:
    """Runs a program; shows its output only if it fails."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{ended.stdout}{ended.stderr}")


def try_extra(extra: str, wheel: Path) -> None:
    """Installs the wheel with this extra, checks that all versions fit, and uses the extra."""
    environment = ENVIRONMENTS / extra
    python = environment / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    run(*uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment)
    run(
        *uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        f"cartwheel[{extra}] @ {wheel.as_uri()}",
    )
    run(*uv, "pip", "check", "--quiet", "--python", python)
    for part in parts_of_all() if extra == "all" else [extra]:
        run(python, "-c", f"import cartwheel\n{USES[part]}")


def main(chosen: list[str]) -> None:
    """Tries the chosen extras, or all."""
    (wheel,) = (ROOT / "dist").glob("cartwheel-*-abi3-manylinux*_x86_64.whl")
    for extra in chosen or extras():
        print(f"{extra}: ", end="", flush=True)
        try_extra(extra, wheel)
        shutil.rmtree(ENVIRONMENTS / extra)
        print("installed and used", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
