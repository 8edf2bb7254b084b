"""Steps of rows whose worker died before it had sent their infos, and perhaps last observations."""

import os
import signal
from functools import partial

import numpy as np
import pytest

from cartwheel.wrappers.base import VectorWrapper
from tests.multiagent.environments import Walkers
from tests.multiagent.oracle import MODES, check_equal
from tests.multiagent.test_faults import actions_of, make, values

EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)


class Losing(VectorWrapper):
    """Loses the infos of row 1 in a step, as with a worker that dies before it sent them."""

    def __init__(self, pool, step):
        super().__init__(pool)
        self.left = step

    def transform(self, batch):
        if batch.rewards is None:
            return
        self.left -= 1
        if self.left:
            return
        lost = np.array([False, True])
        infos = {**batch.infos, "infos_lost": lost, "_infos_lost": lost}
        if isinstance(infos.get("final_obs"), np.ndarray):  # others are in the batch itself
            infos["_final_obs"] = infos["_final_obs"] & ~lost
        batch.infos = infos


def losing(step, **keywords):
    """Two rows of walkers, of which walker ``i`` of row 1 ends in step ``2 + i``."""
    envs = make([Walkers] * 2, **keywords)
    envs._pool = Losing(envs._pool, step)
    envs.reset(seed=[2, 0])
    return envs


@EVERY_MODE
@pytest.mark.parametrize("step", [1, 2, 4])
def test_a_step_whose_infos_alone_were_lost_stands(mode, step):
    with (
        losing(step, autoreset_mode=mode) as envs,
        make([Walkers] * 2, autoreset_mode=mode) as others,
    ):
        others.reset(seed=[2, 0])
        for _ in range(step):
            (*found, infos), (*wanted, other_infos) = (
                one.step(actions_of(one, 1.0)) for one in (envs, others)
            )
        assert infos["infos_lost"].tolist() == [False, True]
        check_equal(tuple(found), tuple(wanted), ())
        for name in ("present", "acted", "episode_over", "final_obs", "_final_obs"):
            assert (name in infos) == (name in other_infos)
            if name in infos:
                check_equal(infos[name], other_infos[name], (name,))


def test_agents_whose_last_observations_were_lost_with_their_infos_are_truncated(monkeypatch):
    monkeypatch.setattr("cartwheel.multiagent.pool.MAX_DENSE_BYTES", -1)
    with losing(4, autoreset_mode="same_step") as envs:
        for _ in range(3):
            envs.step(actions_of(envs))
        shown, rewards, terminated, truncated, infos = envs.step(actions_of(envs, 1.0))
        assert infos["episode_over"].tolist() == [False, True]
        # Walkers 0 and 1 of row 1 had ended before, and walker 0 of row 0 ends now.
        assert values(terminated) == [[True, False], [False, False], [False, False]]
        assert values(truncated) == [[False, False], [False, False], [False, True]]
        assert values(rewards) == [[1, 0], [11, 0], [21, 0]]
        assert values(infos["acted"]) == [[True, False]] * 3
        assert not any(mask.any() for mask in infos.get("_final_obs", {}).values())
        assert [of_agent[1, 1] for of_agent in shown.values()] == [0, 0, 0]
        assert values(infos["present"]) == [[True, True]] * 3
        acted = envs.step(actions_of(envs))[4]["acted"]
        assert values(acted) == [[False, True], [True, True], [True, True]]


class Chatty(Walkers):
    """Infos are long. The walkers with a ``path`` kill their worker once, in their second step."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def step(self, actions):
        if self.t == 1 and self.path is not None and not self.path.exists():
            self.path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        *results, infos = super().step(actions)
        return *results, {name: {"text": "x" * 100_000} for name in infos}


@EVERY_MODE
def test_rows_that_a_dying_worker_had_stepped_stand_whether_it_sent_their_infos_or_not(
    mode, tmp_path
):
    with make(
        [partial(Chatty, None), partial(Chatty, tmp_path / "died")],
        executor="process",
        num_workers=1,
        on_worker_death="restart",
        autoreset_mode=mode,
    ) as envs:
        envs.reset(seed=[0, 0])
        envs.step(actions_of(envs, 1.0))
        envs.send(actions_of(envs, 1.0), [0, 1])
        seen = {}
        while envs.in_flight:
            _, rewards, terminations, truncations, infos = envs.recv(30)
            for place, row in enumerate(infos["env_index"].tolist()):
                columns = infos["acted"], rewards, terminations, truncations
                seen[row] = [[of[name][place] for name in of] for of in columns]
    no, every = [False] * 3, [True] * 3
    assert seen == {0: [every, [1, 11, 21], [True, False, False], no], 1: [no, [0] * 3, no, every]}
