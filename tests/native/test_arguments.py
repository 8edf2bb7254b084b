"""Arguments of native environments: bad ones are refused, others act as in Gymnasium."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv

import cartwheel
from tests.support.cases import Case
from tests.support.oracle import assert_same_reset, assert_same_steps

CART_POLE = partial(dict[str, Any], env_id="CartPole-v1")

LAKE = partial(dict[str, Any], env_id="FrozenLake-v1")

BAD_ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"env_id": "Nowhere-v0"}, ValueError, "^there is no native environment 'Nowhere-v0'"),
    (
        {"env_id": "cartwheel/Nowhere-v0"},
        ValueError,
        "no native environment 'cartwheel/Nowhere-v0'",
    ),
    ({"env_id": "LunarLander-v3"}, ValueError, "no native environment"),
    ({"env_id": ""}, ValueError, "no native environment"),
    (CART_POLE(executor="process"), ValueError, "^`executor` must be one of 'auto', 'inline', "),
    (CART_POLE(executor=None), ValueError, "^`executor` must be one of .* got None"),
    *[
        (
            CART_POLE(max_episode_steps=limit),
            ValueError,
            "^`max_episode_steps` must be an integer fr",
        )
        for limit in (0, -2, 2.0, "many", 2**32, 2**70, True)
    ],
    *[
        (CART_POLE(num_envs=number), ValueError, "^`num_envs` must be a positive integer, got ")
        for number in (0, -1, 2.0, "2", None, True)
    ],
    *[
        (
            CART_POLE(thread_affinity_offset=number),
            ValueError,
            "`thread_affinity_offset` must be an",
        )
        for number in (-1, 0.0, False)
    ],
    *[
        (CART_POLE(max_restarts=number), ValueError, "`max_restarts` must be an integer from 0 on")
        for number in (-1, 1.5, True)
    ],
    (CART_POLE(worker=print), ValueError, "^`worker` of native environments must be None, got <b"),
    (
        CART_POLE(observation_mode="different"),
        ValueError,
        "^`observation_mode` .* must be 'same'",
    ),
    (
        CART_POLE(on_worker_death="restart"),
        ValueError,
        "^`on_worker_death` .* must be 'raise'",
    ),
    (CART_POLE(render_mode="ansi"), ValueError, "^`render_mode` of CartPole-v1 must be one of"),
    (
        CART_POLE(gravity=1),
        TypeError,
        r'^`gravity` of .* is an attribute, not a keyword: `envs.set_attr\("gravity", 1\)`.$',
    ),
    (
        CART_POLE(sutton_barto_reward="yes"),
        ValueError,
        "^CartPole-v1: .* must be True or False, got 'yes'",
    ),
    (CART_POLE(sutton_barto_reward=object()), ValueError, "cannot be passed to a native environme"),
    (
        {"env_id": "Acrobot-v1", "low": 0},
        TypeError,
        "^`low` is not a keyword of Acrobot-v1, which has none",
    ),
    ({"env_id": "Pendulum-v1", "g": "earth"}, ValueError, "^Pendulum-v1: .*earth"),
    ({"env_id": "Pendulum-v1", "g": np.nan}, ValueError, r"\bg\b"),
    (
        {"env_id": "Taxi-v4", "rainy_probability": 1.5},
        ValueError,
        r"^Taxi-v4: rainy_probability must be in \[0, 1\], got 1.5$",
    ),
    (
        {"env_id": "Taxi-v4", "fickle_probability": -0.5},
        ValueError,
        r"^Taxi-v4: fickle_probability must be in \[0, 1\], got -0.5$",
    ),
    ({"env_id": "Null-v0", "shape": [-1]}, ValueError, "^Null-v0: "),
    ({"env_id": "Null-v0", "shape": [2**33, 2**33]}, ValueError, "^Null-v0: shape .* too large"),
    (LAKE(map_name="5x5"), ValueError, '^FrozenLake-v1: there is no map "5x5", only 4x4 and 8x8$'),
    (LAKE(success_rate=1.01), ValueError, r"success_rate must be in \[0, 1\], got 1.01$"),
    (LAKE(success_rate=-0.1), ValueError, r"success_rate must be in \[0, 1\], got -0.1$"),
    (LAKE(reward_schedule=(1, 0)), ValueError, "`reward_schedule` must be 3 numbers, got "),
    (LAKE(desc=["SF", "G"]), ValueError, "malformed map: row 1 has 1 cells, row 0 has 2$"),
    (LAKE(desc=["SF", "XG"]), ValueError, "malformed map: row 1 has 'X', which is none of S, F"),
    (LAKE(desc=["FF", "FG"]), ValueError, "malformed map: it has no start S$"),
    (LAKE(desc=["SÄ", "FG"]), ValueError, "malformed map: row 0 has 'Ä'"),
    (LAKE(desc=[]), ValueError, "malformed map: it has no cells$"),
    (LAKE(desc=[""]), ValueError, "malformed map: it has no cells$"),
    (LAKE(desc=[["S", "FG"]]), ValueError, "^FrozenLake-v1: a row of a map is a text or a list of"),
    (LAKE(desc=[["S", 1]]), ValueError, "^FrozenLake-v1: a row of a map is a text or a list of"),
    (LAKE(desc=[["S", "X"]]), ValueError, "malformed map: row 0 has 'X', which is none of S, F"),
    (LAKE(desc=7), ValueError, "^FrozenLake-v1: "),
]


@pytest.mark.parametrize(("arguments", "error", "text"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        cartwheel.NativeVectorEnv(**{"num_envs": 2, **arguments})


@pytest.mark.parametrize("form", [list, tuple, np.array, partial(np.asarray, dtype="c")])
def test_a_map_is_a_list_of_strings_or_letters(build_native, form):
    rows = ["SFFH", "HFFF", "FFHG"]
    oracle = SyncVectorEnv([Case("FrozenLake-v1", {"desc": rows})] * 2)
    for desc in (form(rows), form([list(row) for row in rows])):
        envs = build_native([Case("FrozenLake-v1", {"desc": desc})] * 2)
        assert envs.get_attr("desc") == (rows,) * 2
        assert_same_reset(envs, oracle, seed=1)
        assert_same_steps(envs, oracle, 30)


def test_arguments_accept_numpy_numbers():
    numbers = {"num_workers": np.int32(2), "max_episode_steps": np.int64(2), "g": np.float64(9.81)}
    envs = cartwheel.NativeVectorEnv("Pendulum-v1", np.int64(3), **numbers)
    oracle = SyncVectorEnv([Case("Pendulum-v1", {"g": 9.81, "max_episode_steps": 2})] * 3)
    assert_same_reset(envs, oracle, seed=1)
    assert_same_steps(envs, oracle, 7)
    envs.close()


@pytest.mark.parametrize("details", [(b"\1", None, None), (None, [4], None), (None, None, ["{}"])])
def test_details_of_a_reset_are_refused_unless_they_are_of_all_rows(details):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3)
    with pytest.raises(ValueError, match=r"^1 entries for 3 rows$"):
        envs._pool.reset([("reset", *details)], None, "reset", None)
    envs.close()
