"""A worker process of one row is replaced between two episodes; nothing else can be noticed."""

import logging
import os

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel.workers.retirement import memory_of_this_process
from cartwheel.wrappers import CachedReset, RecordMetrics
from tests.support.comparison import assert_identical
from tests.support.restarts import MODES

#: The length of the episodes of each row.
LENGTHS = [1, 2, 3]
LEAK = 10 * 2**20


class SteadyEnv(gym.Env):
    """Shows its step and the last action, and draws no random number unless it is asked to."""

    observation_space = gym.spaces.Box(-1e6, 1e6, (3,), np.float64)
    action_space = gym.spaces.Discrete(100)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as Gymnasium's
    render_mode = "rgb_array"

    def __init__(self, length, leak=0, crash=None):
        self.length, self.leak, self.crash = length, leak, crash
        self.episodes, self.kept, self.draws = 0, [], False
        self.unwrapped_pid = os.getpid()

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.episodes = 0, self.episodes + 1
        options = options or {}
        self.draws = options.get("draws", self.draws)
        if self.leak:
            self.kept.append(np.ones(self.leak, np.uint8))
        info = {"seed": -1 if seed is None else seed, "option": options.get("option", 0)}
        return self.observe(0), info

    def step(self, action):
        if action == self.crash:
            os._exit(3)
        self.steps += 1
        over = self.steps == self.length
        info = {"steps": self.steps, "texts": "x" * self.steps}
        return self.observe(action), self.steps + action / 100, over, False, info

    def observe(self, action):
        drawn = self.np_random.integers(10**6) if self.draws else 0
        return np.array([self.steps, action, drawn], np.float64)

    def render(self):
        return np.full((2, 2, 3), self.steps, np.uint8)


def env_fns(**keywords):
    return [lambda length=length: SteadyEnv(length, **keywords) for length in LENGTHS]


def build(limit=1, **keywords):
    return cartwheel.VectorEnv(
        keywords.pop("env_fns", env_fns()), max_episodes_per_worker=limit, **keywords
    )


def plain(infos):
    """Infos without those about a replacement."""
    return {name: value for name, value in infos.items() if name.strip("_") != "restarted"}


def assert_same(got, expected):
    assert_identical((*got[:-1], plain(got[-1])), (*expected[:-1], plain(expected[-1])))


