"""After errors, time-outs and restored states, wrappers that make several calls go on.

An adapter goes on as environments of the mode do.
"""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import cartwheel
from cartwheel.wrappers import (
    AtariPreprocessing,
    AutoresetAdapter,
    RecordEpisodeStatistics,
    RecordMetrics,
    TransformObservation,
)
from tests.support.comparison import assert_identical
from tests.support.environments import TranscriptEnv
from tests.support.gates import Gates
from tests.support.logged import RAISES, Logged, rows_of
from tests.support.stateful import WalkEnv
from tests.support.wrapping import MODES, D, N, S

ROWS = 4


def pair(env_fn, mode, **keywords):
    """Environments of the mode, and an adapter."""
    keywords = {"executor": "inline", **keywords}
    own = cartwheel.VectorEnv([env_fn] * ROWS, autoreset_mode=mode, **keywords)
    adapted = cartwheel.VectorEnv([env_fn] * ROWS, autoreset_mode=D, **keywords)
    return own, AutoresetAdapter(adapted, mode)


def attempt(call, envs):
    """The result or the exception of a call."""
    try:
        return call(envs)
    except (ValueError, TimeoutError, gym.error.ResetNeeded) as error:
        return error


def results(pair, call):
    """The result or the exception of a call of each of the two."""
    return [attempt(call, envs) for envs in pair]


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("seed", range(8))
def test_the_other_rows_of_one_that_raises_go_on_as_in_environments_of_the_mode(mode, seed):
    random, both, raised = np.random.default_rng(seed), pair(Logged, mode), 0
    results(both, lambda envs: envs.reset(seed=1))
    for _ in range(60):
        rows = None if random.random() < 0.6 else random.permutation(ROWS)[: random.integers(1, 5)]
        actions = np.zeros(ROWS if rows is None else len(rows), int)
        if random.random() < 0.2:
            actions[random.integers(len(actions))] = RAISES
        own, adapted = results(both, lambda envs, a=actions, r=rows: envs.step(a, r))
        if isinstance(own, Exception):
            assert type(adapted) is type(own)
            failed = (np.arange(ROWS) if rows is None else rows)[actions == RAISES]
            if isinstance(own, gym.error.ResetNeeded):  # of an earlier step
                failed = rows_of(own)
            raised += 1
            mask = np.isin(np.arange(ROWS), failed)
            own, adapted = results(both, lambda e, m=mask: e.reset(options={"reset_mask": m}))
            assert_identical(adapted[0], own[0], "the observations of the reset")
        else:
            assert_identical(adapted[:4], own[:4], "the results of the step")
    assert raised > 3


@pytest.mark.parametrize("mode", [N, S])
def test_restored_rows_that_are_over_are_reset_by_their_next_step(mode):
    source = cartwheel.VectorEnv(
        [WalkEnv] * ROWS, executor="inline", autoreset_mode=D, on_done="freeze"
    )
    source.reset(seed=3)
    for _ in range(30):
        over = np.logical_or(*source.step(np.zeros(ROWS, int))[2:4])
        if over.any() and not over.all():
            break
    assert over.any()
    assert not over.all()
    states = source.get_state()
    own, adapted = pair(WalkEnv, mode)
    around = RecordEpisodeStatistics(adapted)
    own.reset(seed=4), around.reset(seed=4)
    assert_identical(around.set_state(None, states)[0], own.set_state(None, states)[0], "states")
    for number in range(12):
        steps = own.step(np.zeros(ROWS, int)), around.step(np.zeros(ROWS, int))
        if number == 0:
            assert not steps[0][1][over].any()  # they were reset
        assert_identical(steps[1][:4], steps[0][:4], f"step {number}")
    source.close(), own.close(), around.close()


class SlowReset(TranscriptEnv):
    """Every reset without a seed waits at the gate 1."""

    def __init__(self, gates):
        super().__init__(2)
        self.gates = gates

    def reset(self, *, seed=None, options=None):
        del options
        if seed is None:
            self.gates.stand_at(1)
        return super().reset(seed=seed)


