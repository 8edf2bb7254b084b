"""A step or a reset of some rows leaves the other rows alone; each row gets its own seed."""

from functools import partial

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import SyncVectorEnv

from tests.support.cases import POLE
from tests.support.comparison import assert_identical
from tests.support.environments import NestedEnv, RecordingEnv, transcripts
from tests.support.in_parts import PATIENCE_S, begin, index, receive_all
from tests.support.oracle import assert_same_steps, with_oracle


def test_a_step_of_some_rows_leaves_the_others_alone(build_everywhere):
    envs, oracle = build_everywhere([NestedEnv] * 4), SyncVectorEnv([NestedEnv] * 2)
    envs.reset(seed=[9, 1, 2, 9])
    oracle.reset(seed=[2, 1])
    for _ in range(8):
        result, expected = envs.step([0, 2], env_index=[2, 1]), oracle.step([0, 2])
        assert index(result) == [2, 1]
        del result[4]["env_index"]
        assert_identical(result, expected)
    assert envs.get_attr("t") == (0, 8, 8, 0)
    oracle.close()


@pytest.mark.parametrize("name", ["env_index", "env_idx"])
def test_a_reset_of_some_rows_leaves_the_others_alone(build_anywhere, name):
    """Rows are named by our option or by ManiSkill's; neither reaches an environment."""
    envs, oracle = with_oracle(build_anywhere, POLE, 4)
    first, _ = oracle.reset(seed=1, options={"high": 0.01})
    options = {name: np.array([3, 0]), "high": 0.01}
    again, infos = envs.reset(seed=[4, 1], options=options)
    assert set(options) == {name, "high"}
    assert_identical(infos, {"env_index": np.array([3, 0])})
    assert_identical(again, first[[3, 0]])
    oracle.reset(seed=1)
    envs.reset(seed=[4, 1], options={name: [3, 0]})
    envs.reset_async(seed=[2], options={name: [1]})
    assert index(envs.reset_wait()) == [1]
    envs.send_reset(seed=[3], options={name: [2]})
    assert index(envs.recv(PATIENCE_S)) == [2]
    assert_same_steps(envs, oracle, 5)


@pytest.mark.parametrize("name", ["env_index", "env_idx"])
def test_neither_option_that_names_rows_reaches_an_environment(build_everywhere, name):
    envs = build_everywhere(transcripts(9, 9, 9, 9))
    envs.reset()
    envs.step([1] * 4)
    _, infos = envs.reset(options={name: np.array([3, 0]), "size": 3})
    assert infos["opt"].tolist() == ["{'size': 3}"] * 2
    assert envs.get_attr("t") == (0, 1, 1, 0)


@pytest.mark.parametrize("batch_size", [3, 2])
def test_a_reset_never_takes_rewards_of_rows_in_flight(build_everywhere, batch_size):
    envs = build_everywhere(transcripts(1, 99, 99), batch_size=batch_size)
    begin(envs)
    envs.send([4], [0])
    options = {"env_index": [2]}
    for calling, reset in (
        ("reset", lambda: envs.reset(options=options)),
        ("reset_async", lambda: envs.reset_async(options=options)),
        ("reset_wait", envs.reset_wait),
    ):
        with pytest.raises(AlreadyPendingCallError, match=rf"`{calling}` while rows \[0\] are in"):
            reset()
        assert envs.in_flight == [0]
    envs.send_reset(options=options)  # resets may be in flight together with steps
    with pytest.raises(AlreadyPendingCallError, match=r"rows \[0\] are in flight"):
        envs.reset_wait()
    rewards, over = {}, {}
    while envs.in_flight:
        result = envs.recv(PATIENCE_S)
        rewards |= dict(zip(index(result), result[1].tolist(), strict=True))
        over |= dict(zip(index(result), result[2].tolist(), strict=True))
    assert (rewards, over) == ({0: 4, 2: 0}, {0: True, 2: False})
    assert index(envs.reset(options=options)) == [2]


SEEDS = {
    "none": (None, None, [None] * 4),
    "an integer": (7, None, [7, 8, 9, 10]),
    "a list": ([5, None, 6, 0], None, [5, None, 6, 0]),
    "an integer for some": (7, {"env_index": [2, 0]}, [7, "kept", 9, "kept"]),
    "a list for some": ([3, None], {"env_index": [2, 0]}, [None, "kept", 3, "kept"]),
    "an integer for ManiSkill's": (7, {"env_idx": [2, 0]}, [7, "kept", 9, "kept"]),
    "an integer and a mask": (
        7,
        {"reset_mask": np.array([False, True, False, True])},
        ["kept", 8, "kept", 10],
    ),
    "a list and a mask": (
        [1, 2],
        {"reset_mask": np.array([False, True, False, True])},
        ["kept", 1, "kept", 2],
    ),
}


@pytest.mark.parametrize("batch_size", [4, 3, 1])
def test_each_row_is_reset_with_its_own_seed(build_everywhere, batch_size):
    """With an integer, row ``i`` gets ``seed + i``; a list has one entry per row that is reset."""
    envs = build_everywhere([RecordingEnv] * 4, batch_size=batch_size)
    resets = [[] for _ in range(4)]
    for case, (seed, options, expected) in SEEDS.items():
        envs.send_reset(seed=seed, options=options)
        rows = receive_all(envs)
        assert sorted(rows) == [row for row, got in enumerate(expected) if got != "kept"], case
        passed_on = {} if "reset_mask" in (options or {}) else None  # a mask alone: as in Gymnasium
        for row in rows:
            resets[row].append((expected[row], passed_on))
        assert list(envs.get_attr("resets")) == resets, case


def test_each_row_gets_its_own_copy_of_the_options(build_everywhere):
    envs = build_everywhere([partial(RecordingEnv, scribbles=True)] * 3, batch_size=2)
    options = {"size": 3, "env_index": np.array([2, 1])}
    envs.send_reset(options=options)
    envs.recv(PATIENCE_S)
    assert set(options) == {"size", "env_index"}
    assert envs.get_attr("resets") == ([], [(None, {"size": 3})], [(None, {"size": 3})])
