"""A stack of wrappers in one pass shows the bits that its wrappers show one after the other.

This file is above 500 lines because all stacks and settings share one comparison.
"""

import gc
import sys
import weakref

import numpy as np
import pytest
from gymnasium import Env
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.wrappers import vector as gymnasium_wrappers

from cartwheel import wrappers as W
from cartwheel.wrappers.batch import TRANSITION
from tests.support.comparison import assert_identical
from tests.support.wrapping import MODES, D, N, S, build

ROWS = 9


class StepCost(W.VectorWrapper):
    """A wrapper of one's own."""

    def transform(self, batch):
        if batch.rewards is not None:
            batch.rewards = batch.rewards - 0.25 * (batch.kinds == TRANSITION)


class Ends(W.VectorWrapper):
    """Changes flags and infos, of which wrappers outside hear."""

    def transform(self, batch):
        if batch.rewards is not None:
            batch.truncations = batch.truncations & ~batch.terminations
            batch.infos = {**batch.infos, "cost": np.ones(len(batch.kinds))}


#: Numbers that are not like most.
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38, 1 / 3], np.float32)
#: Observations in other forms, or other ones.
FORMS = [
    lambda found: found,
    lambda found: np.resize(SPECIAL, found.shape),
    np.asfortranarray,
    lambda found: np.repeat(found, 2, axis=0)[::2],
    lambda found: found.astype(">f4"),
    lambda found: found.astype(np.float64),
    lambda found: np.frombuffer(b" " + found.tobytes(), np.float32, offset=1).reshape(found.shape),
    lambda found: np.ma.masked_less(found, 0),
]


class Forms(W.VectorWrapper):
    """Shows observations in another form in every step."""

    count = 0

    def transform(self, batch):
        self.count += 1
        batch.observations = FORMS[self.count % len(FORMS)](batch.observations)


def usual(rewards):
    """Returns the rewards of most tests."""
    return rewards * 2 - 1


class Failing:
    """A function that fails when it is told to: with any batch, or with one of some rows."""

    def __init__(self):
        self.fails = self.fails_with_some = False
        self.returns = usual

    def __call__(self, batch):
        if self.fails or (self.fails_with_some and len(batch) < ROWS):
            raise ValueError("chosen to fail")
        return self.returns(batch)


class Seen(W.VectorWrapper):
    """Looks at final observations, changes them, and adds infos."""

    def transform(self, batch):
        finals = batch.finals(self.env.single_observation_space)
        if finals is not None:
            seen = np.zeros(len(batch.kinds), np.int64)
            seen[finals.places] = 1 + len(batch.infos)
            batch.infos = {**batch.infos, "seen": seen}
            finals.observations = finals.observations + np.float32(1)


class Replacing(W.VectorWrapper):
    """Drops the infos that it gets."""

    def transform(self, batch):
        if batch.rewards is not None:
            batch.infos = {"places": np.arange(len(batch.kinds))}


class Parts(W.VectorWrapper):
    """Makes dictionaries of observations."""

    def __init__(self, envs):
        super().__init__(envs)
        self._before = envs.single_observation_space
        self._set_observation_space(Dict(all=self._before, one=Box(-np.inf, np.inf, (1,))))

    def transform(self, batch):
        finals = batch.finals(self._before)
        batch.observations = self.parts(batch.observations)
        if finals is not None:
            finals.observations = self.parts(finals.observations)
            finals.space = self.single_observation_space

    @staticmethod
    def parts(observations):
        return {"all": observations, "one": observations[:, :1].copy()}


