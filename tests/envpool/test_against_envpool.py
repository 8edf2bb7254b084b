"""Programs written for EnvPool get the same results from both, if EnvPool is installed.

The numbers in observations differ, because EnvPool has its own random number generator.
"""

import gc
import importlib
import warnings

import numpy as np
import pytest

from cartwheel import envpool as ours

# EnvPool's bounds are float64.
pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting to float32")


@pytest.fixture(scope="module")
def theirs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield importlib.import_module("envpool")
        except Exception as error:  # its import looks for assets
            pytest.skip(f"EnvPool cannot be imported: {error!r}")


@pytest.fixture
def pair(theirs):
    """Makes the same pool with cartwheel and with EnvPool."""
    made = []

    def make(*args, **keywords):
        made.extend(module.make(*args, seed=7, **keywords) for module in (ours, theirs))
        return made[-2:]

    yield make
    while made:  # EnvPool's threads end when the pool is garbage-collected
        made.pop().close()
    gc.collect()


def form(value, *, reward=False):
    """Type, shape and dtype of everything in a result; the float dtype of rewards is ignored."""
    if isinstance(value, np.ndarray):
        return (value.shape, "float" if reward and value.dtype.kind == "f" else str(value.dtype))
    if isinstance(value, dict):
        return {key: form(part) for key, part in sorted(value.items())}
    return tuple(form(part, reward=at == 1) for at, part in enumerate(value))


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


@pytest.mark.parametrize("task_id", ["CartPole-v1", "Pendulum-v1", "MountainCar-v0"])
def test_results_have_the_same_forms(pair, task_id):
    pools = pair(task_id, "gymnasium", num_envs=3)
    space = pools[0].single_action_space
    dtype = np.int32 if space.dtype == np.int64 else np.float32
    actions = np.zeros((3, *space.shape), dtype)
    resets, steps = zip(*[(envs.reset(), envs.step(actions)) for envs in pools], strict=True)
    assert form(resets[0]) == form(resets[1])
    assert form(steps[0]) == form(steps[1])


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


def test_every_key_of_the_configuration_exists(pair):
    first, second = pair("CartPole-v1", "gymnasium", num_envs=4, batch_size=2)
    configuration = dict(second.config)
    for key in ("base_path", "env_seed", "max_num_players"):
        configuration.pop(key)
    assert {key: first.config[key] for key in configuration} == configuration


#: Names that only EnvPool's pools have; the last four because they are ``gymnasium.Env``s.
NOT_OFFERED = {"render"}
NOT_OFFERED |= {"get_wrapper_attr", "set_wrapper_attr", "has_wrapper_attr", "is_vector_env"}


@pytest.mark.parametrize("env_type", ["gymnasium", "dm"])
def test_every_method_exists(pair, env_type):
    first, second = pair("CartPole-v1", env_type, num_envs=2)
    public = {name for name in dir(second) if not name.startswith("_")}
    assert public - set(dir(first)) - NOT_OFFERED == set()
    assert len(first) == len(second)
    assert first.all_env_ids.tolist() == second.all_env_ids.tolist()
    assert first.is_async == second.is_async