def wait(envs):
    return envs.step_wait(0)


@pytest.mark.parametrize("goes_on", [True, False], ids=["waits again", "resets"])
@pytest.mark.parametrize("mode", [N, S])
def test_a_step_whose_resets_time_out_goes_on_or_is_dropped(tmp_path, goes_on, mode):
    gates = Gates(tmp_path)
    adapted = AutoresetAdapter(
        cartwheel.VectorEnv(
            [lambda: SlowReset(gates)] * 2, executor="thread", num_workers=2, autoreset_mode=D
        ),
        mode,
    )
    envs = RecordEpisodeStatistics(adapted)
    envs.reset(seed=1)
    envs.step([1, 1])
    if mode == N:
        assert envs.step([1, 1])[2].all()  # the next step resets both
    envs.step_async([1, 1])
    while not gates.is_reached(1):  # the step, and then the resets
        assert isinstance(attempt(wait, envs), TimeoutError)
    assert isinstance(attempt(wait, envs), TimeoutError)
    gates.open(1)
    if goes_on:
        step = attempt(wait, envs)
        while isinstance(step, TimeoutError):
            step = attempt(wait, envs)
        assert step[2].all() == (mode == S)
        assert envs.episode_count == 2
    else:
        envs.reset(options={"reset_mask": np.array([True, False])})
        envs.step([1, 1])
        *_, terminations, _, infos = envs.step([1, 1])
        assert terminations.all()
        assert infos["episode"]["l"].tolist() == [2, 2]
    envs.close()


#: Frames of an episode of each row, of which a step takes four.
FRAMES = 1, 8, 8


class SlowFrames(gym.Env):
    """An image of the number of the frame. In row 1, a frame of the first episode waits."""

    observation_space = Box(0, 255, (4, 4, 3), np.uint8)
    action_space = Discrete(2)

    def __init__(self, row, gates, frame):
        self.row, self.gates, self.frame = row, gates, frame

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.t = 0
        return self.image(), {}

    def step(self, action):
        self.t += 1
        if self.gates is not None and self.row == 1 and self.t == self.frame:
            self.gates.stand_at(1)
        return self.image(), 1.0 + action, self.t == FRAMES[self.row], False, {}

    def image(self):
        return np.full((4, 4, 3), self.t, np.uint8)


#: Seconds after which a call has timed out. It may do so without a reason, too.
BRIEF_S = 0.3


def slow(executor, mode, gates, frame, wrap):
    """Environments that were reset, and whose calls are late soon."""
    keywords = {} if executor == "inline" else {"num_workers": 3, "timeout": BRIEF_S}
    if mode is D:
        keywords["on_done"] = "freeze"
    env_fns = [partial(SlowFrames, row, gates, frame) for row in range(3)]
    make = partial(cartwheel.VectorEnv, env_fns, executor=executor, autoreset_mode=mode)
    envs = RecordMetrics(wrap(patiently(partial(make, **keywords))))
    patiently(partial(envs.reset, seed=1))
    return envs


def skipping(envs):
    return AtariPreprocessing(envs, screen_size=2, grayscale_obs=False)


def patiently(call):
    """Makes a call until it is not late."""
    while True:
        late = attempt(lambda _: call(), None)
        if not isinstance(late, TimeoutError):
            return late


def until_done(step, envs, gates):
    """The result of a step, for which is waited again where it is late; and how often that was."""
    result, times = attempt(lambda _: step(), envs), 0
    while isinstance(result, TimeoutError):
        times += 1
        if gates.is_reached(1):
            gates.open(1)
        result = attempt(lambda envs: envs.step_wait(BRIEF_S), envs)
    return result, times


def reported(step):
    return (*step[:4], step[4]["episode"], step[4]["_episode"])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("executor", ["thread", "process"])
