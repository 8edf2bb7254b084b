"""Native environments that are stepped past their termination equal Gymnasium's, bit for bit."""

import numpy as np
import pytest

from tests.support.cases import DEFAULTS, VARIANTS, Case, choose
from tests.support.comparison import assert_identical
from tests.support.executors import NATIVE
from tests.support.oracle import MODE, D, N
from tests.support.ruled import RuledOracle

#: Gymnasium's CartPole warns once an episode that goes on after its end.
pytestmark = pytest.mark.filterwarnings("ignore:.*even though this environment has already")

CASES = [
    *(case for case in DEFAULTS if case.terminates and case.env_id != "CartPole-v0"),
    *(case for case in VARIANTS if case.terminates and "max_episode_steps" not in case.keywords),
]


def assert_goes_on(case, mode, num_envs, steps, **rules):
    envs = NATIVE([case] * num_envs, autoreset_mode=mode, ignore_terminations=True, **rules)
    unlimited = Case(case.env_id, {**case.keywords, "max_episode_steps": -1})
    oracle = RuledOracle(unlimited, num_envs, mode, ignore_terminations=True, **rules)
    observations, infos = envs.reset(seed=3)
    assert_identical((observations, infos), oracle.reset(seed=3))
    random, over = np.random.default_rng(3), 0
    for step in range(steps):
        actions = choose(case, observations, random, num_envs)
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions), f"step {step}")
        observations, over = result[0], over + np.count_nonzero(result[3])
    assert oracle.ignored > over > 0, "the comparison proves little"
    envs.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_environment_goes_on_after_its_termination_as_gymnasiums_does(case):
    assert_goes_on(case, N, 4, case.steps, max_episode_steps=case.steps - 20)


@MODE
def test_blocks_of_poles_go_on_as_gymnasiums_do(mode):
    for keywords in ({}, {"sutton_barto_reward": True}):
        case = Case("CartPole-v1", keywords)
        steps = 90 if mode is D else 200  # in `DISABLED`, rows that are over are not stepped
        assert_goes_on(case, mode, 33, steps, max_episode_steps=90)


def test_a_long_game_of_blackjack_goes_on():
    assert_goes_on(Case("Blackjack-v1"), N, 3, 700, max_episode_steps=300)
