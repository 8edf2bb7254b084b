"""Functions that write initial states have the results of the same environment of Gymnasium."""

import copy

import mujoco
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import cartwheel
import cartwheel.mujoco
from cartwheel.native.mujoco.simulations import CONSTANTS, needs_constants
from tests.support.comparison import assert_identical
from tests.support.reaching import LIMIT, OBSERVED, ROWS, TASK, XML, oracle_of

#: The target is observed, since functions see what is observed.
SEEN = (*OBSERVED, "mocap_pos")


def build(mode="NextStep", **keywords):
    given = {"observation": SEEN, "executor": "inline", **TASK, **keywords}
    return cartwheel.mujoco.make(XML, ROWS, autoreset_mode=mode, **given)


def drawn(rng, dtype=np.float32):
    return rng.uniform(-1.2, 1.2, (ROWS, 3)).astype(dtype)


def seen(envs, observations):
    """The part of observations that the oracle has: all but the target."""
    return np.ascontiguousarray(
        observations[..., : -envs.fields(observations)["mocap_pos"][0].size]
    )


def assert_equal_steps(envs, oracle, rng, steps):
    """Steps both, and resets rows that are over where no mode does; returns the ended episodes."""
    ends = 0
    for step in range(steps):
        actions = drawn(rng, (np.float32, np.float64)[step % 3 == 0])
        (observations, *outcomes, infos), expected = envs.step(actions), oracle.step(actions)
        assert_identical((seen(envs, observations), *outcomes), expected[:4])
        over = expected[2] | expected[3]
        ends += over.sum()
        if "final_obs" in expected[4]:
            finals = infos["final_obs"]
            assert_identical(infos["_final_obs"], expected[4]["_final_obs"])
            for row in np.flatnonzero(over):
                assert_identical(seen(envs, finals[row]), expected[4]["final_obs"][row])
        if envs.autoreset_mode == AutoresetMode.DISABLED and over.any():
            options = {"reset_mask": over}
            assert_identical(
                seen(envs, envs.reset(options=options)[0]), oracle.reset(options=options)[0]
            )
    return ends


THREADS = [{"executor": "inline"}, {"num_workers": 2}, {"num_workers": 7}]


@pytest.mark.parametrize("keywords", THREADS, ids=str)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_results_are_those_of_the_same_environment_of_gymnasium(tmp_path, mode, keywords):
    oracle, envs = oracle_of(tmp_path, mode), build(mode, **keywords)
    rng = np.random.default_rng(0)
    assert_identical(seen(envs, envs.reset(seed=3)[0]), oracle.reset(seed=3)[0])
    assert assert_equal_steps(envs, oracle, rng, 60) > 5
    options = {"reset_mask": np.arange(ROWS) % 2 == 0}
    seeds = [11, None, None, None, 12]
    assert_identical(
        seen(envs, envs.reset(seed=seeds, options=options)[0]),
        oracle.reset(seed=seeds, options=options)[0],
    )
    assert_equal_steps(envs, oracle, rng, 40)
    oracle.close()
    envs.close()


def play(envs, actions):
    results = []
    for action in actions:
        results.append(envs.step(action))
        over = results[-1][2] | results[-1][3]
        if envs.autoreset_mode == AutoresetMode.DISABLED and over.any():
            results.append(envs.reset(options={"reset_mask": over}))
    return results


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_a_state_continues_with_the_models_that_resets_wrote(mode):
    envs, others = build(mode, num_workers=2, executor="auto"), build(mode)
    envs.reset(seed=5)
    others.reset(seed=6)
    rng = np.random.default_rng(1)
    actions = [drawn(rng) for _ in range(LIMIT + 20)]
    shown = play(envs, actions[:15])[-1][0]
    state = envs.state_dict()
    masses = envs.get_attr("model.body_mass"), envs.get_attr("model.dof_invweight0")
    expected = play(envs, actions[15:])
    for _ in range(2):
        assert_identical(others.load_state_dict(state), shown)
        assert_identical(others.get_attr("model.body_mass"), masses[0])
        assert_identical(others.get_attr("model.dof_invweight0"), masses[1])
        assert_identical(play(others, actions[15:]), expected)
    for each in (envs, others):
        each.close()


def test_one_call_gets_all_rows_that_begin_and_the_others_keep_their_observations():
    calls = []

    def reset(rng, rows, fields):
        calls.append(rows.tolist())
        assert len(rng) == len(rows)
        fields["qpos"][:, 0] = 10 * rows + len(calls)

    envs = build("NextStep", reset=reset, terminated=None, max_episode_steps=3)
    first, _ = envs.reset(seed=1)
    np.testing.assert_array_equal(envs.fields(first)["qpos"][:, 0], 10 * np.arange(ROWS) + 1)
    options = {"env_index": [3, 1]}
    part, _ = envs.reset(options=options)
    np.testing.assert_array_equal(envs.fields(part)["qpos"][:, 0], [32, 12])
    mask = {"reset_mask": np.array([True, False, False, False, True])}
    masked, _ = envs.reset(options=mask)
    np.testing.assert_array_equal(envs.fields(masked)["qpos"][:, 0], [3, 12, 21, 32, 43])
    envs.reset_async(seed=4)
    np.testing.assert_array_equal(
        envs.fields(envs.reset_wait()[0])["qpos"][:, 0], 10 * np.arange(ROWS) + 4
    )
    every = list(range(ROWS))
    assert calls == [every, [1, 3], [0, 4], every]
    for _ in range(4):
        envs.step(np.zeros((ROWS, 3)))
    assert calls[4:] == [every]
    envs.close()