@pytest.mark.parametrize("frame", [1, 2])
def test_a_step_of_several_frames_that_times_out_goes_on(tmp_path, mode, executor, frame):
    """The second frame is one of some rows: row 0 is over."""
    gates = Gates(tmp_path)
    envs = slow(executor, mode, gates, frame, skipping)
    alone = slow("inline", mode, None, frame, skipping)
    waits = 0
    for number in range(5):
        actions = np.array([0, 1, number % 2])
        step, times = until_done(partial(envs.step, actions), envs, gates)
        expected = alone.step(actions)
        assert_identical(reported(step), reported(expected), f"step {number}")
        waits += times
        if mode is D:
            options = {"reset_mask": expected[2]}
            for each in (envs, alone):
                patiently(partial(each.reset, options=options))
    assert waits
    finished = envs.finished()
    assert_identical(finished, alone.finished())
    assert set(finished["env_index"].tolist()) == {0, 1, 2}
    envs.close(), alone.close()


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("frame", [1, 2])
def test_a_step_of_several_frames_that_a_reset_drops_is_not_reported(tmp_path, mode, frame):
    gates = Gates(tmp_path)
    envs = slow("thread", mode, gates, frame, skipping)
    actions = np.zeros(3, np.int64)
    late = attempt(lambda envs: envs.step(actions), envs)
    while not gates.is_reached(1):  # it was late before
        late = attempt(lambda envs: envs.step_wait(BRIEF_S), envs)
    assert isinstance(late, TimeoutError)
    with pytest.raises(gym.error.AlreadyPendingCallError):
        envs.step(actions)
    gates.open(1)
    mask = np.array([False, False, True])
    patiently(lambda: envs.reset(options={"reset_mask": mask}))
    for _ in range(8):
        until_done(partial(envs.step, actions), envs, gates)
    finished = envs.finished()
    frames = np.array(FRAMES)[finished["env_index"]]
    assert finished["return"].tolist() == frames.tolist()
    assert finished["episode_len"].tolist() == np.ceil(frames / 4).tolist()
    assert set(finished["env_index"].tolist()) == {0, 1, 2}
    envs.close()


@pytest.mark.parametrize("mode", [N, S])
@pytest.mark.parametrize("executor", ["thread", "process"])
@pytest.mark.parametrize("rows", [None, [2, 1]])
def test_a_step_of_some_rows_that_times_out_goes_on(tmp_path, mode, executor, rows):
    """Without row numbers it is one in ``NEXT_STEP``, where row 0 is only reset."""
    gates, wrap = Gates(tmp_path), partial(AutoresetAdapter, autoreset_mode=mode)
    envs, alone = (slow(*kind, 2, wrap) for kind in ((executor, D, gates), ("inline", D, None)))
    waits = 0
    for number in range(12):
        index = None if number == 0 else rows
        actions = np.full(3 if index is None else 2, number % 2)
        step, times = until_done(partial(envs.step, actions, index), envs, gates)
        assert_identical(reported(step), reported(alone.step(actions, index)), f"step {number}")
        waits += times
    assert waits
    assert_identical(envs.finished(), alone.finished())
    envs.close(), alone.close()


@pytest.mark.parametrize("mode", [N, S])
def test_a_wrapper_inside_that_raises_leaves_no_row_over(mode):
    """The step happened: rows that ended in it begin their next episodes."""
    fails = []

    def func(observations):
        if fails:
            raise ValueError(fails.pop())
        return observations

    inner = cartwheel.VectorEnv([lambda: TranscriptEnv(2)] * 2, executor="inline", autoreset_mode=D)
    envs = AutoresetAdapter(TransformObservation(inner, func), mode)
    envs.reset(seed=1)
    envs.step([1, 1])
    fails.append("once")
    with pytest.raises(ValueError, match="once"):
        envs.step([1, 1])
    for _ in range(4):
        envs.step([1, 1])
    envs.close()
