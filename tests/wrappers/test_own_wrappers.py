"""A wrapper of one's own: what `act` and `transform` are told, in every way to step."""

import numpy as np
import pytest

from cartwheel.wrappers import AutoresetAdapter, ClipReward, VectorWrapper
from cartwheel.wrappers.batch import FAILED, INCOMPLETE, RESET, SHOWN, TRANSITION
from tests.support.wrapping import Builds, D, N, S, Script, build, drive, settings_of

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