def play(envs, twin, steps, on_step=lambda _: None, first=0):
    """Steps both, and resets rows that are over in the mode ``DISABLED``."""
    for step in range(first, first + steps):
        actions = (np.arange(3) + step) % 7
        result = envs.step(actions)
        assert_same(result, twin.step(actions))
        on_step(result)
        over = result[2] | result[3]
        if envs.autoreset_mode == gym.vector.AutoresetMode.DISABLED and over.any():
            options = {"reset_mask": over}
            reset = envs.reset(options=options)
            assert_same(reset, twin.reset(options=options))
            on_step(reset)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("limit", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_results_are_those_of_one_process(mode, limit):
    pids, restarted = [], np.zeros(3, int)

    def count(result):
        restarted[:] += result[-1].get("restarted", np.zeros(3, bool))
        pids.append(envs.get_attr("unwrapped_pid"))

    with (
        build(limit, autoreset_mode=mode, max_episode_steps=2) as envs,
        cartwheel.VectorEnv(
            env_fns(), autoreset_mode=mode, max_episode_steps=2, executor="inline"
        ) as twin,
    ):
        assert_same(envs.reset(), twin.reset())
        pids.append(envs.get_attr("unwrapped_pid"))
        play(envs, twin, 6, count)
        processes = [len(set(column)) for column in zip(*pids, strict=True)]
        assert (restarted == np.array(processes) - 1).all()
        assert restarted.min() >= 1
        assert envs.stats().restarts.tolist() == restarted.tolist()
        resets = envs.stats().resets
        assert (restarted == (resets - 1) // limit).all()
        assert resets.tolist() == twin.stats().resets.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_sent_rows_go_on_while_a_worker_is_replaced(mode):
    with (
        build(autoreset_mode=mode) as envs,
        cartwheel.VectorEnv(env_fns(), autoreset_mode=mode, executor="inline") as twin,
    ):
        envs.reset()
        twin.reset()
        for step in range(4):
            rows = np.array([2, 0]) if step % 2 else np.array([1, 0, 2])
            envs.send(rows + step, rows)
            twin.send(rows + step, rows)
            assert_same(envs.recv(), twin.recv())


class StartsEnv(gym.Env):
    """Begins with a random number, which it shows; two steps are an episode."""

    observation_space, action_space = gym.spaces.Discrete(10**6), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, **_):
        super().reset(seed=seed)
        self.start, self.steps = int(self.np_random.integers(10**6)), 0
        return self.start, {}

    def step(self, _):
        self.steps += 1
        return self.start, 0.0, self.steps == 2, False, {}

    def get_state(self):
        return self.start, self.steps

    def set_state(self, state):
        self.start, self.steps = state


def test_cached_resets_draw_the_states_of_one_process():
    with (
        build(env_fns=[StartsEnv] * 3) as envs,
        cartwheel.VectorEnv([StartsEnv] * 3, executor="inline") as twin,
    ):
        cached, expected = (CachedReset(each, num_states=50, seed=5) for each in (envs, twin))
        assert_same(cached.reset(seed=7), expected.reset(seed=7))
        for _ in range(7):
            assert_same(cached.step([0] * 3), expected.step([0] * 3))
        assert envs.stats().restarts.min() >= 2


def test_a_sent_reset_of_all_rows_is_staggered_by_the_new_process():
    rules = {"max_episode_steps": 7, "staggered_reset": True}
    long = [lambda: SteadyEnv(1000)] * 3
    with (
        build(env_fns=long, **rules) as envs,
        cartwheel.VectorEnv(long, executor="inline", **rules) as twin,
    ):
        for seed in (3, 4):
            for each in (envs, twin):
                each.send_reset(seed=seed)
            assert_same(envs.recv(), twin.recv())
            for _ in range(8):
                ends, expected = (each.step([1, 2, 3])[3].tolist() for each in (envs, twin))
                assert ends == expected


@pytest.mark.slow
def test_sent_and_explicit_resets_reach_the_new_process():
    with build() as envs, cartwheel.VectorEnv(env_fns(), executor="inline") as twin:
        for number in range(2):
            for kind in (envs, twin):
                kind.send_reset(seed=[5, None, number], options={"option": number})
            assert_same(envs.recv(), twin.recv())
        assert_same(
            envs.reset(seed=3, options={"option": 8}), twin.reset(seed=3, options={"option": 8})
        )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_details_of_the_next_reset_and_statistics_survive(mode):
    fns = [lambda n=n: gym.wrappers.NormalizeReward(SteadyEnv(n)) for n in LENGTHS]
    with (
        build(env_fns=fns, autoreset_mode=mode) as envs,
        cartwheel.VectorEnv(fns, autoreset_mode=mode, executor="inline") as twin,
    ):
        envs.reset()
        twin.reset()
        for step in range(3):
            for kind in (envs, twin):
                kind.next_reset(seed=100 * step, options={"option": 7 + step})
            play(envs, twin, 1, first=step)


@pytest.mark.slow
def test_a_run_with_seeds_can_be_repeated():
    runs = []
    for _ in range(2):
        with build() as envs:
            seen = [envs.reset(seed=3, options={"draws": True})[0]]
            for _ in range(4):
                envs.next_reset(options={"draws": True})
                seen.append(envs.step([0, 0, 0])[0])
            runs.append(np.array(seen)[:, 0, 2])
    assert (runs[0] == runs[1]).all()
    assert len(set(runs[0])) == len(runs[0])


@pytest.mark.slow
def test_a_final_frame_is_of_the_old_process():
    with build(autoreset_mode="SameStep") as envs:
        envs.reset()
        envs.draw_final_frames([0])
        frames = envs.step([0, 0, 0])[4]["final_frame"]
        assert (frames[0] == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("dense", [False, True])
def test_wrappers_see_one_episode_after_the_other(dense):
    with (
        build(autoreset_mode="SameStep", final_obs="dense" if dense else "object") as bare,
        RecordMetrics(bare) as envs,
    ):
        envs.reset()
        for _ in range(3):
            envs.step([0, 0, 0])
        finished = envs.finished()
        assert sorted(finished["episode_len"].tolist()) == [1, 1, 1, 2, 3]


def test_the_memory_of_a_simulator_that_leaks_stays_bounded():
    with build(2, env_fns=[lambda: SteadyEnv(1, leak=LEAK)], context="fork") as envs:
        envs.reset()
        kept = []
        for _ in range(6):
            envs.step([0])
            kept.append(sum(map(len, envs.get_attr("kept")[0])))
        assert max(kept) == 2 * LEAK


@pytest.mark.slow
def test_a_worker_with_too_much_memory_is_replaced():
    leak = 40 * 2**20
    start = [lambda: SteadyEnv(1, leak=leak)]
    probe = cartwheel.VectorEnv(start, executor="process", max_worker_memory="100GiB")
    memory = probe.apply(resident)[0]
    probe.close()
    limit = memory + 2.5 * leak
    with cartwheel.VectorEnv(start, max_worker_memory=f"{limit / 2**20} MiB") as envs:
        envs.reset()
        episodes, restarted = [], 0
        for _ in range(6):
            infos = envs.step([0])[4]
            restarted += int(infos.get("restarted", [False])[0])
            episodes.append(envs.get_attr("episodes")[0])
        assert restarted >= 1
        assert max(episodes) <= 4


def resident(_env):
    return memory_of_this_process()


def test_a_death_is_raised_as_without_a_limit(caplog):
    with build(env_fns=env_fns(crash=9)) as envs:
        envs.reset()
        envs.step([0, 0, 0])
        with pytest.raises(cartwheel.WorkerDiedError, match=r"exited with code 3") as failure:
            envs.step([0, 0, 9])
        assert failure.value.env_index == [2]
        with pytest.raises(cartwheel.WorkerDiedError):
            envs.step([0, 0, 0])
    assert [record.cartwheel["event"] for record in caplog.records] == ["death"]


@pytest.mark.slow
def test_replacements_do_not_count_as_failures(caplog):
    caplog.set_level(logging.INFO, logger="cartwheel")
    with build(max_restarts=0, on_worker_death="restart") as envs:
        envs.reset()
        for _ in range(4):
            envs.step([0, 0, 0])
        assert envs.stats().restarts[0] >= 1
    events = [record.cartwheel for record in caplog.records]
    assert {event["event"] for event in events} == {"restart"}
    assert {event["env_index"][0] for event in events} == {0, 1, 2}


@pytest.mark.slow
def test_states_are_loaded_into_a_worker_that_was_replaced():
    with build(states="pickle") as envs, build(states="pickle") as other:
        envs.reset()
        for _ in range(3):
            envs.step([0, 0, 0])
        other.load_state_dict(envs.state_dict())
        for step in range(3):
            actions = np.full(3, step)
            for one, another in zip(envs.step(actions)[:4], other.step(actions)[:4], strict=True):
                np.testing.assert_array_equal(one, another)


WRONG = {
    "executor": ({"executor": "inline", "max_episodes_per_worker": 1}, "need executor='process'"),
    "workers": ({"num_workers": 2, "max_episodes_per_worker": 1}, "need num_workers=3, .* got 2"),
    "most": ({"max_concurrency": 1, "max_worker_memory": 10**12}, "need num_workers=3, .* got 1"),
    "zero": ({"max_episodes_per_worker": 0}, "max_episodes_per_worker"),
    "part": ({"max_worker_memory": 2.5}, "must be a positive number of bytes"),
    "unit": ({"max_worker_memory": "4 gigs"}, "'4GiB' or '512MB', got '4 gigs'"),
    "negative": ({"max_worker_memory": -1}, "must be a positive number of bytes"),
    "little": ({"max_worker_memory": "1MB"}, "is 1,000,000 bytes, and worker"),
}


@pytest.mark.parametrize("name", WRONG)
def test_limits_that_cannot_be_kept_are_refused(name):
    keywords, reason = WRONG[name]
    with pytest.raises(ValueError, match=reason):
        cartwheel.VectorEnv(env_fns(), **keywords)
