"""Sample Factory with a newer Gymnasium than it requires. `make test-trainers` runs this file."""

import importlib
import re

import numpy as np
import pytest

import cartwheel
from tests.support.cases import Case
from tests.support.executors import EXECUTORS, NATIVE
from tests.support.processes import run_script

pytestmark = [
    pytest.mark.trainers,
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning"),  # on its import
]
#: Episodes end by themselves and by the limit.
BRIEF = Case("CartPole-v1", {"max_episode_steps": 21})


@pytest.fixture
def example():
    return importlib.import_module("examples.trainers.sample_factory_ppo")


@pytest.mark.parametrize("executor", [*EXECUTORS, NATIVE], ids=str)
def test_its_wrappers_see_an_agent_for_each_row_and_the_steps_of_the_vector_environment(
    example, executor
):
    torch = importlib.import_module("torch")
    wrap = importlib.import_module("sample_factory.algo.utils.make_env").BatchedVecEnv
    example.forward_attributes()
    envs, other = (executor([BRIEF] * 5, autoreset_mode="same_step") for _ in range(2))
    wrapped = wrap(example.ManyAgents(envs))
    assert (wrapped.num_agents, wrapped.is_multiagent) == (5, True)
    wrapped.seed(3)
    shown, _ = wrapped.reset()
    np.testing.assert_array_equal(shown["obs"].numpy(), other.reset(seed=3)[0])
    draw = np.random.default_rng(1)
    ended = 0
    for _ in range(60):
        actions = draw.integers(0, 2, 5)
        shown, rewards, *flags, _ = wrapped.step(torch.as_tensor(actions))
        expected = other.step(actions)
        assert rewards.dtype == torch.float32
        for mine, theirs in zip((shown["obs"], rewards, *flags), expected[:4], strict=True):
            np.testing.assert_array_equal(mine.numpy(), theirs)
        ended += int((expected[2] | expected[3]).sum())
    assert ended > 5
    wrapped.close()
    other.close()


def test_another_mode_is_refused(example):
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 2)
    with pytest.raises(ValueError, match="autoreset_mode='same_step', got NEXT_STEP"):
        example.ManyAgents(envs)
    envs.close()


def test_its_ppo_learns(tmp_path):
    script = "examples/trainers/sample_factory_ppo.py"
    text = run_script(script, folder=tmp_path)
    found = re.findall(r"(?:best policy, reward=|episode reward: \[\(0, ')([\d.]+)", text)
    means = [float(mean) for mean in found]
    assert max(means) > 60
