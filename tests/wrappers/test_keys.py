"""`keys`: a part equals, to the bit, the same wrapper around environments that have only this part.

And `clip`, and the advice of errors, which works when it is followed.
"""

import ast
import re

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text, Tuple

from cartwheel import wrappers
from cartwheel.wrappers import FlattenObservation, NormalizeObservation, NormalizeReward
from tests.support.comparison import assert_identical
from tests.support.environments import NestedEnv, SamplingEnv
from tests.support.wrapping import MODES, SCRIPT, N, S, Script, build, drive

PARTS = ["walk", "state.0", "state.1", "state.2.clock", "pixels", "speed"]


class ShortEnv(NestedEnv):
    """Nested observations, or one part of them; episodes of four steps."""

    observation_space = Dict(
        [*NestedEnv.observation_space.items(), ("speed", Box(-1, 8, (2,), np.float32))]
    )

    def __init__(self, part=None):
        self.part = part
        if part is not None:
            self.observation_space = part_of(ShortEnv.observation_space, part)

    def step(self, action):
        observation, reward, terminated, _, info = super().step(action)
        return observation, reward, terminated, self.t == 4, info

    def observe(self):
        whole = super().observe() | {"speed": np.array([self.t, self.t / 8], np.float32)}
        return whole if self.part is None else part_of(whole, self.part)


def part_of(tree, key):
    """A part of nested observations, or of their space."""
    for name in key.split("."):
        tree = tree[int(name) if isinstance(tree, tuple | Tuple) else name]
    return tree


def joined(traces):
    """The moments of all rows."""
    return [moment for trace in traces for moment in trace]


def double(observations):
    return observations * observations.dtype.type(2)


