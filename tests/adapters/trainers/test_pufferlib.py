"""PufferLib's interface over a vector environment. `make test-trainers` runs PufferLib itself."""

import importlib
import re

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel.wrappers import RecordEpisodeStatistics
from tests.support.migrations import scripts
from tests.support.processes import run_script
from tests.support.told_steps import run_alone


@pytest.fixture
def vec_env():
    return importlib.import_module("examples.trainers.pufferlib_ppo").CartwheelVecEnv


def fns_of(limits):
    return [lambda n=n: gym.make("CartPole-v1", max_episode_steps=n) for n in limits]


@pytest.mark.torch
@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("limits", [(1,), (7, 1, 3, 9, 2)])
def test_batches_are_the_steps_of_the_vector_environment(vec_env, executor, limits):
    def make():
        envs = cartwheel.VectorEnv(fns_of(limits), executor=executor, autoreset_mode="same_step")
        return RecordEpisodeStatistics(envs)

    envs, other = vec_env(make()), make()
    envs.async_reset(5)
    observations, rewards, *flags, told, rows, mask = envs.recv()
    np.testing.assert_array_equal(observations, other.reset(seed=5)[0])
    assert (rewards.any(), *(flag.any() for flag in flags), told) == (False, False, False, [])
    draw = np.random.default_rng(1)
    for _ in range(40):
        actions = draw.integers(0, 2, len(limits))
        envs.send(actions)
        *arrays, told, rows, mask = envs.recv()
        *expected, infos = other.step(actions)
        assert arrays[1].dtype == np.float32
        for mine, theirs in zip(arrays, expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert rows.tolist() == list(range(len(limits)))
        assert mask.all()
        ended = infos.get("_episode", np.zeros(len(limits), bool))
        assert bool(told) == ended.any()
        if told:
            lengths = infos["episode"]["l"][ended].tolist()
            assert told[0] == {
                "episode_return": [float(length) for length in lengths],
                "episode_length": lengths,
            }
    envs.close()
    other.close()


@pytest.mark.torch
@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({}, "autoreset_mode='same_step', got NEXT_STEP"),
        ({"autoreset_mode": "same_step", "batch_size": 1}, "without a `batch_size`, got 1"),
    ],
)
def test_what_pufferlib_would_misunderstand_is_refused(vec_env, keywords, message):
    envs = cartwheel.VectorEnv(fns_of((5, 5)), executor="inline", **keywords)
    with pytest.raises(ValueError, match=message):
        vec_env(envs)
    envs.close()


@pytest.mark.trainers
def test_its_ppo_learns(tmp_path):
    text = run_script("examples/trainers/pufferlib_ppo.py", folder=tmp_path)
    means = [int(mean) for mean in re.findall(r"\d+", text.rpartition("epochs: ")[2])]
    assert max(means) > 4 * means[0]


@pytest.mark.trainers
def test_the_old_script_of_the_migration_guide_says_what_the_new_one_says(tmp_path):
    ((before, after),) = scripts("pufferlib")
    said = []
    for script in (before, after):
        path = tmp_path / "script.py"
        path.write_text(script, encoding="utf-8")
        said += re.findall(
            r"^(\d+) to (\d+) steps$", run_script(path, folder=tmp_path), re.MULTILINE
        )
    assert len(said) == 2
    for shortest, longest in said:
        assert 5 < int(shortest) <= int(longest) < 11


@pytest.mark.trainers
def test_a_step_of_a_race_steps_every_row_once_in_workers_with_equal_shares():
    """Runs in its own program, because PufferLib does not close the pipes of its workers."""
    program = """
import functools
import numpy as np
from benchmarks.harness.rivals import pufferlib_processes, python_rivals
from tests.support.told_steps import TellsSteps

envs = [functools.partial(TellsSteps, 1000)] * 2
for contender in python_rivals(["pufferlib"]):
    runner = contender.build(envs)
    assert runner.run(0) > 0
    first, second = [runner.envs.step(np.array([1, 0]))[0].tolist() for _ in range(2)]
    steps = first[0][0]
    assert first == [[steps, 1], [steps, 0]], contender
    assert second == [[steps + 1, 1], [steps + 1, 0]], contender
    runner.close()
runner = pufferlib_processes([envs[0]] * 9, num_workers=6)
assert runner.envs.envs.num_workers == 3
runner.close()
"""
    run_alone(program)
