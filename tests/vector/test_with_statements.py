"""A ``with`` statement closes every vector environment, wrapped or not, also after an error."""

import gymnasium as gym
import pytest

import cartwheel
from cartwheel import envpool
from cartwheel.wrappers import FrameStack, NormalizeObservation


def python(executor):
    return cartwheel.VectorEnv([lambda: gym.make("CartPole-v1")] * 2, executor=executor)


def native():
    return cartwheel.NativeVectorEnv("CartPole-v1", 2)


MADE = {
    "inline": lambda: python("inline"),
    "process": lambda: python("process"),
    "native": native,
    "wrapper": lambda: FrameStack(NormalizeObservation(native()), 2),
    "gymnasium's wrapper inside": lambda: FrameStack(
        gym.wrappers.vector.RecordEpisodeStatistics(native()), 2
    ),
}


@pytest.mark.parametrize("kind", MADE)
def test_the_end_of_a_with_statement_closes(kind):
    with MADE[kind]() as envs:
        envs.reset(seed=1)
        assert not envs.closed
    assert envs.unwrapped.closed
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.unwrapped.reset()


@pytest.mark.parametrize("kind", ["inline", "wrapper"])
def test_an_exception_closes_and_passes_through(kind):
    outer = MADE[kind]()
    with pytest.raises(gym.error.ResetNeeded), outer as envs:
        envs.step([0, 0])
    assert outer.unwrapped.closed


def test_a_collector_is_closed_and_its_environments_are_not():
    envs = native()
    policy = lambda observations: [0] * len(observations)  # noqa: E731
    with cartwheel.Collector(envs, policy, 4, background=True) as collector:
        collector.collect()
    with pytest.raises(RuntimeError, match="of a closed collector"):
        collector.collect()
    envs.reset()
    envs.close()


def test_an_interface_of_envpool_is_closed():
    with envpool.make_gymnasium("CartPole-v1", num_envs=2) as envs:
        envs.reset()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs.reset()


def test_what_with_names_is_the_outermost_wrapper():
    outermost = FrameStack(native(), 2)
    with outermost as named:
        assert named is outermost
