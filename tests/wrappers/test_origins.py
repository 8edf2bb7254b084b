"""Wrappers know the seed and the options with which each episode began, and which were restored."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import TransformReward

import cartwheel
from cartwheel.wrappers import ClipReward, RecordMetrics
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import RESET
from tests.support.stateful import EndlessWalkEnv
from tests.support.wrapping import D, FailingEnv, N, S

LENGTH = 3


class Begun(VectorWrapper):
    """Keeps what batches say of the beginnings of episodes."""

    _changes_steps = False

    def __init__(self, envs):
        super().__init__(envs)
        self.begun = []

    def transform(self, batch):
        rows = batch.rows.tolist()
        begins = batch.kinds == RESET
        if self._source.autoreset_mode == S and batch.rewards is not None:
            begins |= batch.terminations | batch.truncations
        for place, row in enumerate(rows):
            if begins[place]:
                seed = -1 if batch.seeds is None else int(batch.seeds[place])
                options = (batch.options or {}).get(row)
                self.begun.append((row, seed, options, batch.is_restored))


class Remembering(gym.Env):
    """Observes the seed and the options of the last reset that was given any."""

    observation_space = gym.spaces.Box(-1, 1000, (2,), np.int64)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.begun = np.array([-1 if seed is None else seed, (options or {}).get("place", -1)])
        self.steps = 0
        return self.begun.copy(), {}

    def step(self, _action):
        self.steps += 1
        return self.begun.copy(), 1.0, self.steps == LENGTH, False, {}


def stepped(envs, way, actions):
    if way == "step":
        return envs.step(actions)
    if way == "rows":
        return envs.step(actions, np.arange(envs.num_envs)[::-1])
    if way == "wait":
        envs.step_async(actions)
        return envs.step_wait()
    envs.send(actions, np.arange(envs.num_envs))
    while len(envs.in_flight):
        result = envs.recv(30)
    return result


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("way", ["step", "rows", "wait", "send"])
@pytest.mark.parametrize("executor", ["inline", "process"])
def test_each_batch_tells_what_the_environments_were_given(mode, way, executor):
    """The oracle is the environment: it shows the seed and the options of its reset."""
    rng = np.random.default_rng(5)
    batch_size = 2 if way == "send" and executor == "inline" else 3
    envs = cartwheel.VectorEnv(
        [Remembering] * 3, executor=executor, autoreset_mode=mode, batch_size=batch_size
    )
    envs = Begun(envs)
    expected, seeds = [], [8, 7, 0]
    envs.send_reset(seed=seeds) if batch_size < 3 else envs.reset(seed=seeds)
    while len(envs.in_flight):
        envs.recv(30)
    assert sorted(envs.begun) == [(row, seeds[row], None, False) for row in range(3)]
    del envs.begun[:]
    for number in range(12):
        if number % 2:  # some are replaced before they are used
            rows = rng.permutation(3)[: rng.integers(1, 4)].tolist()
            seeds = [int(rng.integers(100)) if rng.random() < 0.7 else None for _ in rows]
            options = [{"place": number} if rng.random() < 0.5 else None for _ in rows]
            target = envs.unwrapped if number % 4 == 1 else envs
            target.next_reset(seed=seeds, options=options, env_index=rows)
        if number == 7 and batch_size == 3:  # an explicit reset discards them
            observations, _ = envs.reset(options={"reset_mask": np.array([True, False, False])})
            expected.append((0, *observations[0].tolist()))
            continue
        before = len(envs.begun)
        shown = {}
        if way == "send":
            envs.send(np.zeros(3, int), np.arange(3))
            while len(envs.in_flight):
                observations, *_, infos = envs.recv(30)
                shown |= dict(zip(infos["env_index"].tolist(), observations.tolist(), strict=True))
        else:
            observations, *_, infos = stepped(envs, way, np.zeros(3, int))
            rows = infos.get("env_index", np.arange(3)).tolist()
            shown = dict(zip(rows, observations.tolist(), strict=True))
        expected += [(row, *shown[row]) for row, *_ in envs.begun[before:]]
    envs.close()
    told = [(row, seed, (options or {}).get("place", -1)) for row, seed, options, _ in envs.begun]
    assert told == expected
    assert any(seed >= 0 for _, seed, _ in told)
    assert any(place >= 0 for *_, place in told)


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("kind", ["inline", "native", "wrapped"])
def test_metrics_have_the_seeds_of_next_reset(mode, kind):
    if kind == "native":
        envs = cartwheel.NativeVectorEnv(
            "CartPole-v1", 2, max_episode_steps=LENGTH, autoreset_mode=mode
        )
    else:
        envs = cartwheel.VectorEnv([Remembering] * 2, autoreset_mode=mode, executor="inline")
    if kind == "wrapped":
        envs = TransformReward(envs, lambda rewards: rewards)
    envs = RecordMetrics(ClipReward(envs, 0, 1))
    envs.reset(seed=7)
    envs.unwrapped.next_reset(seed=[70], env_index=[1])  # wrappers of Gymnasium hide the name
    for _ in range(3 * (LENGTH + 1)):
        envs.step(np.ones(2, int))
    ended = envs.finished()
    envs.close()
    by_row = [ended["seed"][ended["env_index"] == row].tolist()[:3] for row in range(2)]
    assert by_row == [[7, -1, -1], [8, 70, -1]]


class Picky(Remembering):
    """Cannot begin at place 2."""

    def reset(self, *, seed=None, options=None):
        if options == {"place": 2}:
            raise ValueError("chosen to fail")
        return super().reset(seed=seed, options=options)


def test_rows_next_to_one_whose_reset_failed_begin_with_what_they_were_given():
    envs = Begun(cartwheel.VectorEnv([Picky] * 3, executor="inline", autoreset_mode=D))
    with pytest.raises(ValueError, match="chosen to fail"):
        envs.reset(seed=[0, 6, 7], options=[{"place": 1}, {"place": 2}, {"place": 3}])
    envs.reset(seed=8, options={"reset_mask": np.array([False, True, False])})
    envs.close()
    origins = [(0, {"place": 1}), (9, None), (7, {"place": 3})]
    assert envs.begun == [(row, *origin, False) for row, origin in enumerate(origins)]


class Losing(VectorWrapper):
    """Raises where it is told to."""

    loses = False

    def transform(self, batch):  # noqa: ARG002
        if self.loses:
            raise OSError("chosen to fail")


class OneStep(Picky):
    def step(self, action):
        if action:
            raise ValueError("chosen to fail")
        return self.begun.copy(), 1.0, True, False, {}


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("steps", [0, 1])
def test_what_a_reset_that_was_lost_was_given_is_told_of_no_later_episode(mode, steps):
    envs = Begun(Losing(cartwheel.VectorEnv([OneStep] * 2, executor="inline", autoreset_mode=mode)))
    envs.reset(seed=1)
    del envs.begun[:]
    envs.env.loses = True
    with pytest.raises(OSError, match="chosen to fail"):
        envs.reset(seed=5, options=[{"place": 1}, {"place": 4}])
    for _ in range(steps):
        with pytest.raises(OSError, match="chosen to fail"):
            envs.step([0, 0])
    envs.env.loses = False
    envs.next_reset(seed=[50], env_index=[0])
    while not envs.begun:
        observations = envs.step([0, 0])[0]
    assert observations.tolist() == [[50, -1], [-1, -1]]
    assert envs.begun == [(0, 50, None, False), (1, -1, None, False)]
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
def test_environments_that_raise_leave_no_seed_to_a_later_episode(mode):
    envs = Begun(cartwheel.VectorEnv([OneStep] * 3, executor="inline", autoreset_mode=mode))
    with pytest.raises(ValueError, match="chosen to fail"):
        envs.reset(seed=5, options=[{"place": 1}, {"place": 2}, {"place": 3}])
    with pytest.raises(ValueError, match="chosen to fail"):
        envs.step([0, 1], [0, 2])
    assert envs.step([0], [0])[0].tolist() == [[-1, -1]]
    assert envs.begun == [(0, -1, None, False)]
    envs.close()


class Missed(VectorWrapper):
    """Keeps how many episodes the last batch says that it missed."""

    _changes_steps = False

    def transform(self, batch):
        self.skipped = batch.skipped


@pytest.mark.parametrize(("seed", "missed"), [([0, 6, 7], -1), (None, 1)])
def test_where_a_seeded_episode_was_missed_it_is_unknown_how_many_were(seed, missed):
    envs = Missed(cartwheel.VectorEnv([Picky] * 3, executor="inline", autoreset_mode=D))
    envs.reset(seed=1)
    with pytest.raises(ValueError, match="chosen to fail"):
        envs.reset(seed=seed, options=[{"place": 1}, {"place": 2}, {"place": 3}])
    envs.reset()
    assert envs.skipped[[0, 2]].tolist() == [missed] * 2
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
def test_a_replaced_environment_uses_what_was_kept_for_it(mode):
    envs = cartwheel.VectorEnv(
        [FailingEnv] * 2, autoreset_mode=mode, on_error="restart", executor="inline"
    )
    envs = Begun(envs)
    envs.reset(seed=1)
    envs.next_reset(seed=[50, 51])
    envs.step([3, 0])  # row 0 fails
    if mode == N:
        envs.step([0, 0])
    assert envs.begun[2:] == [(0, 50, None, False)]
    assert envs.unwrapped.np_random_seed[0] == 50
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
def test_rows_that_continue_from_states_have_no_seed_and_say_so(mode):
    inner = cartwheel.VectorEnv(
        [EndlessWalkEnv] * 2, executor="inline", autoreset_mode=mode, max_episode_steps=LENGTH
    )
    envs = RecordMetrics(Begun(inner))
    envs.reset(seed=7)
    states = envs.get_state([0])
    envs.next_reset(seed=[70, 71])
    envs.set_state([0], states)
    assert envs.env.begun[2:] == [(0, -1, None, True)]
    for _ in range(LENGTH + 1):
        envs.step(np.ones(2, int))
    ended = envs.finished()
    assert dict(zip(ended["env_index"].tolist(), ended["seed"].tolist(), strict=True))[0] == -1
    later = {row: seed for row, seed, *_ in envs.env.begun[3:]}
    assert later == {0: -1, 1: 71}
    envs.close()
