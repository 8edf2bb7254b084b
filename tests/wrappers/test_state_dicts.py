"""Wrappers and environments that load a state continue as the saved ones did."""

import pickle
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from gymnasium.wrappers import FrameStackObservation, TimeAwareObservation
from gymnasium.wrappers.vector import RescaleObservation as GymnasiumRescaling

from cartwheel import envpool
from cartwheel import wrappers as W
from cartwheel.wrappers.base import VectorWrapper
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.executors import INLINE, NATIVE, THREAD, Executor
from tests.support.repetitions import in_turn
from tests.support.stateful import PlainWalkEnv, WalkEnv, walk
from tests.support.wrapping import MODES, D, S

TWO = Executor("process", {"num_workers": 2})


def wrapped_walk():
    return FrameStackObservation(TimeAwareObservation(gym.make("CartPole-v1", 9)), 2)


class Pool:
    """Makes pools of ``cartwheel.envpool`` as executors make vector environments."""

    def __call__(self, cases, *, autoreset_mode):
        (case,) = set(cases)
        return envpool.make(
            case.env_id, num_envs=len(cases), autoreset_mode=autoreset_mode, **case.keywords
        )

    def __str__(self):
        return "EnvPool"


#: Environments with their keywords, and the executors that continue them.
KINDS = {
    "Python": (walk, {}, (INLINE, THREAD, TWO)),
    "pickled": (partial(walk, PlainWalkEnv), {"states": "pickle"}, (INLINE, THREAD, TWO)),
    "gym.make": (wrapped_walk, {"states": "pickle"}, (INLINE, TWO)),
    "classic": (Case("CartPole-v1", {"max_episode_steps": 9}), {}, (NATIVE,)),
    "MuJoCo": (Case("InvertedPendulum-v5", {"max_episode_steps": 9}), {}, (NATIVE,)),
    "EnvPool": (Case("CartPole-v1", {"max_episode_steps": 9}), {}, (Pool(),)),
}


def usual(envs):
    """The wrappers of most training programs."""
    return W.NormalizeReward(W.NormalizeObservation(W.RecordEpisodeStatistics(envs)))


WRAPPERS = {
    "none": lambda envs: envs,
    "usual": usual,
    "metrics": lambda envs: W.RecordMetrics(W.FrameStack(envs, 3)),
    "sent actions": lambda envs: W.StickyAction(W.DelayAction(envs, 1), 0.5, seed=1),
    "transforms": lambda envs: W.ClipReward(W.DtypeObservation(envs, np.float32), -1, 1),
}


def cases():
    number = 0
    for kind, (_, _, executors) in KINDS.items():
        for wrapper in WRAPPERS:
            pairs = [(mode, executor) for mode in MODES for executor in executors]
            for (mode, executor), marks in in_turn(pairs, number):
                name = f"{kind}-{wrapper}-{mode.name}-{executor}"
                yield pytest.param(kind, wrapper, mode, executor, id=name, marks=marks)
            number += 4


def play(envs, actions):
    """The results of steps, without durations; in ``DISABLED``, rows that are over are reset."""
    results = []
    for action in actions:
        results.append(envs.step(action))
        over = results[-1][2] | results[-1][3]
        for infos in (results[-1][4], results[-1][4].get("final_info", {})):
            infos.get("episode", {}).pop("t", None)
        if envs.metadata["autoreset_mode"] == D and over.any():
            results.append(envs.reset(options={"reset_mask": over}))
    return results


def actions_of(envs, steps):
    space = envs.single_action_space
    if isinstance(space, gym.spaces.Discrete):
        return np.random.default_rng(3).integers(space.n, size=(steps, 3))
    return np.random.default_rng(3).uniform(-1, 1, (steps, 3, *space.shape)).astype(np.float32)


