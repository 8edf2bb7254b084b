"""`CartwheelVectorEnv` against Tianshou's own vector environments."""

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel.wrappers import NumpyToTorch
from tests.multiagent.environments import Walkers
from tests.support.lived import SPACES, Lived, fns_of

pytestmark = pytest.mark.torch
EXECUTORS = ["inline", "thread", "process"]


def same(mine, other, path="result"):
    """Fails unless two results are equal, with their dtypes of arrays; numbers may be NumPy's.

    Infos travel in columns, so an ``int`` in an info arrives as ``np.int64``.
    """
    if isinstance(other, np.ndarray):
        assert isinstance(mine, np.ndarray), path
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape), path
        if other.dtype != object:
            assert mine.tobytes() == other.tobytes(), path
            return
    if isinstance(other, dict):
        assert mine.keys() == other.keys(), path
        for key in other:
            same(mine[key], other[key], f"{path}/{key}")
    elif isinstance(other, np.ndarray | list | tuple):
        assert len(mine) == len(other), path
        for place, (one, two) in enumerate(zip(mine, other, strict=True)):
            same(one, two, f"{path}/{place}")
    else:
        assert mine == other, path


@pytest.mark.parametrize("form", SPACES)
@pytest.mark.parametrize("longest", [(1,), (1, 1, 1), (9, 3, 1, 5, 2, 7, 4)])
def test_steps_and_resets_of_some_are_those_of_a_dummy_vector_env(tianshou, longest, form):
    executors = EXECUTORS if form == "dict" and len(longest) == 7 else ["inline"]
    for executor in executors:
        theirs = tianshou.env.DummyVectorEnv(fns_of(longest, form))
        ours = tianshou.ours(
            fns_of(longest, form), executor=executor, num_workers=min(7, len(longest))
        )
        draw = np.random.default_rng(1)
        assert ours.seed(5) == theirs.seed(5)
        over = np.ones(len(ours), bool)
        for _ in range(60):
            ended = np.flatnonzero(over)
            if len(ended):
                options = {"options": {"level": 3}} if draw.random() < 0.3 else {}
                same(ours.reset(ended, **options), theirs.reset(ended, **options))
                over[ended] = False
            some = draw.permutation(len(ours))[: draw.integers(1, len(ours) + 1)]
            ids = None if draw.random() < 0.2 else some
            actions = draw.integers(0, 3, len(ours) if ids is None else len(some))
            mine, other = ours.step(actions, ids), theirs.step(actions, ids)
            same(mine, other)
            over[some if ids is not None else slice(None)] = mine[2] | mine[3]
        ours.close()
        theirs.close()


@pytest.mark.parametrize("full_batch", [True, False])
@pytest.mark.parametrize("form", ["array", "dict"])
def test_resets_of_some_return_these_though_the_vector_environment_returns_all(
    tianshou, form, full_batch
):
    theirs = tianshou.env.DummyVectorEnv(fns_of([9, 5, 7, 3], form))
    ours = tianshou.ours(fns_of([9, 5, 7, 3], form), executor="inline", full_batch=full_batch)
    assert ours.seed(3) == theirs.seed(3)
    for seed, ids in enumerate(([2, 0], [1], [3, 2, 1, 0], None, 3)):
        same(ours.reset(ids, seed=seed), theirs.reset(ids, seed=seed))
        rows = [ids] if ids == 3 else ids
        actions = np.ones(4 if rows is None else len(rows), int)
        same(ours.step(actions, rows), theirs.step(actions, rows))
    ours.close()
    theirs.close()


@pytest.mark.parametrize("ids", [np.array([True, False]), [1.7, 0.2], True])
def test_ids_that_are_no_integers_are_refused_before_anything_is_stepped(tianshou, ids):
    ours = tianshou.ours(fns_of([6, 6]), executor="inline")
    shown, _ = ours.reset(seed=4)
    for call in (ours.reset, lambda ids: ours.step([1] * np.size(ids), ids)):
        with pytest.raises(TypeError, match="`id` must be a one-dimensional array of integers"):
            call(ids)
    same(ours.step([1, 1])[0][:, 0], shown[:, 0] + 1)
    ours.close()