def numbers_of_each_kind(rng):
    """Numbers of each kind."""
    return (
        rng.random(3),
        rng.uniform(-1, [1.0, 2.0]),
        rng.uniform(size=(2, 3)),
        rng.standard_normal(),
        rng.normal([1.0, 2.0], 3.0, (2, 2)),
        rng.integers(7, size=4),
        rng.integers(-3, 2**40, endpoint=True),
        rng.integers(0, 5, size=3),
        rng.random(0),
        rng.random(),
    )


def test_random_numbers_are_those_of_the_rows_own_generators():
    got = []

    def reset(rng, _rows, _fields):
        got.append(numbers_of_each_kind(rng))

    envs = build(reset=reset)
    envs.reset(seed=9)
    rows = [np.random.default_rng(9 + row) for row in range(ROWS)]
    expected = [numbers_of_each_kind(rng) for rng in rows]
    for numbers, each in zip(got[0], zip(*expected, strict=True), strict=True):
        assert_identical(numbers, np.stack(each))
    assert_identical(envs.np_random[2].random(), rows[2].random())
    envs.close()


def test_noise_comes_before_the_function_and_without_noise_nothing_is_drawn():
    def reset(rng, _rows, fields):
        fields["mocap_pos"][:, 0, 0] = rng.random()
        assert (fields["ctrl"] == 0).all()

    quiet, noisy = (build(reset=reset, reset_noise_scale=scale) for scale in (0.0, 0.1))
    rngs = [np.random.default_rng(3 + row) for row in range(ROWS)]
    targets = quiet.fields(quiet.reset(seed=3)[0])["mocap_pos"][:, 0, 0]
    np.testing.assert_array_equal(targets, [rng.random() for rng in rngs])
    rngs = [np.random.default_rng(3 + row) for row in range(ROWS)]
    noise = np.array([rng.uniform(-0.1, 0.1, 6) for rng in rngs])
    fields = noisy.fields(noisy.reset(seed=3)[0])
    np.testing.assert_array_equal(fields["qpos"], noise[:, :3])
    np.testing.assert_array_equal(fields["mocap_pos"][:, 0, 0], [rng.random() for rng in rngs])
    for envs in (quiet, noisy):
        envs.close()


def test_fields_hold_present_values_and_models_keep_what_was_written():
    seen = []

    def reset(_rng, rows, fields):
        mass = fields["model.body_mass"]
        seen.append((rows.tolist(), mass[:, 4].tolist()))
        mass[:, 4] += 1.0 + rows

    envs = build("NextStep", reset=reset)
    envs.reset(seed=1)
    envs.reset(options={"env_index": [2]})
    assert seen == [(list(range(ROWS)), [0.1] * ROWS), ([2], [3.1])]
    masses = [model[4] for model in envs.get_attr("model.body_mass")]
    np.testing.assert_allclose(masses, [1.1, 2.1, 6.1, 4.1, 5.1])
    subtree = [model[2] for model in envs.get_attr("model.body_subtreemass")]
    np.testing.assert_allclose(subtree, np.array(masses) + 0.8)  # `mj_setConst` followed
    envs.close()


@pytest.mark.slow
def test_the_constants_of_models_depend_on_no_other_fields_and_are_all_saved():
    original = mujoco.MjModel.from_xml_string(XML)
    names = [
        name
        for name in dir(original)
        if isinstance(getattr(original, name), np.ndarray) and not name.startswith("_")
    ]

    def values(model):
        return {name: getattr(model, name).copy() for name in names}

    for name in names:
        if getattr(original, name).dtype != np.float64 or name in ("body_ipos", "body_iquat"):
            continue
        model = copy.copy(original)
        getattr(model, name)[...] = 1.25 * getattr(model, name) + 0.01
        before = values(model)
        mujoco.mj_setConst(model, mujoco.MjData(model))
        changed = [
            other
            for other, value in values(model).items()
            if not np.array_equal(value, before[other])
        ]
        assert {f"model.{other}" for other in changed} <= {*CONSTANTS, f"model.{name}"}, name
        assert not changed or needs_constants(f"model.{name}"), (name, changed)


def test_the_compensation_of_gravity_that_a_reset_wrote_is_saved():
    def reset(_rng, _rows, fields):
        fields["model.body_gravcomp"][:] = 1

    envs, others = (build(reset=each, terminated=None) for each in (reset, nothing))
    envs.reset(seed=1)
    others.reset(seed=1)
    others.load_state_dict(envs.state_dict())
    actions = [np.zeros((ROWS, 3))] * 3
    assert_identical(play(others, actions), play(envs, actions))
    for each in (envs, others):
        each.close()


def nothing(_rng, _rows, _fields):
    """Leaves the initial state."""
