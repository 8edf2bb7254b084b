"""In ``SAME_STEP`` infos have Gymnasium's structure, whichever rows end; the caller owns the masks.

Gymnasium's rule: a step has a key if a row of it has that key, with a mask of these rows. The info
of a row that goes on is at the top level. If a row ended, its last info is under ``final_info``,
and the info of its reset at the top level. ``final_obs`` and ``final_info`` exist if a row ended.
"""

import itertools
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics

from tests.support.cases import SHORT
from tests.support.comparison import assert_identical
from tests.support.executors import EXECUTORS
from tests.support.oracle import MODE, S, outcome
from tests.support.random_examples import given, settings, st
from tests.support.repetitions import times
from tests.vector.test_infos import INFOS

NUM_ENVS = 3


class ScriptedEnv(gym.Env):
    """Plays a script of frames: whether the episode ends, the step's info, the reset's info."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Discrete(2)
    script = ()

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        super().reset(seed=seed)
        self.t = getattr(self, "t", -1)
        return np.full(2, -self.t, np.float32), self._frame()[2]

    def step(self, _):
        self.t += 1
        over, info, _ = self._frame()
        return np.full(2, self.t, np.float32), float(self.t), over, False, info

    def _frame(self):
        return self.script[self.t] if 0 <= self.t < len(self.script) else (False, {}, {})


#: Infos without the keys of ``SAME_STEP`` itself, where Gymnasium's two classes differ.
OWN_INFOS = INFOS.map(
    lambda info: {key: value for key, value in info.items() if "final" not in str(key)}
)
FRAME = st.tuples(st.booleans(), OWN_INFOS, OWN_INFOS)
SCRIPT = st.lists(FRAME, min_size=4, max_size=4)


@pytest.mark.parametrize("executor", EXECUTORS, ids=str)
def test_infos_of_same_step_are_those_of_the_oracle_whichever_rows_end(executor):
    envs = executor([ScriptedEnv] * NUM_ENVS, autoreset_mode=S)
    oracle = SyncVectorEnv([ScriptedEnv] * NUM_ENVS, autoreset_mode=S)

    @settings(max_examples=times(12, with_full=60))
    @given(scripts=st.lists(SCRIPT, min_size=NUM_ENVS, max_size=NUM_ENVS))
    def check(scripts):
        for vector in (envs, oracle):
            vector.set_attr("script", scripts)
            vector.set_attr("t", -1)
            vector.reset()
        for _ in scripts[0]:
            expected, failure = outcome(lambda: oracle.step([0] * NUM_ENVS))
            if failure is not None:
                with pytest.raises(type(failure)):
                    envs.step([0] * NUM_ENVS)
                break
            assert_identical(envs.step([0] * NUM_ENVS), expected)

    try:
        check()
    finally:
        envs.close()
        oracle.close()


def masks_of(infos):
    """Every mask, however deep, by its keys."""
    for key, value in infos.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", mask) for name, mask in masks_of(value))
        elif str(key).startswith("_"):
            yield key, value


def structure_of(infos):
    """The keys, however deep, with dtypes and shapes."""
    return {
        key: structure_of(value) if isinstance(value, dict) else (value.dtype, value.shape)
        for key, value in infos.items()
    }


class CountingEnv(gym.Env):
    """Returns an info in every step and every reset, to which wrappers may add keys."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, length):
        self.length = length

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(2, np.float32), {"fresh": True}

    def step(self, _):
        self.t += 1
        info = {"t": self.t, "deep": {"half": self.t / 2}}
        return np.full(2, self.t, np.float32), 1.0, self.t == self.length, False, info