def test_one_number_and_a_seed_for_all_mean_what_they_mean_in_tianshou(tianshou):
    theirs = tianshou.env.DummyVectorEnv(fns_of([6, 6, 6]))
    ours = tianshou.ours(fns_of([6, 6, 6]), executor="inline")
    for seeds in (None, 3, [7, 8, 9]):
        if seeds is None:
            assert ours.seed() == theirs.seed() == [[None]] * 3
        else:
            expected = theirs.seed(seeds)
            assert ours.seed(seeds) == expected
            assert (
                ours.seed(np.array(seeds)[()]) == expected
            )  # Tianshou's own take no NumPy integers
    same(ours.reset(seed=4), theirs.reset(seed=4))
    same(ours.reset(1), theirs.reset(1))
    same(ours.step([2], 1), theirs.step([2], 1))
    assert len(ours) == len(theirs) == 3
    draws = [
        [
            [space.sample() for space in envs.get_env_attr("action_space", ids)]
            for envs in (ours, theirs)
        ]
        for ids in (None, [2, 0])
    ]
    assert all(mine == other for mine, other in draws)
    assert ours.observation_space == theirs.observation_space
    assert ours.get_env_attr("longest", [2, 0]) == theirs.get_env_attr("longest", [2, 0]) == [6, 6]
    for envs in (ours, theirs):
        envs.set_env_attr("mark", [5, 6], [1, 2])
    assert ours.get_env_attr("mark") == theirs.get_env_attr("mark") == [0, [5, 6], [5, 6]]
    same(*([shown() for shown in envs.get_env_attr("shown", [1])] for envs in (ours, theirs)))
    same(ours.render(size=3), theirs.render(size=3))
    ours.close()
    calls = {
        "step": ([0] * 3,), "reset": (), "seed": (), "render": (), "close": (),
        "get_env_attr": ("action_space",), "set_env_attr": ("mark", 1),
    }  # fmt: skip
    for name, arguments in calls.items():
        with pytest.raises(AssertionError, match="cannot be called after close"):
            getattr(ours, name)(*arguments)


def random_policy(tianshou, space, shown, *, recurrent=False):
    """A policy of Tianshou that acts by the observations alone.

    AsyncCollector of Tianshou 2.0.1 needs an entry to store and a hidden state, with Tianshou's own
    environments, too; ``recurrent`` gives it both.
    """

    class ByObservation(tianshou.policy):
        def forward(self, batch, state=None, **_):  # noqa: ARG002 - Tianshou's signature
            times = np.asarray(batch.obs)[:, 0]
            act = (times.astype(np.int64) * 7 + 1) % 3
            if not recurrent:
                return tianshou.data.Batch(act=act)
            kept = {name: tianshou.data.Batch(times=times.copy()) for name in ("policy", "state")}
            return tianshou.data.Batch(act=act, **kept)

    return ByObservation(action_space=space, observation_space=shown)


def collected(tianshou, envs, *, random):
    """The buffer and the statistics of a Collector."""
    space = envs.action_space[0]
    buffer = tianshou.data.VectorReplayBuffer(700, len(envs))
    policy = random_policy(tianshou, space, SPACES["array"])
    collector = tianshou.data.Collector(policy, envs, buffer)
    envs.seed(3)
    collector.reset()
    reports = [
        collector.collect(n_step=len(envs) * 20, random=random),
        collector.collect(n_episode=len(envs) * 2 + 1, random=random, reset_before_collect=True),
    ]
    stored = {
        name: np.asarray(getattr(buffer, name))
        for name in ("obs", "obs_next", "act", "rew", "terminated", "truncated", "done")
    }
    stored["env_id"] = np.asarray(buffer.info.env_id)
    seen = [(report.returns.tolist(), report.lens.tolist()) for report in reports]
    collector.close()
    return stored, seen


@pytest.mark.parametrize("random", [True, False])
@pytest.mark.parametrize("longest", [(1,), (1, 1, 1), (9, 3, 1, 5, 2, 7, 4)])
def test_a_collector_stores_what_it_stores_of_a_dummy_vector_env(tianshou, longest, random):
    theirs = collected(tianshou, tianshou.env.DummyVectorEnv(fns_of(longest)), random=random)
    for executor in EXECUTORS if len(longest) == 7 else ["inline"]:
        envs = tianshou.ours(fns_of(longest), executor=executor)
        same(collected(tianshou, envs, random=random), theirs)


