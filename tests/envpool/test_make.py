"""Pools by task id: ids, configuration, seeds, registration, specs."""

import contextlib
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from cartwheel import NativeVectorEnv, VectorEnv, envpool
from cartwheel._cartwheel import SlabLease
from cartwheel.envpool import registry
from tests.envpool.tasks import NESTED, TRANSCRIPT, single
from tests.support.environments import TranscriptEnv
from tests.support.platforms import linux_only
from tests.support.processes import native_threads

NATIVE, PYTHON = "CartPole-v1", "gymnasium.envs.classic_control:CartPole-v1"


@pytest.mark.parametrize(
    ("task_id", "kind"),
    [
        (NATIVE, NativeVectorEnv),
        ("cartwheel/CartPole-v1", NativeVectorEnv),
        ("Taxi-v4", NativeVectorEnv),
        (PYTHON, VectorEnv),
        ("Blackjack-v1", None),
        (TRANSCRIPT, VectorEnv),
    ],
)
def test_native_environments_are_preferred_and_others_run_in_processes(make, task_id, kind):
    envs = make(task_id, num_envs=2, **({"length": 2} if task_id == TRANSCRIPT else {}))
    if kind is not None:
        assert isinstance(envs._envs, kind)
    if isinstance(envs._envs, VectorEnv):
        assert envs._envs.executor == "process"
    envs.reset()
    envs.step(np.array([0, 0]))


def test_shortcuts_make_the_same_as_make(make):
    for shortcut, kind in (
        (envpool.make_gymnasium, envpool.GymnasiumEnvPool),
        (envpool.make_gym, envpool.GymnasiumEnvPool),
        (envpool.make_dm, envpool.DMEnvPool),
    ):
        envs = shortcut(NATIVE, num_envs=2)
        assert type(envs) is kind
        envs.close()
    envs = envpool.make_gym(NATIVE, gym_reset_return_info=False)
    assert type(envs) is envpool.GymEnvPool
    envs.close()
    assert type(make(NATIVE, "dm")) is envpool.DMEnvPool


def test_every_listed_native_id_can_be_specified():
    pytest.importorskip("mujoco")  # some of the ids are those of its environments
    listed = envpool.list_all_envs()
    assert {NATIVE, "cartwheel/CartPole-v1", TRANSCRIPT, "Ant-v5"} <= set(listed)
    assert listed == sorted(set(listed))
    for task_id in listed:
        if task_id.startswith("cartwheel/"):
            spec = envpool.make_spec(task_id)
            registered = gym.spec(task_id)
            assert spec.reward_threshold == registered.reward_threshold
            assert spec.config.max_episode_steps == (registered.max_episode_steps or 2**31 - 1)


def test_without_mujoco_no_id_that_needs_it_is_listed(monkeypatch):
    monkeypatch.setattr(registry, "_loads", lambda module: "mujoco" not in module)
    listed = envpool.list_all_envs()
    assert {NATIVE, "cartwheel/CartPole-v1"} <= set(listed)
    assert not {"Ant-v5", "cartwheel/Ant-v5"}.intersection(listed)


@pytest.mark.slow
def test_every_listed_id_can_be_made():
    program = """
from cartwheel import envpool
for task_id in envpool.list_all_envs():
    envpool.make(task_id, num_envs=1, executor="inline").close()
print("made")
"""
    command = [sys.executable, "-W", "ignore", "-c", program]  # without the ids of other tests
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.stdout.endswith("made\n"), ran.stderr


def test_ids_that_cannot_be_made_are_not_listed():
    gym.register("tests/Absent-v0", "a_library_that_is_not_installed:Env")
    gym.register("tests/Vector-v0", vector_entry_point="tests.envpool.tasks:Env")
    try:
        listed = envpool.list_all_envs()
    finally:
        del gym.registry["tests/Absent-v0"], gym.registry["tests/Vector-v0"]
    absent = {"tests/Absent-v0", "tests/Vector-v0", "Ant-v2", "GymV26Environment-v0"}
    assert absent.isdisjoint(listed)


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_a_spec_equals_that_of_the_pool(make, task_id):
    keywords = {"num_envs": 3, "seed": 4, "max_episode_steps": 9, "sutton_barto_reward": True}
    spec, envs = envpool.make_spec(task_id, **keywords), make(task_id, **keywords)
    env = gym.make(NATIVE)
    assert spec.observation_space == envs.spec.observation_space == env.observation_space
    assert spec.action_space == envs.spec.action_space == env.action_space
    assert spec.config == envs.spec.config
    assert spec.config._asdict() == envs.config
    assert spec.config.num_envs == 3
    assert spec.id == spec.task_id == task_id
    assert spec.reward_threshold == 475
    assert "seed=4" in repr(spec)