def test_infos_of_a_row_that_goes_on_do_not_depend_on_rows_that_end(build):
    """Its wrapper adds ``episode`` in the last step of an episode, so keys come and go."""
    lengths = (2, 3, 100)
    functions = [lambda n=n: RecordEpisodeStatistics(CountingEnv(n)) for n in lengths]
    envs = build(functions, autoreset_mode=S)
    envs.reset(seed=1)
    everybody = {"t", "_t", "deep", "_deep"}
    ended = {"final_obs", "_final_obs", "final_info", "_final_info", "fresh", "_fresh"}
    inner = set()
    for step in range(1, 13):
        *_, terminated, _, infos = envs.step([0] * 3)
        assert terminated.tolist() == [step % length == 0 for length in lengths]
        assert set(infos) == everybody | (ended if terminated.any() else set())
        for key in ("t", "deep"):
            assert infos[f"_{key}"].tolist() == (~terminated).tolist()
        assert infos["t"][2] == step
        assert infos["deep"]["half"][2] == step / 2
        assert structure_of({"t": infos["t"], "deep": infos["deep"]}) == {
            "t": (np.int64, (3,)),
            "deep": {"half": (np.float64, (3,)), "_half": (np.bool_, (3,))},
        }
        if terminated.any():
            for mask in (infos["_final_obs"], infos["_final_info"], infos["_fresh"]):
                assert mask.tolist() == terminated.tolist()
            assert infos["final_info"]["_episode"].tolist() == terminated.tolist()
            inner.add(repr(structure_of(infos["final_info"])))
    assert len(inner) == 1  # whichever rows ended


def arrays_of(value):
    """Every array in a result, however deep, including elements of object arrays."""
    if isinstance(value, np.ndarray):
        yield value
        if value.dtype == object:
            yield from itertools.chain.from_iterable(map(arrays_of, value.flat))
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(arrays_of, value.values()))
    elif isinstance(value, tuple | list):
        yield from itertools.chain.from_iterable(map(arrays_of, value))


def scribble(result):
    """Overwrites every array that a call returned; masks are inverted."""
    for array in list(arrays_of(result)):
        if array.dtype == np.bool_:
            np.logical_not(array, out=array)
        elif array.dtype != object:
            array[...] = 77


def restarted(envs, result, mode):
    """Resets the rows that are over, if the mode leaves that to the caller."""
    over = result[2] | result[3]
    if mode is AutoresetMode.DISABLED and over.any():
        return envs.reset(options={"reset_mask": over})
    return ()


@MODE
def test_no_two_arrays_of_a_batch_share_memory(build_any, mode):
    case = SHORT[4] if build_any.executor == "native" else partial(CountingEnv, 3)
    envs = build_any([case] * 5, autoreset_mode=mode)
    results = [envs.reset(seed=1)]
    for _ in range(12):
        results.append(envs.step(envs.action_space.sample()))
        results.append(restarted(envs, results[-1], mode))
    arrays = [array for array in arrays_of(results) if array.size]
    assert len(arrays) > 60
    for one, other in itertools.combinations(arrays, 2):
        assert not np.may_share_memory(one, other)
    assert all(array.flags.writeable for array in arrays)


@MODE
@pytest.mark.parametrize("in_parts", [False, True], ids=["all rows", "some rows"])
def test_what_a_caller_writes_into_masks_changes_no_later_batch(build_any, mode, in_parts):
    case = SHORT[4] if build_any.executor == "native" else partial(CountingEnv, 3)
    envs, untouched = (build_any([case] * 4, autoreset_mode=mode) for _ in range(2))
    scribble(envs.reset(seed=1))
    untouched.reset(seed=1)
    untouched.action_space.seed(1)
    masks = 0
    for step in range(12):
        actions = untouched.action_space.sample()
        rows = np.array([step % 2, 2 + step % 2])
        if in_parts:
            actions, rows = actions[rows], (rows,)
        else:
            rows = ()
        results = [vector.step(actions, *rows) for vector in (envs, untouched)]
        by_row = [sorted_by_row(result) if in_parts else result for result in results]
        assert_identical(*by_row)
        masks += len(list(masks_of(results[1][4])))
        if not in_parts:
            again = [
                restarted(*pair, mode) for pair in zip((envs, untouched), results, strict=True)
            ]
            assert_identical(*again)
            scribble(again[0])
        elif mode is AutoresetMode.DISABLED and (results[1][2] | results[1][3]).any():
            for vector in (envs, untouched):
                vector.reset()
        scribble(results[0])
    assert masks > 12


def sorted_by_row(result):
    """A batch of some rows, sorted by row: the order of arrival is random."""
    order = np.argsort(result[4]["env_index"])

    def take(value):
        if isinstance(value, dict):
            return {key: take(part) for key, part in value.items()}
        return value[order] if isinstance(value, np.ndarray) else tuple(map(take, value))

    return take(tuple(result))