STACKS = {
    "numbers": lambda envs, _: W.ClipReward(
        W.NormalizeReward(W.NormalizeObservation(W.RecordEpisodeStatistics(envs))), -10, 10
    ),
    "functions": lambda envs, func: W.FrameStack(
        W.TransformObservation(
            W.TransformReward(W.RecordMetrics(envs), func), lambda found: found * np.float32(2)
        ),
        3,
    ),
    "own": lambda envs, _: W.NormalizeReward(
        W.RecordMetrics(W.RecordEpisodeStatistics(StepCost(envs)), stats_key="metrics"), clip=0.5
    ),
    "around one's own": lambda envs, func: W.RecordEpisodeStatistics(
        W.TransformReward(Ends(W.NormalizeReward(W.VectorWrapper(envs))), func)
    ),
    "limits": lambda envs, _: W.ClipReward(
        W.NormalizeObservation(
            W.FlattenObservation(W.DtypeObservation(envs, np.float64)), clip=0.5
        ),
        0.25,
    ),
    "flat": lambda envs, _: W.FlattenObservation(Forms(envs)),
    "wide": lambda envs, _: W.DtypeObservation(Forms(envs), np.float64),
    "observations": lambda envs, func: W.FrameStack(
        W.NormalizeObservation(W.TransformObservation(W.FrameStack(envs, 2), func)), 3
    ),
    "finals": lambda envs, _: W.RecordMetrics(
        W.NormalizeObservation(Seen(W.FrameStack(Seen(envs), 2))), stats_key="metrics"
    ),
    "replaced": lambda envs, _: W.RecordEpisodeStatistics(
        W.FrameStack(Replacing(W.NormalizeObservation(envs)), 2)
    ),
    "parts": lambda envs, func: W.TransformObservation(
        Parts(W.TransformObservation(W.NormalizeObservation(envs), func)),
        lambda parts: {"one": parts["one"] * 2, "all": parts["all"]},
    ),
    "shapes": lambda envs, _: W.FlattenObservation(W.DtypeObservation(envs, np.float64)),
}


def without_times(value):
    """A result or a state without seconds."""
    if isinstance(value, dict):
        times = ("t", "seconds", "time_queue")
        return {key: without_times(part) for key, part in value.items() if key not in times}
    return tuple(map(without_times, value)) if isinstance(value, tuple) else value


def outcome(call, *arguments, **keywords):
    """Returns what a call returns, or the text of its error."""
    try:
        return without_times(call(*arguments, **keywords))
    except (TypeError, ValueError) as error:
        return str(error)


def states(envs):
    """The states of all wrappers."""
    found = []
    while isinstance(envs, W.VectorWrapper):
        found.append(without_times(envs.get_own_state()))
        envs = envs.env
    return found


class Pair:
    """A stack in one pass, and one whose wrappers transform one after the other."""

    def __init__(self, kind, mode, stack, rows=ROWS, environment="pole", **keywords):
        self.funcs = Failing(), Failing()
        if kind != "native":
            keywords["states"] = "pickle"
        envs = [build(kind, environment, mode, rows, **keywords) for _ in self.funcs]
        self.envs = [stack(*each) for each in zip(envs, self.funcs, strict=True)]
        self.envs[1]._source.fused = lambda _: None  # the pass that is compared

    def call(self, name, *arguments, **keywords):
        """Calls both, and compares what they return or raise."""
        results = [outcome(getattr(envs, name), *arguments, **keywords) for envs in self.envs]
        assert_identical(*results, name)
        return results[0]

    def close(self):
        for envs in self.envs:
            envs.close()


#: Modes, and keywords of environments.
SETTINGS = [*((mode, {}) for mode in MODES), (S, {"final_obs": "dense"})]


@pytest.mark.parametrize(("mode", "keywords"), SETTINGS)
@pytest.mark.parametrize("kind", ["native", "inline", "process"])
@pytest.mark.parametrize("stack", STACKS)
def test_whatever_happens_the_bits_are_those_of_wrappers_one_after_the_other(
    kind, mode, keywords, stack
):
    pair = Pair(kind, mode, STACKS[stack], **keywords)
    random = np.random.default_rng(len(stack))
    pair.call("reset", seed=3)
    assert pair.envs[0]._planned()
    assert not pair.envs[1]._planned()
    over = np.zeros(ROWS, np.bool_)
    saved = None
    for _ in range(120):
        event = random.choice(
            [
                *("rows", "mask", "fail", "fail with some", "frozen", "state", "rollout", "async"),
                *["step"] * 12,
            ]
        )
        actions = random.integers(0, 2, ROWS)
        if mode == D and over.any():
            pair.call("reset", options={"reset_mask": over})
            over[:] = False
        if event in ("rows", "mask"):  # which rollouts refuse
            for envs in pair.envs:
                envs.end_rollout()
        if event == "rows":
            rows = np.sort(random.choice(ROWS, 4, replace=False))
            *_, terminations, truncations, _ = pair.call("step", actions[rows], rows)
            over[rows] = terminations | truncations
            continue
        if event == "mask":
            pair.call(
                "reset", options={"reset_mask": random.random(ROWS) < 0.3}, seed=[*range(ROWS)]
            )
        if event == "rollout":
            for envs in pair.envs:
                envs.rollout(3)
        if event == "state" and saved is None:
            saved = [envs.state_dict() for envs in pair.envs]
        elif event == "state":
            for envs, state in zip(pair.envs, saved, strict=True):
                envs.load_state_dict(state)
            over[:] = False
            pair.call("reset", options={"reset_mask": np.arange(ROWS) < 4})
            if mode == D:
                pair.call("reset")
        for func in pair.funcs:
            func.fails, func.fails_with_some = event == "fail", event == "fail with some"
        if event == "async":
            pair.call("step_async", actions)
            step = pair.call("step_wait")
        elif event == "frozen":
            with pair.envs[0].frozen(), pair.envs[1].frozen():
                step = pair.call("step", actions)
        else:
            step = pair.call("step", actions)
        for func in pair.funcs:
            func.fails = func.fails_with_some = False
        if isinstance(step, str):
            over[:] = False
            if mode == D:
                pair.call("reset")
        else:
            over = step[2] | step[3]
    assert_identical(*map(states, pair.envs))
    pair.close()