def test_native_environments_are_collected_like_gymnasiums(tianshou):
    def columns(envs):
        buffer = tianshou.data.VectorReplayBuffer(4000, len(envs))
        policy = random_policy(tianshou, gym.spaces.Discrete(2), None)
        collector = tianshou.data.Collector(policy, envs, buffer)
        envs.seed(3)
        collector.reset()
        collector.collect(n_step=2000, random=True)
        collector.close()
        return [buffer.obs, buffer.act, buffer.rew, buffer.terminated, buffer.obs_next]

    native = cartwheel.make_vec("cartwheel/CartPole-v1", 4, autoreset_mode="disabled")
    theirs = tianshou.env.DummyVectorEnv([lambda: gym.make("CartPole-v1")] * 4)
    for mine, other in zip(columns(tianshou.ours(native)), columns(theirs), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("longest", "wait_num"), [((4, 4), 1), ((9, 3, 1, 5, 2, 7, 4), 3)])
def test_every_row_lives_the_same_life_however_few_are_waited_for(
    tianshou, longest, wait_num, executor
):
    theirs = tianshou.env.DummyVectorEnv(fns_of(longest))
    ours = tianshou.ours(fns_of(longest), wait_num, executor=executor)
    assert (ours.is_async, ours.wait_num) == (True, wait_num)
    assert ours.seed(5) == theirs.seed(5)
    lives = [[] for _ in longest]
    same(ours.reset(), theirs.reset())
    ids = np.arange(len(longest))
    for _ in range(60):
        *columns, infos = ours.step(ids % 3, ids)
        ids = np.array([info["env_id"] for info in infos])
        assert len(ids) >= min(wait_num, len(longest))
        for place, row in enumerate(ids):
            lives[row].append([column[place] for column in columns] + [infos[place]])
        ended = ids[columns[2] | columns[3]]
        if len(ended):
            shown, told = ours.reset(ended)
            for place, row in enumerate(ended):
                lives[row].append([shown[place], told[place]])
    ours.step(None, ours.waiting_id)
    assert ours.waiting_id == []
    for row, life in enumerate(lives):
        for entry in life:
            if len(entry) == 2:
                shown, told = theirs.reset([row])
                same(entry, [shown[0], told[0]])
            else:
                *columns, infos = theirs.step([row % 3], [row])
                same(entry, [column[0] for column in columns] + [infos[0]])
    ours.close()


@pytest.mark.filterwarnings("ignore:Using async setting:UserWarning")
def test_an_async_collector_collects_and_starts_again(tianshou):
    envs = tianshou.ours(fns_of((9, 3, 1, 5)), 2, executor="thread")
    buffer = tianshou.data.VectorReplayBuffer(4000, 4)
    policy = random_policy(tianshou, gym.spaces.Discrete(3), None, recurrent=True)
    # The infos of some steps have texts and those of others none, which a buffer counts as NaN.
    collector = tianshou.data.AsyncCollector(policy, envs, buffer, raise_on_nan_in_buffer=False)
    collector.reset()
    for _ in range(3):
        assert collector.collect(n_step=60).n_collected_steps >= 60
        collector.reset_env()  # while environments are being stepped
    for row, longest in enumerate((9, 3, 1, 5)):
        assert 0 < buffer.buffers[row].obs_next[: len(buffer.buffers[row]), 0].max() <= longest
    collector.close()


def test_environments_that_are_being_stepped_can_only_be_waited_for(tianshou):
    envs = tianshou.ours(fns_of((9, 9, 9)), 1, executor="thread")
    envs.reset()
    envs.step([0, 0, 0])
    with pytest.raises(AssertionError, match="stepping now"):
        envs.reset()
    with pytest.raises(RuntimeError, match="being stepped"):
        envs.render()
    envs.step(None)
    envs.reset()
    with pytest.raises(ValueError, match="no environment is being stepped"):
        envs.step(None)
    envs.close()


def test_spec_and_metadata_are_those_of_the_environments(tianshou):
    fns = [lambda: gym.make("CartPole-v1")] * 2
    theirs = tianshou.env.DummyVectorEnv(fns)
    native = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="disabled")
    for envs in (tianshou.ours(fns, executor="inline"), tianshou.ours(native)):
        assert [spec.name for spec in envs.spec] == [spec.name for spec in theirs.spec]
        fps = [metadata["render_fps"] for metadata in envs.get_env_attr("metadata", [1])]
        assert fps == [theirs.metadata[1]["render_fps"]]
        envs.close()
    theirs.close()