def test_the_configuration_is_a_complete_copy(make):
    envs = make(NATIVE, num_envs=3, batch_size=2, seed=[5, 6, 9])
    config = envs.config
    assert config["num_envs"] == len(envs) == 3
    assert config["batch_size"] == 2
    assert config["env_seed"] == [5, 6, 9]
    assert config["max_episode_steps"] == 500
    assert config["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert config["thread_affinity_offset"] == -1
    config["num_envs"] = 7
    assert envs.config["num_envs"] == 3
    assert envs.all_env_ids.tolist() == [0, 1, 2]
    assert envs.all_env_ids.dtype == np.int32
    assert envs.is_async
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_environment_i_is_seeded_by_seed_plus_i(make, task_id):
    first = make(task_id, num_envs=3, seed=40).reset()[0]
    listed = make(task_id, num_envs=3, seed=[40, 41, 42]).reset()[0]
    np.testing.assert_array_equal(first, listed)
    for row in range(3):
        np.testing.assert_array_equal(first[row], gym.make(NATIVE).reset(seed=40 + row)[0])


def test_environments_that_are_reset_late_still_have_their_own_seed(make):
    whole, parts = (make(NATIVE, num_envs=3, seed=40) for _ in range(2))
    expected = whole.reset()[0]
    np.testing.assert_array_equal(parts.reset([2])[0], expected[[2]])
    mask = np.array([True, False, False])
    np.testing.assert_array_equal(parts.reset(options={"reset_mask": mask})[0][0], expected[0])
    np.testing.assert_array_equal(parts.step(np.array([1]), [1])[0], expected[[1]])


@pytest.mark.parametrize("by_mask", [False, True])
def test_a_later_reset_continues_the_random_numbers(make, by_mask):
    envs, env = make(NATIVE, num_envs=1, seed=40), gym.make(NATIVE)
    options = {"reset_mask": np.array([True])} if by_mask else None
    for seed in (40, None, None):
        np.testing.assert_array_equal(envs.reset(options=options)[0][0], env.reset(seed=seed)[0])


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_seeds_given_later_are_used_by_the_next_reset(make, task_id):
    envs = make(task_id, num_envs=3, seed=40)
    for given in (7, np.int64(3), [20, 4, 31], np.array([1, 2, 4])):
        envs.seed(given)
        envs.seed()
        seeds = given + np.arange(3) if np.ndim(given) == 0 else given
        expected = [single(NATIVE, int(seed)) for seed in seeds]
        np.testing.assert_array_equal(envs.reset([2])[0], [expected[2][1]])
        mask = np.array([True, True, False])
        observations = envs.reset(options={"reset_mask": mask})[0]
        np.testing.assert_array_equal(observations, [first for _, first in expected])
        again = [env.reset()[0] for env, _ in expected]
        np.testing.assert_array_equal(envs.reset()[0], again)
    envs.seed(5)
    observations, _ = envs.reset(seed=[11, 12, 13])
    np.testing.assert_array_equal(observations[0], single(NATIVE, 11)[1])
    assert envs.config["seed"] == 40


def test_seeds_given_before_the_first_step_are_used_by_its_reset(make):
    envs = make(NATIVE, "dm", num_envs=2, seed=40)
    envs.seed(7)
    for refused in ([1], -1, [1, -1], "4", True):
        with pytest.raises((TypeError, ValueError), match="`seed"):
            envs.seed(refused)
    expected = [single(NATIVE, seed)[1] for seed in (7, 8)]
    np.testing.assert_array_equal(envs.step(np.array([0, 1])).observation.obs, expected)


def test_without_a_seed_pools_differ_and_their_configuration_has_the_seed(make):
    pools = [make(NATIVE, num_envs=2) for _ in range(2)]
    seeds = [envs.config["seed"] for envs in pools]
    assert len(set(seeds)) == 2
    for envs, seed in zip(pools, seeds, strict=True):
        again = make(NATIVE, num_envs=2, seed=seed)
        np.testing.assert_array_equal(envs.reset()[0], again.reset()[0])


@pytest.mark.parametrize("env_type", ["gymnasium", "gym", "dm"])
@pytest.mark.parametrize(
    "seeds", [{}, {"seed": 7}, {"seed": [5, 9]}, {"env_seed": (5, 9)}], ids=str
)
def test_a_configuration_makes_the_same_pool_again(make, env_type, seeds):
    keywords = {"env_type": env_type, "num_envs": 2, "sutton_barto_reward": True, **seeds}
    for task_id in (NATIVE, PYTHON):
        config = envpool.make_spec(task_id, **keywords).config
        first, again = (make(task_id, **config._asdict()) for _ in range(2))
        assert first.spec.config == again.spec.config == config
        assert type(first) is type(again)
        for envs in (first, again):
            envs.async_reset()
        shown = [envs._receive(None).observations for envs in (first, again)]
        np.testing.assert_array_equal(*shown)
        if seeds in ({"seed": [5, 9]}, {"env_seed": (5, 9)}):
            for row, seed in enumerate([5, 9]):
                np.testing.assert_array_equal(shown[0][row], single(NATIVE, seed)[1])


def test_a_configuration_with_other_seeds_is_refused_if_it_contradicts_itself(make):
    drawn = envpool.make_spec(NATIVE, num_envs=2).config._asdict()
    assert make(NATIVE, **{**drawn, "num_envs": 3, "batch_size": 0, "seed": 1}).config["seed"] == 1
    listed = envpool.make_spec(NATIVE, num_envs=2, seed=[5, 9]).config._asdict()
    with pytest.raises(ValueError, match=r"disagree, 1 and \[5, 9\]: give one"):
        envpool.make(NATIVE, **{**listed, "seed": 1})
    with pytest.raises(ValueError, match="`env_seed` has 2 entries for num_envs=3"):
        envpool.make(NATIVE, num_envs=3, env_seed=[5, 9])


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_options_reach_the_environment(make, task_id):
    envs = make(task_id, num_envs=2, sutton_barto_reward=True, max_episode_steps=None)
    envs.reset()
    assert envs.step(np.array([0, 1]))[1].tolist() == [0, 0]


@pytest.mark.parametrize("limit", [None, 2**31 - 1, 3])
@pytest.mark.parametrize("task_id", ["Pendulum-v1", "gymnasium.envs.classic_control:Pendulum-v1"])
def test_the_step_limit_can_be_changed_and_lifted(make, task_id, limit):
    envs = make(task_id, num_envs=1, max_episode_steps=limit, executor="inline")
    envs.reset()
    truncated = [bool(envs.step(np.zeros((1, 1), np.float32))[3][0]) for _ in range(201)]
    assert truncated[:200].count(True) == (50 if limit == 3 else 0)
    assert envs.config["max_episode_steps"] == (limit or 2**31 - 1)
    assert truncated[200] is False


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_max_batches_limits_the_batches_that_are_kept(make, task_id):
    envs = make(task_id, num_envs=300, executor="inline", max_batches=2)  # small batches are copied
    kept = [envs.reset() for _ in range(2)]
    with pytest.warns(Warning, match="max_batches"):
        kept.append(envs.reset())
    views = [isinstance(observations.base, SlabLease) for observations, _ in kept]
    assert views == [True, True, False]


def test_reset_options_reach_the_environment(make):
    envs = make(TRANSCRIPT, num_envs=2, length=3)
    assert envs.reset(options={"x": 1})[1]["opt"].tolist() == ["{'x': 1}"] * 2


@pytest.mark.parametrize(
    ("task_id", "executor"),
    [
        pytest.param(NATIVE, "thread", marks=linux_only("it does not pin native threads")),
        (PYTHON, "thread"),
        (PYTHON, "process"),
    ],
)
@pytest.mark.parametrize("offset", [0, 1, 1000])
def test_workers_are_pinned_to_processors_starting_at_the_offset(make, task_id, executor, offset):
    processors = sorted(os.sched_getaffinity(0))
    others = native_threads()
    keywords = {"num_envs": 4, "executor": executor, "thread_affinity_offset": offset}
    envs = make(task_id, num_threads=2, **keywords)
    envs.reset()
    envs.step(np.zeros(4, np.int64))
    workers = [process.pid for process in getattr(envs._envs, "processes", [])]
    if executor == "thread":
        workers = sorted(native_threads() - others)
    expected = [{processors[(offset + at) % len(processors)]} for at in range(2)]
    if task_id == NATIVE:  # the calling thread is its first worker
        expected.pop()
    assert [os.sched_getaffinity(worker) for worker in workers] == expected
    assert os.sched_getaffinity(0) == set(processors)


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_pinning_is_refused_inline(task_id):
    with pytest.raises(ValueError, match=r"`thread_affinity_offset`=1 .* executor='inline'"):
        envpool.make(task_id, executor="inline", thread_affinity_offset=1)


def test_registered_tasks_have_defaults_and_aliases(make):
    task_id, alias = "tests/Short-v0", "tests/Brief-v0"
    if task_id not in envpool.list_all_envs():
        envpool.register(
            task_id,
            "tests.support.environments:TranscriptEnv",
            aliases=[alias],
            max_episode_steps=2,
            reward_threshold=5.0,
            length=9,
            num_envs=3,
        )
    for name in (task_id, alias):
        envs = make(name)
        assert len(envs) == 3
        assert envs.spec.reward_threshold == 5
        envs.reset()
        assert not envs.step(np.array([1, 1, 1]))[3].any()
        assert envs.step(np.array([1, 1, 1]))[3].all()
    assert len(make(task_id, num_envs=1, length=1, max_episode_steps=None)) == 1


@pytest.mark.parametrize("taken", [NATIVE, "cartwheel/CartPole-v1", TRANSCRIPT, "CarRacing-v3"])
def test_an_id_cannot_be_registered_twice(taken):
    for ids in ((taken, ()), ("tests/New-v0", (taken,))):
        with pytest.raises(ValueError, match=f"{taken}.* is taken: register another"):
            envpool.register(ids[0], TranscriptEnv, aliases=ids[1])
    assert "tests/New-v0" not in envpool.list_all_envs()


def test_of_two_threads_one_registers_an_id(monkeypatch):
    both = threading.Barrier(2)

    def find_with_both(_name):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.1)

    def is_registered(_thread):
        with contextlib.suppress(ValueError):
            envpool.register("tests/Contended-v0", TranscriptEnv)
            return True
        return False

    monkeypatch.setattr(registry, "_REGISTERED", {})
    monkeypatch.setattr(registry, "find_env_id", find_with_both)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(is_registered, range(2))).count(True) == 1


