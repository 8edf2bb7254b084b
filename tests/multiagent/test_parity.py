"""Batches have what each environment of several agents has alone, in each mode and executor."""

import pytest

import cartwheel
from cartwheel.multiagent import pool
from tests.multiagent.environments import Duel, Guests, Loose, Talkers, Walkers
from tests.multiagent.oracle import MODES, play

EVERY_ENV = [Guests, Walkers, Talkers, Duel]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("env", EVERY_ENV, ids=lambda env: env.__name__)
def test_rows_are_those_of_each_environment_alone(env, mode):
    with cartwheel.ParallelVectorEnv([env] * 4, autoreset_mode=mode, executor="inline") as envs:
        ended = play(envs, [env() for _ in range(4)], steps=60)
    assert ended > 8


def test_large_last_observations_are_those_of_each_environment_alone(monkeypatch):
    monkeypatch.setattr(pool, "MAX_DENSE_BYTES", 0)
    for env in (Guests, Duel, Loose):
        with cartwheel.ParallelVectorEnv(
            [env] * 4, autoreset_mode="same_step", executor="inline"
        ) as envs:
            assert envs._pool.final_obs == "object"
            assert play(envs, [env() for _ in range(4)], steps=40) > 4


def test_observations_and_rewards_are_converted_as_those_of_one_agent():
    with cartwheel.ParallelVectorEnv([Loose] * 4, executor="process") as envs:
        assert play(envs, [Loose() for _ in range(4)], steps=40) > 8


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_values_do_not_depend_on_the_executor(executor):
    with cartwheel.ParallelVectorEnv(
        [Guests] * 5, autoreset_mode="same_step", executor=executor, num_workers=2
    ) as envs:
        assert play(envs, [Guests() for _ in range(5)], steps=25) > 4


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [1, 2, 7])
@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("env", EVERY_ENV, ids=lambda env: env.__name__)
def test_every_environment_is_the_same_everywhere(env, mode, executor, num_workers):
    with cartwheel.ParallelVectorEnv(
        [env] * 7, autoreset_mode=mode, executor=executor, num_workers=num_workers
    ) as envs:
        assert play(envs, [env() for _ in range(7)], steps=40, seed=11) > 4