def test_what_does_not_fit_is_refused_before_anything_starts(tianshou):
    refused = [
        (ValueError, "must be 'disabled', got 'same_step'", {"autoreset_mode": "same_step"}),
        (ValueError, "wait_num", {"wait_num": 0}),
        (ValueError, "wait_num", {"wait_num": 3}),
        (TypeError, "multiple values", {"wait_num": 1, "batch_size": 1}),
        (TypeError, "num_worker", {"num_worker": 1}),
        (TypeError, "did you mean `wait_num`", {"wait_nun": 1}),
    ]
    for error, message, keywords in refused:
        with pytest.raises(error, match=message):
            tianshou.ours(fns_of((1, 1)), **keywords)
    next_step = cartwheel.make_vec("cartwheel/CartPole-v1", 2)
    with pytest.raises(ValueError, match="must be 'disabled', got 'next_step'"):
        tianshou.ours(next_step)
    next_step.close()
    envs = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="disabled")
    with pytest.raises(TypeError, match="`executor` cannot be given with a vector environment"):
        tianshou.ours(envs, executor="inline")
    with pytest.raises(ValueError, match="batch_size of a vector environment, 2 here, got 1"):
        tianshou.ours(envs, 1)
    with pytest.raises(TypeError, match=r"needs the arrays themselves, got .*NumpyToTorch"):
        tianshou.ours(NumpyToTorch(envs))
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        tianshou.ours(envs)
    with pytest.raises(TypeError, match="make_vec"):
        tianshou.ours("cartwheel/CartPole-v1")
    with pytest.raises(TypeError, match=r"`\[function\] \* num_envs`"):
        tianshou.ours(fns_of((1, 1))[0])
    mode = gym.vector.AutoresetMode.DISABLED
    theirs = gym.vector.SyncVectorEnv(fns_of((1, 1)), autoreset_mode=mode)
    with pytest.raises(TypeError, match="needs a vector environment of cartwheel"):
        tianshou.ours(theirs)
    theirs.close()
    with cartwheel.ParallelVectorEnv([Walkers], executor="inline") as agents:
        for form in (agents, agents.as_rows()):
            with pytest.raises(TypeError, match=r"of one agent, got .* that make a PettingZooEnv"):
                tianshou.ours(form)

    class Pair(Lived):
        def __init__(self):
            super().__init__(1)
            self.observation_space = gym.spaces.Tuple([SPACES["array"]] * 2)

    with pytest.raises(TypeError, match="no tuples as observations"):
        tianshou.ours([Pair], executor="process")


def test_options_that_choose_rows_are_refused_before_anything_is_reset(tianshou):
    envs = tianshou.ours(fns_of((5, 5)), executor="inline")
    envs.reset()
    for name, rows in (("env_index", [1]), ("reset_mask", np.array([True, False]))):
        for chosen in (None, [0]):
            with pytest.raises(ValueError, match=rf"rows, got \['{name}'\]: `env_id` does"):
                envs.reset(chosen, options={name: rows})
    assert envs._envs.stats().resets.tolist() == [1, 1]
    envs.close()


def test_repr_names_the_vector_environment(tianshou):
    envs = tianshou.ours(fns_of((1, 1)), executor="inline")
    shown = "VectorEnv(num_envs=2, autoreset_mode='disabled', executor='inline')"
    assert repr(envs).endswith(f"({shown})")
    envs.close()


def test_an_action_that_is_none_needs_wait_num(tianshou):
    envs = tianshou.ours(fns_of((5, 5)), executor="inline")
    envs.reset()
    with pytest.raises(ValueError, match="there is no `wait_num`"):
        envs.step(None)
    envs.close()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_step_of_no_environment_waits_for_those_that_are_being_stepped(tianshou, executor):
    ours = tianshou.ours(fns_of((5, 5, 5)), 2, executor=executor)
    theirs = tianshou.env.DummyVectorEnv(fns_of((5, 5, 5)), wait_num=2)
    for envs in (ours, theirs):
        envs.reset()
        done = [info["env_id"] for info in envs.step(np.zeros(3, int), [0, 1, 2])[4]]
        while len(done) < 3:
            done += [info["env_id"] for info in envs.step(np.zeros(0, int), [])[4]]
        assert sorted(done) == [0, 1, 2]
    with pytest.raises(ValueError, match="no environment is being stepped"):
        ours.step(np.zeros(0, int), [])
    with pytest.raises(ValueError, match="`env_index` is empty"):
        ours.step(np.zeros(1, int), [])
    ours.close()