@pytest.mark.parametrize(("kind", "wrapper", "mode", "executor"), list(cases()))
def test_fresh_and_used_ones_continue_as_the_saved_ones(kind, wrapper, mode, executor):
    env_fn, keywords, executors = KINDS[kind]
    wrap = WRAPPERS[wrapper]
    envs = wrap(executors[0]([env_fn] * 3, autoreset_mode=mode, **keywords))
    envs.reset(seed=7)
    actions = actions_of(envs, 30)
    last = play(envs, actions[:8])[-1][0]
    saved = envs.state_dict()
    packed = pickle.dumps(saved)
    state = pickle.loads(packed)
    expected = play(envs, actions[8:])
    assert pickle.dumps(saved) == packed
    others = wrap(executor([env_fn] * 3, autoreset_mode=mode, **keywords))
    for _ in range(2):
        shown = others.load_state_dict(state)
        if mode != D:  # rows that were over were reset, so the last batch has not all rows
            assert_identical(shown, last)
        assert_identical(play(others, actions[8:]), expected)
    envs.close()
    others.close()


def test_a_state_without_environments_has_numbers_of_all_rows_and_fits_any_number():
    envs, others = usual(INLINE([walk] * 4)), usual(INLINE([walk] * 2))
    envs.reset(seed=1)
    play(envs, np.random.default_rng(1).integers(3, size=(30, 4)))
    others.reset(seed=2)
    shown = others.step(np.zeros(2, int))[0]
    state = pickle.loads(pickle.dumps(envs.state_dict(envs=False)))
    before = others.state_dict()
    assert others.load_state_dict(state) is None
    assert_identical(others.state_dict(envs=False)["wrappers"], state["wrappers"])
    after = others.state_dict()
    assert after["envs"] == before["envs"]
    for old, new in zip(before["wrappers"], after["wrappers"], strict=True):
        assert_identical(new["rows"], old["rows"])
    assert others.env.obs_rms.count == envs.env.obs_rms.count > 30
    assert others.env.env.episode_count == envs.env.env.episode_count > 0
    again, _ = others.reset(options={"reset_mask": np.array([True, False])})
    assert_identical(again[1], shown[1])
    for each in (envs, others):
        each.close()


class Smoothed(VectorWrapper):
    """A wrapper of one's own, with numbers of each row and of all."""

    row_entries = ("last",)

    def __init__(self, envs, *, refuses=False):
        super().__init__(envs)
        self.last, self.calls, self.refuses = np.zeros(self.num_envs), 0, refuses

    def transform(self, batch):
        if batch.rewards is not None:
            self.calls += 1
            self.last = self.last + batch.rewards
            batch.rewards = self.last / self.calls

    def get_own_state(self):
        return {"last": self.last.copy(), "calls": self.calls}

    def set_own_state(self, state):
        self.last, self.calls = state["last"].copy(), state["calls"]
        if self.refuses:
            self.refuses = False
            raise OSError("refused, after it was changed")


def test_the_state_of_a_wrapper_of_ones_own_is_saved_and_put_back():
    def wrap(**keywords):
        return Smoothed(W.NormalizeReward(INLINE([walk] * 3)), **keywords)

    envs = wrap()
    envs.reset(seed=1)
    actions = np.random.default_rng(1).integers(3, size=(20, 3))
    play(envs, actions[:5])
    state = envs.state_dict()
    assert [entry["class"].rpartition(".")[2] for entry in state["wrappers"]] == [
        "NormalizeReward",
        "Smoothed",
    ]
    expected = play(envs, actions[5:])
    others = wrap(refuses=True)
    others.reset(seed=9)
    before = others.state_dict()
    with pytest.raises(OSError, match="refused, after it was changed"):
        others.load_state_dict(state)
    assert_identical(others.state_dict(), before)
    others.load_state_dict(state)
    assert_identical(play(others, actions[5:]), expected)
    others.load_state_dict(envs.state_dict(envs=False))
    assert others.calls == envs.calls
    assert not np.array_equal(others.last, np.zeros(3)), "numbers of rows stay"
    for each in (envs, others):
        each.close()


class Forgetful(VectorWrapper):
    def get_own_state(self):
        return {"calls": 1}


class Listing(VectorWrapper):
    def get_own_state(self):
        return [1]

    def set_own_state(self, state):
        pass


def test_a_wrapper_with_one_of_the_two_methods_or_no_dictionary_is_refused():
    envs = Forgetful(INLINE([walk] * 2))
    envs.reset(seed=1)
    with pytest.raises(ValueError, match=r"Forgetful has no `set_own_state`.*\['calls'\]"):
        envs.load_state_dict(envs.state_dict())
    with pytest.raises(TypeError, match=r"`get_own_state` of .*Listing must return a dictionary"):
        Listing(envs).state_dict()
    envs.close()