def test_one_alias_is_not_a_list_of_letters():
    with pytest.raises(TypeError, match=r"`aliases` must be a list of ids.*\['tests/Other-v0'\]"):
        envpool.register("tests/New-v0", TranscriptEnv, aliases="tests/Other-v0")
    assert "tests/New-v0" not in envpool.list_all_envs()


def test_modules_named_in_an_id_are_imported(make, tmp_path, monkeypatch):
    source = "import gymnasium\nfrom tests.support.environments import NestedEnv\n"
    source += "gymnasium.register('Elsewhere-v0', entry_point=NestedEnv)\n"
    (tmp_path / "elsewhere.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    envs = make("elsewhere:Elsewhere-v0", num_envs=2, seed=3)
    expected = make(NESTED, num_envs=2, seed=3).reset()[0]["walk"]
    np.testing.assert_array_equal(envs.reset()[0]["walk"], expected)
    gym.registry.pop("Elsewhere-v0")
    sys.modules.pop("elsewhere")


def test_more_threads_than_environments_are_allowed(make):
    envs = make(PYTHON, num_envs=2, num_threads=100_000)
    assert len(envs._envs.processes) == 2
    assert make(NATIVE, num_envs=2, num_threads=100_000)._envs.num_workers <= 2


@pytest.mark.parametrize("env_type", ["gymnasium", "gym", "dm"])
def test_the_repr_of_a_pool_and_its_wrappers_names_the_task(make, env_type):
    envs = make(NATIVE, env_type=env_type, num_envs=3)
    assert re.fullmatch(r"\w+EnvPool\('CartPole-v1', num_envs=3\)", repr(envs))
    if env_type != "dm":
        assert "CartPole-v1" in repr(RecordEpisodeStatistics(envs))
    envs.spec.id = "set by an adapter"  # as EnvPool's example for Stable-Baselines3 does
    assert "CartPole-v1" in repr(envs)


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_chosen_environments_are_rendered(make, task_id):
    pytest.importorskip("pygame")  # has no wheels for an old C library
    envs = make(task_id, num_envs=3, seed=1, render_mode="rgb_array")
    envs.reset()
    frames = envs.render()
    assert frames.shape == (3, 400, 600, 3)
    assert frames.dtype == np.uint8
    assert (frames[0] != frames[2]).any()
    np.testing.assert_array_equal(envs.render([2, 0]), frames[[2, 0]])
    for one in (2, np.int64(2)):
        np.testing.assert_array_equal(envs.render(one), frames[[2]])
    with pytest.raises(TypeError, match="must be a one-dimensional array of integers"):
        envs.render(2.0)
    with pytest.raises(IndexError, match="environment 3"):
        envs.render([3])
    with pytest.raises(ValueError, match="environment 2 twice"):
        envs.render([2, 0, 2])
    fresh = make(task_id, num_envs=2, render_mode="rgb_array")
    fresh.reset([1])
    assert fresh.render([1]).shape == (1, 400, 600, 3)
    with pytest.raises(gym.error.ResetNeeded):
        fresh.render()


@pytest.mark.parametrize("task_id", [NATIVE, PYTHON])
def test_rendering_without_a_render_mode_is_refused(make, task_id):
    envs = make(task_id, num_envs=1)
    with pytest.raises(RuntimeError, match="render_mode='rgb_array'"):
        envs.render()