@pytest.mark.parametrize("rows", [63, 64, 130])
@pytest.mark.parametrize("stack", STACKS)
def test_many_rows_have_the_bits_of_wrappers_one_after_the_other(stack, rows):
    pair, random = Pair("native", N, STACKS[stack], rows), np.random.default_rng(rows)
    pair.call("reset", seed=3)
    for _ in range(40):
        pair.call("step", random.integers(0, 2, rows))
    assert_identical(*map(states, pair.envs))
    pair.close()


@pytest.mark.parametrize("final_obs", ["object", "dense"])
@pytest.mark.parametrize(("rows", "environment"), [(1, "one step"), (1, "pole"), (70, "one step")])
@pytest.mark.parametrize("stack", STACKS)
def test_one_row_and_ends_of_all_rows_have_the_bits_of_wrappers_one_after_the_other(
    stack, rows, environment, final_obs
):
    pair = Pair("native", S, STACKS[stack], rows, environment, final_obs=final_obs)
    random = np.random.default_rng(rows)
    pair.call("reset", seed=3)
    for _ in range(12):
        pair.call("step", random.integers(0, 2, rows))
    assert_identical(*map(states, pair.envs))
    pair.close()


class Loose(Env):
    """Returns observations in forms that its space does not have, infos, and errors."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Discrete(2)
    forms = (np.asarray, np.ndarray.tolist, np.float64, lambda found: np.repeat(found, 2)[::2])

    def reset(self, **_):
        self.count = 0
        return np.zeros(2, np.float32), {"begins": True}

    def step(self, action):
        self.count += 1
        if action and self.count % 5 == 2:
            raise ValueError("chosen to fail")
        found = np.array([self.count, action], np.float32)
        infos = {"success": bool(action), "count": self.count}
        return self.forms[self.count % 4](found), 1.0, bool(action), self.count > 4, infos


@pytest.mark.parametrize(("mode", "keywords"), SETTINGS)
@pytest.mark.parametrize("stack", STACKS)
def test_infos_and_failures_leave_the_bits_of_wrappers_one_after_the_other(stack, mode, keywords):
    pair = Pair("inline", mode, STACKS[stack], 5, Loose, on_error="restart", **keywords)
    random = np.random.default_rng(len(stack))
    pair.call("reset", seed=3)
    for _ in range(40):
        step = pair.call("step", (random.random(5) < 0.3).astype(np.int64))
        if mode == D and (step[2] | step[3]).any():
            pair.call("reset", options={"reset_mask": step[2] | step[3]})
    assert_identical(*map(states, pair.envs))
    pair.close()


#: What a function may return, and what it may not.
RESULTS = {
    "its argument": lambda rewards: rewards,
    "numbers of 32 bits": lambda rewards: rewards.astype(np.float32) / 3,
    "integers": lambda rewards: (rewards * 3).astype(np.int64),
    "flags": lambda rewards: rewards > 0,
    "every second number": lambda rewards: np.repeat(rewards, 2)[::2] * 0.3,
    "the other byte order": lambda rewards: (rewards * 0.7).astype(">f8"),
    "an array that is not aligned": lambda rewards: np.frombuffer(
        b" " + (rewards * 0.7).tobytes(), offset=1
    ),
    "a list": lambda rewards: (rewards * 2).tolist(),
    "another class of arrays": lambda rewards: np.ma.masked_less(rewards * 5, -1),
    "one number": lambda rewards: rewards.sum(),
    "too many numbers": lambda rewards: np.concatenate([rewards, [1.0]]),
    "a column": lambda rewards: rewards[:, None],
    "texts": lambda rewards: rewards.astype(str),
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("result", RESULTS)
def test_a_function_of_rewards_may_return_something_else_at_any_time(result, mode):
    """Converts it if it fits, and otherwise raises the error of a wrapper's ``transform``."""
    pair = Pair("native", mode, lambda envs, func: W.RecordMetrics(W.TransformReward(envs, func)))
    random = np.random.default_rng(1)
    pair.call("reset", seed=1)
    refused = set()
    for number in range(40):
        for func in pair.funcs:
            func.returns = RESULTS[result] if number % 5 == 3 else usual
        step = pair.call("step", random.integers(0, 2, ROWS))
        refused.add(isinstance(step, str))
        if mode == D:
            pair.call("reset", options={"reset_mask": np.ones(ROWS, np.bool_)})
    assert refused == ({False} if list(RESULTS).index(result) < 9 else {False, True})
    assert_identical(*map(states, pair.envs))
    pair.close()