class Touchy(WalkEnv):
    def set_state(self, _):
        raise ValueError("this environment refuses")


def timeless(envs):
    return W.NormalizeReward(W.NormalizeObservation(W.RecordMetrics(envs)))


def test_what_does_not_fit_changes_nothing():
    envs = timeless(INLINE([walk] * 2))
    envs.reset(seed=1)
    play(envs, np.zeros((4, 2), int))
    state = envs.state_dict()
    for wrap, words in [
        (lambda envs: W.NormalizeObservation(envs), r"cannot be loaded with the wrappers \["),
        (
            lambda envs: W.NormalizeReward(W.RecordMetrics(W.NormalizeObservation(envs))),
            r"RecordMetrics', '.*NormalizeReward'\], from the innermost on; it cannot "
            r".* difference: \S*RecordMetrics in the state, \S*NormalizeObservation here",
        ),
        (lambda envs: envs, r"cannot be loaded with the wrappers \[\]"),
    ]:
        others = wrap(INLINE([walk] * 2))
        with pytest.raises(ValueError, match=words):
            others.load_state_dict(state)
        others.close()
    others = timeless(INLINE([walk] * 3))
    with pytest.raises(ValueError, match=r"saved with num_envs=2; .* num_envs=3"):
        others.load_state_dict(state)
    others.close()
    touchy = timeless(INLINE([Touchy] * 2))
    touchy.reset(seed=1)
    before = touchy.state_dict(envs=False)
    state["envs"] = touchy.state_dict()["envs"]
    with pytest.raises(ValueError, match="this environment refuses"):
        touchy.load_state_dict(state)
    assert_identical(touchy.state_dict(envs=False), before)
    before = envs.state_dict()
    for path, value, words in [
        (["wrappers", 1, "state", "mean"], np.zeros(3), r"NormalizeObservation: .*'mean'.* \(3,\)"),
        (["wrappers", 1, "state"], 3, "must be a dictionary"),
        (["wrappers", 0, "rows"], None, "rows.* must be a dictionary, got None"),
        (["wrappers", 1, "rows"], {}, "rows.* must be None"),
        (["wrappers", 0, "rows", "kinds"], np.full(2, 9, np.uint8), "from 0 to 7"),
        (["wrappers", 0, "rows", "unseen", "begun"], np.zeros(2), "'begun'.* must be an array"),
    ]:
        bad = pickle.loads(pickle.dumps(before))
        part = bad
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = value
        with pytest.raises(ValueError, match=words):
            envs.load_state_dict(bad)
        assert_identical(envs.state_dict(), before)
    for each in (envs, touchy):
        each.close()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: W.FrameStack(SyncVectorEnv([walk] * 2), 2), "SyncVectorEnv"),
        (lambda: W.FrameStack(AsyncVectorEnv([walk] * 2), 2), "AsyncVectorEnv"),
        (
            lambda: W.RecordEpisodeStatistics(
                GymnasiumRescaling(NATIVE([Case("Pendulum-v1")] * 2), np.float32(-1), np.float32(1))
            ),
            "RescaleObservation",
        ),
    ],
)
def test_vector_environments_and_wrappers_without_states_are_named(make, name):
    envs = make()
    for call in (envs.state_dict, lambda: envs.load_state_dict({})):
        with pytest.raises(TypeError, match=rf"gymnasium\..*\.{name} has no state"):
            call()
    envs.close()


@pytest.mark.parametrize("executor", [INLINE, TWO, NATIVE], ids=str)
def test_details_of_next_resets_reach_the_wrappers_after_a_load(executor):
    env_fn = Case("CartPole-v1", {"max_episode_steps": 5}) if executor is NATIVE else walk
    envs, others = (W.RecordMetrics(executor([env_fn] * 2, autoreset_mode=S)) for _ in range(2))
    envs.reset(seed=1)
    envs.next_reset(seed=[60, 70])
    others.load_state_dict(envs.state_dict())
    for each in (envs, others):
        play(each, np.zeros((30, 2), int))
    finished = others.finished()
    assert {60, 70} <= set(finished["seed"].tolist())
    assert_identical(finished, envs.finished())
    for each in (envs, others):
        each.close()
