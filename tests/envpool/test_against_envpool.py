"""Programs written for EnvPool get the same results from both, if EnvPool is installed.

The numbers in observations differ, because EnvPool has its own random number generator.
"""

import numpy as np
import pytest

# EnvPool's bounds are float64.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting to float32")


def form(value):
    """Shape and dtype of everything in a result."""
    if isinstance(value, np.ndarray):
        return (value.shape, str(value.dtype))
    if isinstance(value, dict):
        return {key: form(part) for key, part in value.items()}
    return tuple(map(form, value))


def signals(steps):
    """Everything except the observations, as lists."""
    return [
        (*(part.tolist() for part in step[1:4]), *(step[4][k].tolist() for k in INFOS))
        for step in steps
    ]


INFOS = ("env_id", "elapsed_step")


def test_the_documented_example_gives_the_same(pair):
    played = [
        [envs.step(np.array([0, 1, 1], np.int32)) for _ in range(9)]
        for envs in pair("CartPole-v1", "gymnasium", num_envs=3, max_episode_steps=3)
    ]
    assert [form(step) for step in played[0]] == [form(step) for step in played[1]]
    assert signals(played[0]) == signals(played[1])


def test_partial_steps_and_resets_are_the_same(pair):
    source = np.random.default_rng(5)
    calls = [
        (source.random() < 0.2, source.permutation(5)[: source.integers(1, 6)].astype(np.int32))
        for _ in range(60)
    ]
    played = []
    for envs in pair("CartPole-v1", "gymnasium", num_envs=5, max_episode_steps=4):
        envs.reset()
        played.append([])
        for resets, ids in calls:
            if resets:
                _, info = envs.reset(ids)
                played[-1].append([info[key].tolist() for key in INFOS])
            else:
                action = {"action": np.zeros(len(ids), np.int32), "env_id": ids}
                played[-1].append(signals([envs.step(action)]))
    assert played[0] == played[1]


def test_asynchronous_programs_get_the_same_from_each_environment(pair):
    histories = []
    for envs in pair("CartPole-v1", "gymnasium", num_envs=4, batch_size=2, max_episode_steps=5):
        history = [[] for _ in range(4)]
        envs.async_reset()
        while min(map(len, history)) < 12:
            result = envs.recv()
            assert form(result)[0] == ((2, 4), "float32")
            info = result[4]
            for place, env_id in enumerate(info["env_id"]):
                seen = [part[place].item() for part in result[1:4]]
                history[env_id].append([*seen, info["elapsed_step"][place].item()])
            envs.send(np.ones(2, np.int32), info["env_id"])
        histories.append([rows[:12] for rows in history])
    assert histories[0] == histories[1]


def test_time_steps_are_the_same_except_for_the_discount_of_a_truncation(pair):
    pytest.importorskip("dm_env")
    ours, theirs = (
        [envs.reset(), *(envs.step(np.array([0, 1], np.int32)) for _ in range(8))]
        for envs in pair("CartPole-v1", "dm", num_envs=2, max_episode_steps=3)
    )
    for step, other in zip(ours, theirs, strict=True):
        assert type(step) is type(other)
        assert step.step_type.tolist() == other.step_type.tolist()
        assert step.reward.tolist() == other.reward.tolist()
        assert step.discount.tolist() == [1, 1]
        assert other.discount.tolist() == ([0, 0] if step.step_type[0] == 2 else [1, 1])
        for field in ("obs", "env_id"):
            expected = getattr(other.observation, field)
            assert form([getattr(step.observation, field)]) == form([expected])
        assert step.observation.players.env_id.tolist() == [0, 1]
