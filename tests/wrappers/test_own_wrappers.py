"""A wrapper of one's own: what `act` and `transform` are told, in every way to step."""

import gymnasium as gym
import numpy as np
import pytest

from cartwheel.wrappers import AutoresetAdapter, ClipReward, FrameStack, VectorWrapper
from cartwheel.wrappers.batch import FAILED, INCOMPLETE, RESET, SHOWN, TRANSITION
from tests.support.wrapping import Builds, D, N, S, Script, build, drive, settings_of

#: The rows of `build`.
ROWS = 3
SCRIPT = Script(steps=25, resets={(1, 3): 50, (0, 3): 51, (2, 9): 52})


class Foretelling(VectorWrapper):
    """Keeps what `act` says about each row, and checks it when the results come."""

    def __init__(self, envs):
        super().__init__(envs)
        self.told, self.seen = {}, set()

    def act(self, actions, batch):
        assert batch.rows.dtype == np.int64
        assert batch.kinds.shape == batch.rows.shape == (len(actions),)
        self.told |= dict(zip(batch.rows.tolist(), batch.kinds.tolist(), strict=True))
        return actions

    def transform(self, batch):
        assert batch.kinds.shape == batch.rows.shape
        for row, kind in zip(batch.rows.tolist(), batch.kinds.tolist(), strict=True):
            if batch.rewards is None or row not in self.told:  # a reset, perhaps by `send_reset`
                assert kind in (RESET, SHOWN)
                continue
            stepped = kind in (TRANSITION, FAILED, INCOMPLETE)
            assert self.told.pop(row) == (TRANSITION if stepped else kind)
            self.seen.add(kind)


@pytest.mark.parametrize("environment", ["pole", "counts"])
def test_act_is_told_what_each_row_will_do(environment):
    seen = {}
    with Builds() as build:
        for kind, mode, way, keywords in settings_of(environment):
            envs = Foretelling(ClipReward(build(kind, environment, mode, **keywords), 0, 1))
            drive(envs, SCRIPT, way, close=False)
            seen.setdefault(mode, set()).update(envs.seen)
    assert seen == {N: {TRANSITION, RESET}, S: {TRANSITION}, D: {TRANSITION, SHOWN}}


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_act_is_told_what_an_adapter_will_do(mode):
    envs = Foretelling(AutoresetAdapter(build("inline", "pole", D), mode))
    drive(envs, SCRIPT)
    assert envs.seen == ({TRANSITION, RESET} if mode == "next_step" else {TRANSITION})


def test_a_restored_row_that_is_over_is_told_to_reset():
    envs = Foretelling(build("native", "one step", N))
    envs.reset(seed=1)
    envs.step(envs.action_space.sample())
    states = envs.get_state()
    envs.reset(seed=2)
    envs.set_state(None, states)
    envs.step(envs.action_space.sample())
    assert envs.seen == {TRANSITION, RESET}
    envs.close()


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        ([0, 3], ValueError, "`env_index` names row 3; there are rows 0 to 2"),
        ([-1, 0], ValueError, "names row -1"),
        ([0.5, 1], TypeError, "integers"),
        ([], ValueError, "`env_index` is empty"),
    ],
)
def test_act_is_not_told_of_rows_that_do_not_exist(rows, error, text):
    envs = Foretelling(build("inline", "pole", S))
    envs.reset(seed=1)
    with pytest.raises(error, match=text):
        envs.step(np.zeros(len(rows), np.int64), rows)
    assert envs.told == {}
    envs.close()


class WithoutInit(VectorWrapper):
    def __init__(self, env):
        del env
        self.scale = 1.0


class WithLateInit(VectorWrapper):
    def __init__(self, env):
        self.scale = np.ones(self.num_envs)
        super().__init__(env)


@pytest.mark.parametrize(
    "use",
    [
        lambda envs: WithoutInit(envs).reset(),
        lambda envs: WithoutInit(envs).num_envs,
        lambda envs: FrameStack(WithoutInit(envs), 2),
        WithLateInit,
    ],
)
def test_a_wrapper_without_the_constructor_of_its_base_says_so(use):
    envs = build("inline", "pole", S)
    with pytest.raises(AttributeError, match=r"must call `super\(\).__init__\(env\)` first"):
        use(envs)
    envs.close()


def test_what_wrappers_of_gymnasium_hide_is_named():
    envs = VectorWrapper(
        VectorWrapper(gym.wrappers.vector.DictInfoToList(build("inline", "pole", S)))
    )
    with pytest.raises(
        AttributeError, match=r"'DictInfoToList' .* 'stats'; .*`envs.unwrapped.stats`$"
    ):
        _ = envs.stats
    with pytest.raises(AttributeError, match=r"has no attribute 'statss'$"):
        _ = envs.statss
    envs.close()


class Returning(VectorWrapper):
    """``act`` and ``transform`` return the given values, which ``transform`` also sets."""

    acted, left, returned = None, (), None

    def act(self, actions, batch):
        del actions, batch
        return self.acted

    def transform(self, batch):
        for name in self.left:
            setattr(batch, name, None)
        return self.returned


@pytest.mark.parametrize("outer", [lambda envs: envs, lambda envs: FrameStack(envs, 2)])
@pytest.mark.parametrize("call", ["step", "send", "step_async"])
def test_what_act_returns_is_checked(outer, call):
    inner = Returning(build("inline", "pole", S))
    envs = outer(inner)
    envs.reset(seed=1)
    with pytest.raises(TypeError, match="`act` of Returning returned None"):
        getattr(envs, call)(np.zeros(ROWS, np.int64))
    inner.acted = np.zeros(ROWS + 1, np.int64)
    words = rf"was given actions of shape \({ROWS},\) and returned actions of shape \({ROWS + 1},\)"
    with pytest.raises(ValueError, match=f"`act` of Returning {words}"):
        getattr(envs, call)(np.zeros(ROWS, np.int64))
    inner.acted = np.zeros(ROWS, np.int64)
    envs.step(np.zeros(ROWS, np.int64))  # nothing was begun
    envs.close()


@pytest.mark.parametrize("outer", [lambda envs: envs, lambda envs: FrameStack(envs, 2)])
def test_what_transform_leaves_is_checked(outer):
    inner = Returning(build("inline", "pole", S))
    inner.acted = np.zeros(ROWS, np.int64)
    envs = outer(inner)
    envs.reset(seed=1)
    inner.returned = np.zeros(ROWS)
    for call in (envs.reset, lambda: envs.step(inner.acted)):
        with pytest.raises(TypeError, match=r"`transform` of Returning returned ndarray: it must"):
            call()
    inner.left, inner.returned = ("observations",), None
    for call in (envs.reset, lambda: envs.step(inner.acted)):
        with pytest.raises(TypeError, match=r"`transform` of Returning set `batch.observations`"):
            call()
    envs.close()
    rewards = Returning(build("inline", "pole", S))
    rewards.acted, rewards.left = inner.acted, ("rewards",)
    rewards.reset(seed=1)
    with pytest.raises(TypeError, match=r"`transform` of Returning set `batch.rewards` to None"):
        rewards.step(inner.acted)
    rewards.close()
