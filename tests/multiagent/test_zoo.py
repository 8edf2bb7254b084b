"""Environments of PettingZoo and MPE2, in a batch and alone; AEC ones by their conversions."""

import importlib
import math
from dataclasses import dataclass, field
from typing import Any

import pytest

import cartwheel
from tests.multiagent.oracle import MODES, play

# Environments warn, also in worker processes, which inherit the filters.
pytestmark = [pytest.mark.zoo, pytest.mark.filterwarnings("ignore")]


@dataclass(frozen=True)
class Game:
    """An environment: a module, its function, and keywords. ``threads``: it may run in threads."""

    module: str
    keywords: dict[str, Any] = field(default_factory=dict)
    function: str = "parallel_env"
    threads: bool = False

    def __str__(self):
        return f"{self.module.rpartition('.')[2]}-{self.function}"

    def __call__(self):
        return getattr(importlib.import_module(self.module), self.function)(**self.keywords)


MPE = [
    *("simple_v3", "simple_adversary_v3", "simple_crypto_v3", "simple_push_v3"),
    *("simple_reference_v3", "simple_speaker_listener_v4", "simple_spread_v3", "simple_tag_v3"),
    *("simple_world_comm_v3", "collect_treasure_v1", "simple_formation_v1", "simple_line_v1"),
]
GAMES = [
    *(Game(f"mpe2.{name}", {"max_cycles": 7}, threads=True) for name in MPE),
    Game("mpe2.simple_spread_v3", {"max_cycles": 7}, "env", threads=True),
    Game("pettingzoo.classic.rps_v2", {"max_cycles": 5}, threads=True),
    Game("pettingzoo.classic.tictactoe_v3", {}, "env", threads=True),
    Game("pettingzoo.classic.connect_four_v3", {}, "env", threads=True),
    Game("pettingzoo.butterfly.knights_archers_zombies_v11", {"max_cycles": 25}),
    Game("pettingzoo.butterfly.cooperative_pong_v6", {"max_cycles": 9}),
    Game("pettingzoo.butterfly.pistonball_v6", {"max_cycles": 6, "n_pistons": 5}),
    Game(
        "pettingzoo.butterfly.pistonball_v6",
        {"max_cycles": 6, "n_pistons": 5, "continuous": False},
    ),
    Game(
        "pettingzoo.sisl.multiwalker_v9",
        {"max_cycles": 100, "terminate_on_fall": False, "remove_on_fall": True},
    ),
    Game("pettingzoo.sisl.pursuit_v5", {"max_cycles": 8}),
]


@pytest.fixture(scope="module", autouse=True)
def libraries():
    """Imports SciPy before the tests: its threads stay."""
    importlib.import_module("scipy.optimize")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("game", GAMES, ids=str)
def test_batches_are_those_of_each_environment_alone(game, mode, executor):
    if executor == "thread" and not game.threads:
        pytest.skip("its libraries are not safe in several threads")
    steps = 130 if "walker" in str(game) else 30
    keywords = {"autoreset_mode": mode, "executor": executor}
    with cartwheel.ParallelVectorEnv([game] * 3, **keywords) as envs:
        ended = play(envs, [game() for _ in range(3)], steps)
    assert ended >= 3


def test_an_agent_that_dies_early_is_absent_until_its_environment_is_over():
    walkers = next(game for game in GAMES if "multiwalker" in game.module)
    with cartwheel.ParallelVectorEnv([walkers] * 2, absent=math.nan, executor="inline") as envs:
        envs.action_space.seed(1)
        envs.reset(seed=1)
        absent = 0
        for _ in range(120):
            observations, _, _, _, infos = envs.step(envs.action_space.sample())
            for name in envs.possible_agents:
                gone = ~infos["present"][name]
                absent += int(gone.sum())
                assert math.isnan(observations[name][gone].sum()) or not gone.any()
    assert absent
