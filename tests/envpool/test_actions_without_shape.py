"""Actions without a fixed shape: if there is not one for each environment, nothing is sent."""

import re

import numpy as np
import pytest
from gymnasium.spaces import Dict, Discrete, Sequence, Text, Tuple

from tests.envpool.tasks import RECORDING

TEXT, MIXED = Text(5), Dict(t=Text(5), d=Discrete(3))
NUMBERS = np.zeros(3, np.int64)


def mixed(texts):
    return {"t": texts, "d": NUMBERS}


BAD_BATCHES = {
    "too few": (TEXT, ("a", "b"), ValueError, "action has 2 rows for 3 environments"),
    "too many": (TEXT, ["a"] * 4, ValueError, "action has 4 rows for 3 environments"),
    "none": (TEXT, (), ValueError, "action has 0 rows for 3 environments"),
    "an array": (TEXT, np.array(["a"]), ValueError, "action has 1 rows for 3 environments"),
    "a single value": (TEXT, np.array("abc"), ValueError, "3 rows, got a single value of shape ()"),
    "None": (TEXT, None, TypeError, "action must be a tuple or list of 3 actions, got None"),
    "a number": (TEXT, 5, TypeError, "got 5"),
    "a single text": (TEXT, "abc", TypeError, "got 'abc'"),
    "too few for a key": (MIXED, mixed(("a", "b")), ValueError, "t has 2 rows for 3 environments"),
    "too many for a key": (MIXED, mixed(["a"] * 4), ValueError, "t has 4 rows for 3 environments"),
    "None for a key": (MIXED, mixed(None), TypeError, "t must be a tuple or list of 3"),
    "a single text for a key": (MIXED, mixed("abc"), TypeError, "got 'abc'"),
    "too few for a position": (
        Tuple([TEXT, Discrete(3)]),
        (("a",), NUMBERS),
        ValueError,
        "action.0 has 1",
    ),
    "too few sequences": (
        Sequence(Discrete(4)),
        ((1,), (2, 2)),
        ValueError,
        "has 2 rows for 3",
    ),
}
#: Environments that are reset before a misuse; the first step would reset the others.
BEGUN = [[], [0], [2], [1]]


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
@pytest.mark.parametrize("misuse", BAD_BATCHES)
def test_a_wrong_number_of_actions_is_refused_before_anything_is_sent(make, executor, misuse):
    space, batch, error, words = BAD_BATCHES[misuse]
    envs = make(RECORDING, num_envs=3, executor=executor, action_space=space)
    begun = []
    for rows in BEGUN:
        if rows:
            envs.reset(rows)
            begun += rows
        for send in (envs.send, envs.step, lambda batch: envs.send(batch, [0, 1, 2])):
            with pytest.raises(error, match=re.escape(words)):
                send(batch)
            assert envs._envs.in_flight == []
        resets = [len(resets) for resets in envs._envs.get_attr("resets")]
        assert resets == [int(row in begun) for row in range(3)]
        assert envs._envs.get_attr("actions") == ([],) * 3


@pytest.mark.parametrize("executor", ["inline", "thread", "process"])
def test_actions_without_a_fixed_shape_reach_the_environments_with_an_episode(make, executor):
    envs = make(RECORDING, num_envs=4, executor=executor, action_space=MIXED)
    envs.reset([2, 0])
    texts, numbers = ("a", "b", "c", "d"), np.array([0, 1, 2, 0])
    for form in (tuple, list, np.array):
        info = envs.step({"t": form(texts), "d": numbers}, [3, 2, 1, 0])[4]
        assert info["env_id"].tolist() == [3, 2, 1, 0]
    sent = {"t": texts, "d": numbers}
    received = [
        [(action["t"], int(action["d"])) for action in actions]
        for actions in envs._envs.get_attr("actions")
    ]
    of = {row: (sent["t"][at], int(sent["d"][at])) for at, row in enumerate([3, 2, 1, 0])}
    # Rows 1 and 3 had no episode: their first action only began one.
    assert received == [[of[0]] * 3, [of[1]] * 2, [of[2]] * 3, [of[3]] * 2]
