"""Real environments of other packages, as the tests and the table of ``docs/environments.md`` step.

A case is a function that makes one environment, so it can be sent to workers. Packages are imported
when an environment is made: the tests are collected where they are not installed.
"""

import importlib
import warnings
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym


@dataclass(frozen=True)
class Case:
    """An environment, its keywords, and how long it is stepped.

    ``package`` registers it; ``name`` is the package's name in the table. ``steps`` are those of
    each seed in the table; tests make a fifth of them. ``trap`` is what users of this environment
    should know, for the table.
    """

    name: str
    package: str
    env_id: str
    keywords: dict[str, Any] = field(default_factory=dict)
    steps: int = 150
    trap: str = ""
    wrap: Any = None

    def __str__(self):
        return self.env_id

    def __call__(self, **keywords):
        register(self.package)
        env = gym.make(self.env_id, disable_env_checker=True, **self.keywords, **keywords)
        return env if self.wrap is None else self.wrap(env)


@dataclass(frozen=True)
class Players:
    """A parallel environment of PettingZoo; ``module`` has its function ``parallel_env``."""

    module: str
    keywords: dict[str, Any] = field(default_factory=dict)
    steps: int = 150
    trap: str = ""
    name: str = "PettingZoo"

    def __str__(self):
        return self.module.rpartition(".")[2]

    env_id = property(__str__)

    def __call__(self, **keywords):
        return importlib.import_module(self.module).parallel_env(**self.keywords, **keywords)


def register(package):
    """Imports a package that registers its environments; what it warns of is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gym.register_envs(importlib.import_module(package))


def preprocessed(env):
    """Frames of Atari as trainers see them: 84×84, gray, four in a stack."""
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    return FrameStackObservation(AtariPreprocessing(env, noop_max=10), 4)


class WithoutInfo(gym.Wrapper):
    """Leaves an entry out of the infos of ``reset``."""

    def __init__(self, env, key):
        super().__init__(env)
        self.key = key

    def reset(self, **keywords):
        observation, info = self.env.reset(**keywords)
        return observation, {key: value for key, value in info.items() if key != self.key}


def without_random_action(env):
    return WithoutInfo(env, "action")


def limited(steps):
    """Keywords for short episodes, so that runs have many ends."""
    return {"max_episode_steps": steps}


MUJOCO = "gymnasium.envs.mujoco"
BOX2D = "gymnasium.envs.box2d"
ROBOTICS = "gymnasium_robotics"
EGL = "rendering makes an EGL context: only workers make environments, the caller never does"
MISSION = "`mission` is text: every string is copied by itself, not with the arrays of the batch"
UNSEEDED = (
    '`infos["action"]` of a reset is drawn from an action space without a seed, so no two runs '
    "have the same, Gymnasium's included; it is left out here"
)
VIZDOOM = "make one game alone first, see below; a worker that is killed leaves its game running"
CASES = [
    Case("MuJoCo", MUJOCO, "HalfCheetah-v5", limited(20), trap=EGL),
    Case("MuJoCo", MUJOCO, "Hopper-v5"),
    Case("MuJoCo", MUJOCO, "Ant-v5", limited(30)),
    Case("MuJoCo", MUJOCO, "Humanoid-v5", trap="infos have arrays (`tendon_length`)"),
    Case("MuJoCo", MUJOCO, "Reacher-v5", limited(7)),
    Case(
        "ALE",
        "ale_py",
        "ALE/Pong-v5",
        {"frameskip": 1, **limited(13)},
        60,
        "with `AtariPreprocessing` and `FrameStackObservation`; threads of OpenCV in each worker: "
        "`cv2.setNumThreads(1)` in the environment function",
        preprocessed,
    ),
    Case("ALE", "ale_py", "ALE/Breakout-v5", limited(13), 60),
    Case("MiniGrid", "minigrid", "MiniGrid-DoorKey-5x5-v0", {"max_steps": 15}, trap=MISSION),
    Case("BabyAI", "minigrid", "BabyAI-GoToRedBallGrey-v0", {"max_steps": 15}, trap=MISSION),
    Case(
        "Gymnasium-Robotics",
        ROBOTICS,
        "FetchReach-v4",
        limited(9),
        80,
        "does not work with MuJoCo 3.14 and newer",
    ),
    Case(
        "Gymnasium-Robotics",
        ROBOTICS,
        "HandReach-v3",
        limited(9),
        80,
        "does not work with MuJoCo 3.14 and newer",
    ),
    Case("Gymnasium-Robotics", ROBOTICS, "AdroitHandDoor-v1", limited(9), 80),
    Case("Gymnasium-Robotics", ROBOTICS, "PointMaze_UMaze-v3", limited(9)),
    Case("Gymnasium-Robotics", ROBOTICS, "AntMaze_UMaze-v5", limited(9)),
    Case(
        "Gymnasium-Robotics",
        ROBOTICS,
        "FrankaKitchen-v1",
        limited(9),
        40,
        "does not work with MuJoCo 3.14 and newer",
    ),
    Case(
        "highway-env",
        "highway_env",
        "highway-v0",
        {"config": {"vehicles_count": 10, "lanes_count": 2}, **limited(5)},
        15,
        UNSEEDED,
        without_random_action,
    ),
    Case(
        "highway-env", "highway_env", "parking-v0", limited(6), 40, UNSEEDED, without_random_action
    ),
    Case("Box2D", BOX2D, "LunarLander-v3", limited(60)),
    Case("Box2D", BOX2D, "BipedalWalker-v3", limited(60), trap="rewards are `float32` scalars"),
    Case("Box2D", BOX2D, "CarRacing-v3", limited(6), 15, "draws each observation with pygame"),
    Case(
        "FlappyBird",
        "flappy_bird_gymnasium",
        "FlappyBird-v0",
        trap="installs `pygame`, which replaces the files of `pygame-ce`",
    ),
    Case("ViZDoom", "vizdoom.gymnasium_wrapper", "VizdoomBasic-v1", limited(12), 60, VIZDOOM),
    Case(
        "ViZDoom",
        "vizdoom.gymnasium_wrapper",
        "VizdoomDeadlyCorridor-v1",
        limited(12),
        60,
        VIZDOOM,
    ),
    Case(
        "Meta-World",
        "metaworld",
        "Meta-World/MT1",
        {"env_name": "push-v3", "seed": 1, **limited(12)},
        60,
        EGL,
    ),
    Case("Shimmy, dm_control", "shimmy", "dm_control/cartpole-swingup-v0", limited(12), trap=EGL),
    Case("Shimmy, dm_control", "shimmy", "dm_control/cheetah-run-v0", limited(12)),
    Case("Shimmy, dm_control", "shimmy", "dm_control/humanoid-walk-v0", limited(12)),
]
#: By ``cartwheel.envpool``, as PettingZoo's environments have no Gymnasium interface.
PLAYERS = [
    Players("pettingzoo.classic.rps_v2", {"max_cycles": 7}),
    Players("pettingzoo.butterfly.knights_archers_zombies_v11", {"max_cycles": 25}, 80),
    Players("pettingzoo.butterfly.cooperative_pong_v6", {"max_cycles": 9}, 40),
    Players(
        "pettingzoo.sisl.multiwalker_v9",
        {"max_cycles": 12, "terminate_on_fall": False, "remove_on_fall": True},
        60,
    ),
]