def test_rewards_that_a_function_has_seen_do_not_change():
    seen = []

    def keep(rewards):
        seen.append((rewards, rewards.copy()))
        return rewards

    inner = W.NormalizeReward(build("native", "pole", N, ROWS))
    envs = W.ClipReward(W.TransformReward(W.ClipReward(inner, -2, 2), keep), 0.25, 0.5)
    envs = W.NormalizeReward(W.ClipReward(envs, -0.25, 0.25))
    random = np.random.default_rng(5)
    envs.reset(seed=1)
    shown = []
    for _ in range(60):
        rewards = envs.step(random.integers(0, 2, ROWS))[1]
        shown.append((rewards, rewards.copy()))
    assert {len(rewards) == ROWS for rewards, _ in seen} == {False, True}
    for now, then in [*seen, *shown]:
        assert_identical(now, then)
    envs.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of NumPy, about setting a dtype
@pytest.mark.parametrize("dtype", [np.uint8, "V24"])
def test_a_function_may_change_the_form_of_rewards_that_another_one_returned(dtype):
    kept = []

    def keep(rewards):
        kept.append(rewards * 2)
        return kept[-1]

    def change(observations):
        if len(kept[-1]) == ROWS:  # those of a step
            kept[-1].dtype = dtype
        return observations

    inner = W.RecordEpisodeStatistics(W.TransformReward(build("native", "pole", D, ROWS), keep))
    envs = W.RecordMetrics(W.TransformObservation(inner, change), stats_key="metrics")
    envs.reset(seed=1)
    infos = envs.step(np.zeros(ROWS, np.int64))[4]
    assert infos["metrics"]["return"].tolist() == [2.0] * ROWS
    assert kept[-1].dtype == dtype
    envs.close()


@pytest.mark.parametrize(("mode", "keywords"), SETTINGS)
@pytest.mark.parametrize("stack", ["numbers", "functions", "shapes"])
def test_a_plain_batch_passes_no_method_in_python_that_has_a_native_operation(
    stack, mode, keywords
):
    limit = {"max_episode_steps": 500} if mode == D else {}
    envs = STACKS[stack](build("native", "pole", mode, ROWS, **keywords, **limit), Failing())
    envs.reset(seed=1)
    actions, names = np.zeros(ROWS, np.int64), set()
    envs.step(actions)  # finds out what the wrappers do

    def note(frame, event, _):
        if event == "call":
            names.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        for _ in range(30 if mode != D else 5):
            envs.step(actions)
    finally:
        sys.setprofile(None)
    assert "transform" not in names
    assert stack == "functions" or names == {"step"}
    envs.close()


def test_a_wrapper_that_does_nothing_returns_what_the_environments_do():
    envs = W.VectorWrapper(W.VectorWrapper(build("native", "pole", N, ROWS)))
    envs.reset(seed=1)
    returned = []

    def step(actions):
        returned.append(type(envs.unwrapped).step(envs.unwrapped, actions))
        return returned[-1]

    envs.unwrapped.step = step
    assert envs.step(np.zeros(ROWS, np.int64)) is returned[0]
    envs.close()