#: A wrapper, and the parts that it can change.
CASES = {
    "NormalizeObservation": ({"clip": 1.5}, ["walk", "pixels", "speed"]),
    "RescaleObservation": ({"min_obs": 0, "max_obs": 1}, ["speed"]),
    "DtypeObservation": ({"dtype": np.float32}, PARTS),
    "ReshapeObservation": ({"shape": (3, 2)}, ["walk"]),
    "ResizeObservation": ({"shape": (2, 3)}, ["pixels"]),
    "GrayscaleObservation": ({"keep_dim": True}, ["pixels"]),
    "FrameStack": ({"stack_size": 3}, PARTS),
    "TransformObservation": ({"func": double}, ["walk", "pixels", "speed"]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_a_part_equals_environments_that_have_only_it(name, mode):
    keywords, keys = CASES[name]
    kind, way = getattr(wrappers, name), ("mask", "rows", "send")[MODES.index(mode)]
    plain = drive(build("inline", ShortEnv, mode), SCRIPT, way)
    whole = kind(build("inline", ShortEnv, mode), **keywords, keys=keys)
    space = whole.single_observation_space
    traces = drive(whole, SCRIPT, way)
    for key in PARTS:
        expected, expected_space = plain, part_of(ShortEnv.observation_space, key)
        if key in keys:
            alone = build("inline", lambda key=key: ShortEnv(key), mode)
            envs = kind(alone, **keywords)
            expected, expected_space = drive(envs, SCRIPT, way), envs.single_observation_space
        assert part_of(space, key) == expected_space
        for trace, other in zip(traces, expected, strict=True):
            assert len(trace) == len(other) > 13
            for moment, wanted in zip(trace, other, strict=True):
                part = part_of(moment.observation, key)
                whole_or_part = wanted.observation
                if key not in keys:
                    whole_or_part = part_of(whole_or_part, key)
                assert_identical(part, whole_or_part, f"{key} after a {moment.what}")


def test_moments_of_parts_are_by_key_and_can_be_restored():
    envs = NormalizeObservation(build("inline", ShortEnv), keys=["walk", "pixels"])
    envs.reset(seed=1)
    envs.step(np.zeros(3, int))
    assert envs.obs_rms.keys() == {"walk", "pixels"}
    assert {rms.count for rms in envs.obs_rms.values()} == {6.0001}
    other = NormalizeObservation(build("inline", ShortEnv), keys=["walk", "pixels"])
    other.set_own_state(envs.get_own_state())
    assert_identical(other.get_own_state(), envs.get_own_state())
    for bad in (envs.obs_rms["walk"], {"walk": envs.obs_rms["walk"]}):
        with pytest.raises(ValueError, match=r"a dictionary with the keys \['pixels', 'walk'\]"):
            other.obs_rms = bad
    with envs.frozen():
        envs.reset(seed=2)
    assert {rms.count for rms in envs.obs_rms.values()} == {6.0001}
    envs.close()
    other.close()


def test_a_key_that_exists_literally_is_taken_first():
    inner = Dict({"b": Box(0, 1, (1,)), "b.c": Box(0, 2, (1,))})
    space = Dict({"a.b": Box(0, 3, (1,)), "a": inner, "x.y": Dict(z=Box(0, 4, (1,)))})
    keys = {"a.b": 3, "a.b.c": 2, "x.y.z": 4}
    envs = build("inline", lambda: SamplingEnv(space, length=3))
    for key, high in keys.items():
        halved = wrappers.RescaleObservation(envs, 0, high / 2, keys=[key])
        found = [leaf.high.item() for leaf in _boxes(halved.single_observation_space)]
        assert sorted(found) == sorted([*({1, 2, 3, 4} - {high}), high / 2])
    envs.close()


def _boxes(space):
    if isinstance(space, Dict):
        return [leaf for part in space.spaces.values() for leaf in _boxes(part)]
    return [space]


@pytest.mark.parametrize(
    ("keys", "error", "text"),
    [
        ("walk", TypeError, "`keys` must be a sequence of strings, got 'walk'"),
        ([1], TypeError, r"`keys` must be strings, got \[1\]"),
        ([], ValueError, "must name at least one part"),
        (["camera"], ValueError, r"`keys` has 'camera', but .* the parts \[.*'state.0', 'state.1'"),
        (["state.3"], ValueError, "`keys` has 'state.3'"),
        (["walk.0"], ValueError, "`keys` has 'walk.0'"),
        (["walk", "walk"], ValueError, "names one part twice, by 'walk' and 'walk'"),
        (["state"], ValueError, r"is a Tuple: name its parts, \['state.0', 'state.1', 'state.2.c"),
        (["state.2"], ValueError, r"is a Dict: name its parts, \['state.2.clock'\]"),
        (["walk", "state.0"], TypeError, r"Discrete\(1000\).*keys=\['walk', 'pixels', 'speed'\]"),
    ],
)
def test_wrong_keys_are_refused(keys, error, text):
    envs = build("inline", ShortEnv)
    with pytest.raises(error, match=text):
        NormalizeObservation(envs, keys=keys)
    envs.close()


def test_two_names_of_one_part_are_refused():
    space = Dict({"a": Dict(b=Box(0, 1, (1,))), "c": Box(0, 1, (1,))})
    envs = build("inline", lambda: SamplingEnv(space, length=3))
    with pytest.raises(ValueError, match="names one part twice"):
        NormalizeObservation(envs, keys=["a.b", "c", "a.b"])
    envs.close()


@pytest.mark.parametrize("name", CASES)
def test_keys_of_an_array_are_refused_and_the_advice_works(name):
    keywords, keys = CASES[name]
    envs = build("inline", lambda: ShortEnv(keys[0]))
    with pytest.raises(ValueError, match=r"`keys` name parts of .* leave `keys` out"):
        getattr(wrappers, name)(envs, **keywords, keys=keys[:1])
    getattr(wrappers, name)(envs, **keywords).close()


@pytest.mark.parametrize("name", sorted({*CASES} - {"TransformObservation", "FrameStack"}))
def test_the_advice_to_name_parts_works(name):
    keywords, keys = CASES[name]
    envs = build("inline", ShortEnv, S)
    with pytest.raises((TypeError, ValueError), match="name the parts to change") as caught:
        getattr(wrappers, name)(envs, **keywords)
    advised = ast.literal_eval(re.search(r"keys=(\[.*\])", str(caught.value))[1])
    assert sorted(advised) == sorted(keys)
    follows = getattr(wrappers, name)(envs, **keywords, keys=advised)
    follows.reset(seed=1)
    follows.step(np.zeros(3, int))
    follows.close()


def test_the_advice_to_stack_some_parts_works():
    space = Dict(word=Text(4), pair=Tuple([Discrete(3), Box(0, 1, (2,))]))
    envs = build("inline", lambda: SamplingEnv(space, length=3))
    with pytest.raises(TypeError, match=r"keys=\['pair.0', 'pair.1'\]"):
        wrappers.FrameStack(envs, 2)
    stacked = wrappers.FrameStack(envs, 2, keys=["pair.0", "pair.1"])
    assert stacked.reset(seed=1)[0]["pair"][1].shape == (3, 2, 2)
    stacked.close()


def test_the_advice_to_flatten_works_and_is_not_given_where_it_would_not():
    envs = build("native", "taxi")
    with pytest.raises(TypeError, match=r"Discrete\(500\): flatten it with FlattenObservation"):
        NormalizeObservation(envs)
    normalized = NormalizeObservation(FlattenObservation(envs))
    assert normalized.reset(seed=1)[0].shape == (3, 500)
    normalized.close()
    envs = build("inline", lambda: SamplingEnv(Dict(word=Text(4)), length=3))
    with pytest.raises(TypeError, match="flatten it with FlattenObservation"):
        NormalizeObservation(envs)
    NormalizeObservation(FlattenObservation(envs)).close()


def test_the_advice_names_both_ways_where_flattening_works_too():
    envs = build("inline", lambda: SamplingEnv(Dict(pair=Box(0, 1, (2,))), length=3))
    words = r"flatten it with FlattenObservation, or name the parts to change, keys=\['pair'\]"
    with pytest.raises(TypeError, match=words):
        NormalizeObservation(envs)
    envs.close()


def test_spaces_of_parts_may_differ():
    envs = build("inline", ShortEnv)
    spaces = {"walk": Box(-1, 1, (2, 3), np.float64)}
    changed = wrappers.TransformObservation(
        envs, np.tanh, single_observation_space=spaces, keys=["walk"]
    )
    assert changed.single_observation_space["walk"] == spaces["walk"]
    assert abs(changed.reset(seed=1)[0]["walk"]).max() < 1
    with pytest.raises(
        ValueError, match=r"`single_observation_space` has the keys \['walk'\], but"
    ):
        wrappers.TransformObservation(
            envs, np.tanh, single_observation_space=spaces, keys=["pixels"]
        )
    changed.close()


@pytest.mark.parametrize("mode", MODES)
def test_clipped_observations_are_the_clipped_float32_and_moments_see_all(mode):
    way = ("mask", "rows", "send")[MODES.index(mode)]
    script = Script(steps=25)
    free, clipped = (
        NormalizeObservation(build("native", "pole", mode), clip=clip) for clip in (None, 0.7)
    )
    traces, expected = (drive(envs, script, way, close=False) for envs in (clipped, free))
    assert_identical(clipped.get_own_state(), free.get_own_state())
    space = clipped.single_observation_space
    assert (space.low == -np.float32(0.7)).all()
    assert (space.high == np.float32(0.7)).all()
    for moment, other in zip(*map(joined, (traces, expected)), strict=True):
        bounds = -np.float32(0.7), np.float32(0.7)
        assert_identical(moment.observation, np.clip(other.observation, *bounds))
    free.close()
    clipped.close()


@pytest.mark.parametrize("mode", MODES)
def test_clipped_rewards_are_the_clipped_ones_and_moments_see_all(mode):
    free, clipped = (
        NormalizeReward(build("native", "pendulum", mode), clip=clip) for clip in (None, 0.3)
    )
    traces, expected = (drive(envs, Script(steps=12), close=False) for envs in (clipped, free))
    assert_identical(clipped.get_own_state(), free.get_own_state())
    rewards, others = ([one.reward for one in joined(found)] for found in (traces, expected))
    assert rewards == np.clip(others, -0.3, 0.3).tolist() != others
    free.close()
    clipped.close()


@pytest.mark.parametrize("kind", [NormalizeObservation, NormalizeReward])
@pytest.mark.parametrize("clip", [0, -1.0, np.inf, "10"])
def test_a_clip_that_is_not_above_0_is_refused(kind, clip):
    envs = build("native", "pole", N)
    with pytest.raises(ValueError, match="`clip` must be a number above 0"):
        kind(envs, clip=clip)
    envs.close()
