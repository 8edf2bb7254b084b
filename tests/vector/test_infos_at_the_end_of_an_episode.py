"""`final_obs` and `final_info` are what the environment returned last, whatever it does next."""

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box

from tests.support.comparison import assert_identical
from tests.support.environments import BufferReusingEnv, PuppetEnv, scalar_puppets
from tests.support.oracle import batched, objects

OBS = np.float32(0)


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_infos_at_the_end_of_an_episode_are_batched_as_in_gymnasium(build, mode):
    rows = [{"a": 1, "deep": {"b": np.arange(2)}, "final_obs": "mine"}, {"text": "x", 7: None}, {}]
    resets = [{"a": 2.5, "r": 1}, {"final_info": {"z": 1}}, {"deep": 3}]
    envs = build(scalar_puppets(3), autoreset_mode=mode)
    envs.reset()
    frames = [(OBS, 1.0, row != 2, False, info) for row, info in enumerate(rows)]
    envs.set_attr("frame", frames)
    envs.set_attr("reset_frame", [(OBS, info) for info in resets])
    if mode == "NextStep":
        assert_identical(envs.step([0] * 3)[4], batched(rows))
        assert_identical(envs.step([0] * 3)[4], batched([*resets[:2], rows[2]]))
        return
    infos = envs.step([0] * 3)[4]
    ended = [{"final_obs": OBS, "final_info": rows[row]} for row in (0, 1)]
    expected = batched([ended[0], ended[1], rows[2]])
    # Not compared: a reset's own `final_info`, where Gymnasium's two classes differ.
    for key, value in batched([resets[0], {}, {}]).items():
        assert_identical(infos[key], value, key)
    for key in ("final_obs", "_final_obs", "_final_info"):
        assert_identical(infos[key], expected[key], key)


def test_a_final_info_without_entries_is_present(build):
    envs = build(scalar_puppets(2), autoreset_mode="SameStep")
    envs.reset()
    envs.set_attr("frame", [(OBS, 0.0, True, False, {}), (OBS, 0.0, False, False, {})])
    infos = envs.step([0, 0])[4]
    mask = np.array([True, False])
    finals = {"final_obs": objects(OBS, None), "_final_obs": mask}
    assert_identical(infos, finals | {"final_info": {}, "_final_info": mask})


@pytest.mark.parametrize(
    "obs",
    [
        np.array([1.5, 2.5], np.float32),
        np.array([1.5, 2.5], np.float64),
        np.array([1, 2], np.int8),
        [1.5, 2.5],
        (1, 2),
    ],
    ids=["float32", "float64", "int8", "list", "tuple"],
)
def test_final_obs_is_what_the_environment_returned_even_if_its_space_differs(build, obs):
    space = Box(-np.inf, np.inf, (2,), np.float32)
    envs = build([partial(PuppetEnv, space, obs)] * 2, autoreset_mode="SameStep")
    envs.reset()
    envs.set_attr("frame", [(obs, 0.0, True, False, {})] * 2)
    observations, *_, infos = envs.step([0, 0])
    assert_identical(observations, np.stack([np.array(obs, np.float32)] * 2))
    assert_identical(infos["final_obs"], objects(obs, obs))


def test_final_obs_and_final_info_are_taken_before_the_reset(build_everywhere):
    """The environment reuses its buffers; upstream shows the values of the reset instead."""
    envs = build_everywhere(
        [partial(BufferReusingEnv, 2 + row) for row in range(2)], autoreset_mode="SameStep"
    )
    envs.reset()
    envs.step([0, 0])
    kept = envs.step([0, 0])
    later = envs.step([0, 0])
    for result, row, t in ((kept, 0, 2), (later, 1, 3)):
        infos = result[4]
        assert_identical(
            infos["final_obs"][row],
            {
                "t": np.array([t], np.float32),
                "nested": (np.full((2, 2), t, np.uint8), np.array(t, np.int64)),
            },
        )
        assert infos["final_obs"][1 - row] is None
        assert infos["final_info"]["array"][row].tolist() == [t, t]
        assert infos["final_info"]["nested"]["array"][row].tolist() == [t]
        assert infos["final_info"]["list"][row] == [t]
        assert infos["final_info"]["set"][row] == {t}
        assert infos["final_info"]["dates"][row].tolist() == [np.datetime64(t, "D").item()]
        assert infos["final_info"]["objects"][row].tolist() == [None, t]
        assert result[0]["t"][row, 0] == 0
        assert infos["array"][row].tolist() == [0, 0]