def test_a_change_of_a_wrapper_is_seen_by_the_wrappers_around_it():
    inner = W.ClipReward(build("native", "pole", N, ROWS), -1, 0.5)
    envs = W.VectorWrapper(inner)
    envs.reset(seed=1)
    actions = np.zeros(ROWS, np.int64)
    assert envs.step(actions)[1].tolist() == [0.5] * ROWS
    inner.func = lambda rewards: rewards * 3
    assert envs.step(actions)[1].tolist() == [3.0] * ROWS
    envs.transform = lambda batch: setattr(batch, "rewards", batch.rewards + 1)
    assert envs.step(actions)[1].tolist() == [4.0] * ROWS
    inner.transform = lambda batch: setattr(batch, "rewards", batch.rewards * 0)
    for env_index in (None, None, [1, 2]):
        rewards = envs.step(actions[env_index] if env_index else actions, env_index)[1]
        assert set(rewards.tolist()) == {1.0}
    envs.transform = lambda batch: setattr(batch, "observations", None)
    with pytest.raises(TypeError, match="of VectorWrapper set `batch"):
        envs.step(actions)
    envs.close()


def test_a_wrapper_that_counts_steps_leaves_the_pass_as_it_is(monkeypatch):
    class Counting(W.VectorWrapper):
        steps = 0

        def transform(self, batch):
            self.steps += batch.rewards is not None
            self.last_kinds = batch.kinds

    plans = []
    planned = W.ClipReward._planned
    monkeypatch.setattr(W.ClipReward, "_planned", lambda envs: plans.append(0) or planned(envs))
    envs = W.ClipReward(Counting(build("native", "pole", N, ROWS)), -1, 1)
    envs.reset(seed=1)
    for _ in range(20):
        envs.step(np.zeros(ROWS, np.int64))
    assert envs.steps == 20
    assert len(plans) == 1
    envs.close()


def test_a_stack_ends_with_its_last_reference():
    for stack in STACKS.values():
        envs = stack(build("native", "pole", N, ROWS), Failing())
        envs.reset(seed=1)
        envs.step(np.zeros(ROWS, np.int64))
        gc.collect()
        gc.disable()
        try:
            ends = weakref.ref(envs.unwrapped)
            del envs
            assert ends() is None
        finally:
            gc.enable()


def test_four_wrappers_show_what_gymnasium_s_show():
    ours = W.RecordEpisodeStatistics(
        W.DtypeObservation(
            W.ClipReward(W.TransformReward(build("native", "pole", D, 5), np.sqrt), 0, 0.75),
            np.float64,
        )
    )
    theirs = gymnasium_wrappers.RecordEpisodeStatistics(
        gymnasium_wrappers.DtypeObservation(
            gymnasium_wrappers.ClipReward(
                gymnasium_wrappers.TransformReward(build("inline", "pole", D, 5), np.sqrt), 0, 0.75
            ),
            np.float64,
        )
    )
    random = np.random.default_rng(0)
    both = ours, theirs
    assert_identical(*(envs.reset(seed=2)[0] for envs in both))
    for _ in range(60):
        actions = random.integers(0, 2, 5)
        steps = [envs.step(actions) for envs in both]
        assert_identical(steps[0][:4], steps[1][:4])
        assert ("episode" in steps[0][4]) == ("episode" in steps[1][4])
        if "episode" in steps[0][4]:
            for key in ("r", "l"):
                assert steps[0][4]["episode"][key].tolist() == steps[1][4]["episode"][key].tolist()
            over = steps[0][2] | steps[0][3]
            assert_identical(*(envs.reset(options={"reset_mask": over.copy()})[0] for envs in both))
    for envs in both:
        envs.close()


@pytest.mark.parametrize("environment", ["one step", "pole"])
@pytest.mark.parametrize("rows", [1, 7])
def test_steps_that_end_episodes_show_what_gymnasium_s_wrappers_show(rows, environment):
    def stack(kind, wrappers):
        envs = build(kind, environment, S, rows)
        return wrappers.RecordEpisodeStatistics(
            wrappers.ClipReward(wrappers.TransformReward(envs, np.sqrt), 0, 0.75)
        )

    both = stack("native", W), stack("sync", gymnasium_wrappers)
    random = np.random.default_rng(rows)
    assert_identical(*(envs.reset(seed=2) for envs in both))
    for _ in range(40):
        actions = random.integers(0, 2, rows)
        ours, theirs = (without_times(envs.step(actions)) for envs in both)
        episode, expected = (step[4].pop("episode", {}) for step in (ours, theirs))
        assert_identical(ours, theirs)
        assert {key: value.tolist() for key, value in episode.items()} == {
            key: value.tolist() for key, value in expected.items()
        }
    for envs in both:
        envs.close()
