"""Functions that JAX compiles step native environments as `step` does, bit for bit."""

import gc
import importlib
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import cartwheel
from tests.support.cases import SHORT, Case, choose
from tests.support.mujoco_cases import case as mujoco_case

jax = pytest.importorskip("jax")
envs_to_jax = importlib.import_module("cartwheel.jax").envs_to_jax

pytestmark = pytest.mark.jax
#: JAX raises errors at the call of a compiled function as ``ValueError``.
CompiledErrors = (jax.errors.JaxRuntimeError, ValueError)
MODES = ["next_step", "same_step", "disabled"]
STEPS = 30
CASES = [*SHORT, mujoco_case("Hopper", max_episode_steps=7)]


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    jax.config.update("jax_enable_x64", request.param)
    yield request.param
    jax.config.update("jax_enable_x64", False)


def as_jax(batch):
    """A batch of NumPy with the dtypes of JAX."""
    return jax.tree.map(
        lambda array: np.asarray(array).astype(jax.dtypes.canonicalize_dtype(array.dtype)), batch
    )


def assert_equal(found, expected, message):
    """Equal structures, dtypes and bytes; floats that are not a number are equal, too."""
    found, expected = jax.tree.map(np.asarray, found), as_jax(expected)
    assert jax.tree.structure(found) == jax.tree.structure(expected), message
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert ours.dtype == theirs.dtype, message
        np.testing.assert_array_equal(ours, theirs, message)


def finals_of(infos):
    return {name: infos[name] for name in ("final_obs", "_final_obs") if name in infos}


def steps_outside(envs, case, mode, steps=STEPS, seed=5):
    """The actions of a run, and its results: of the first reset, and of each step."""
    random, num_envs = np.random.default_rng(seed), envs.num_envs
    observations, _ = envs.reset(seed=seed)
    first, actions, results = observations, [], []
    for _ in range(steps):
        actions.append(choose(case, observations, random, num_envs))
        observations, rewards, terminations, truncations, infos = envs.step(actions[-1])
        result = observations, rewards, terminations, truncations, finals_of(infos)
        over = terminations | truncations
        if mode == "disabled" and over.any():
            observations, _ = envs.reset(options={"reset_mask": over})
        results.append((result, observations))
    assert any((result[2] | result[3]).any() for result, _ in results), "an episode ends"
    return first, np.stack(actions), results


def scanned(envs, actions, mode, seed=5):
    """The same run inside of one compiled function."""
    init, step, reset = envs_to_jax(envs)

    def body(state, actions):
        state, timestep = step(state, actions)
        observations = timestep.observations
        if mode == "disabled":
            state, begun = reset(state, timestep.terminations | timestep.truncations)
            observations = begun.observations
        return state, (tuple(timestep), observations)

    @jax.jit
    def run(actions):
        state, first = init(seed)
        state, results = jax.lax.scan(body, state, actions)
        return first, results

    return run(actions)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("x64")
def test_a_scan_equals_steps_outside(make, case, mode):
    outside, inside = (make(case.env_id, 3, autoreset_mode=mode, **case.keywords) for _ in range(2))
    first, actions, results = steps_outside(outside, case, mode)
    begun, found = scanned(inside, actions, mode)
    assert_equal(begun.observations, first, "the reset")
    assert not np.any(begun.rewards)
    assert not np.any(begun.terminations | begun.truncations)
    if mode == "same_step":
        assert not np.any(begun.infos["_final_obs"])
    for number, expected in enumerate(results):
        at = jax.tree.map(lambda array, number=number: array[number], found)
        assert_equal(at, expected, f"step {number}")


@pytest.mark.parametrize("num_workers", [1, 2, 7])
def test_results_do_not_depend_on_threads(make, num_workers):
    case = Case("CartPole-v1", {"max_episode_steps": 11})
    outside, inside = (
        make(case.env_id, 500, num_workers=workers, **case.keywords) for workers in (1, num_workers)
    )
    _, actions, results = steps_outside(outside, case, "next_step", steps=12)
    _, found = scanned(inside, actions, "next_step")
    for number, expected in enumerate(results):
        at = jax.tree.map(lambda array, number=number: array[number], found)
        assert_equal(at, expected, f"step {number}")


def test_calls_outside_of_jit_equal_calls_inside(make):
    outside, inside = make(), make()
    observations, _ = outside.reset(seed=5)
    init, step, reset = envs_to_jax(inside)
    state, timestep = init(seed=5)
    assert_equal(timestep.observations, observations, "the reset")
    for _ in range(20):
        expected = outside.step([1, 0, 1])
        state, timestep = step(state, [1, 0, 1])
        assert_equal(tuple(timestep)[:4], expected[:4], "a step")
    mask = np.array([True, False, True])
    observations, _ = outside.reset(options={"reset_mask": mask})
    state, timestep = reset(state, mask)
    assert_equal(timestep.observations, observations, "some rows")
    assert not np.any(timestep.rewards)
    state, timestep = reset(state, np.zeros(3, bool))
    assert_equal(timestep.observations, observations, "no row")


def test_a_while_loop_runs_until_an_episode_ends(make):
    outside, inside = make(), make()
    outside.reset(seed=1)
    steps = 1
    while not any(outside.step([1, 1, 1])[2]):
        steps += 1
    init, step, _ = envs_to_jax(inside)

    @jax.jit
    def steps_until_the_end(state):
        def goes_on(carry):
            return ~carry[2].any()

        def advance(carry):
            state, count, _ = carry
            state, timestep = step(state, jax.numpy.ones(3, int))
            return state, count + 1, timestep.terminations

        return jax.lax.while_loop(goes_on, advance, (state, 0, jax.numpy.zeros(3, bool)))

    state, _ = init(seed=1)
    state, count, terminations = steps_until_the_end(state)
    assert int(count) == steps
    assert np.any(terminations)


def test_several_pools_step_in_one_function(make):
    kinds = ["CartPole-v1", "Pendulum-v1", "CartPole-v1"]
    inside, outside = [make(kind) for kind in kinds], [make(kind) for kind in kinds]
    functions = [envs_to_jax(envs) for envs in inside]

    @jax.jit
    def run(actions):
        states, _ = zip(*(init(seed) for seed, (init, _, _) in enumerate(functions)), strict=True)

        def body(states, actions):
            pairs = zip(functions, states, actions, strict=True)
            states, steps = zip(*(f[1](state, own) for f, state, own in pairs), strict=True)
            return states, [step.observations for step in steps]

        return jax.lax.scan(body, states, actions)[1]

    actions = [np.ones((8, *envs.action_space.shape), envs.action_space.dtype) for envs in inside]
    found = run(actions)
    for seed, (envs, own) in enumerate(zip(outside, found, strict=True)):
        envs.reset(seed=seed)
        for number in range(8):
            observations = envs.step(actions[seed][number])[0]
            assert_equal(own[number], observations, f"pool {seed}")


def test_a_step_whose_results_are_not_used_is_taken(make):
    outside, inside = make(), make()
    outside.reset(seed=3)
    for _ in range(4):
        expected, *_ = outside.step([0, 1, 1])
    init, step, _ = envs_to_jax(inside)

    @jax.jit
    def run(state):
        for _ in range(4):
            state, timestep = step(state, np.array([0, 1, 1]))
        return timestep.observations

    assert_equal(run(init(seed=3)[0]), expected, "the fourth step")


@pytest.mark.parametrize(
    "seed", [7, [5, 9, 2**40], np.array([1, 2, 3]), 2**32 - 2, 2**63 - 4], ids=str
)
def test_seeds_are_those_of_reset(make, seed):
    outside, inside = make(), make()
    observations, _ = outside.reset(seed=seed)
    init, _, _ = envs_to_jax(inside)
    assert_equal(init(seed)[1].observations, observations, "the reset")
    assert inside.np_random_seed == outside.np_random_seed


@pytest.mark.usefixtures("x64")
def test_seeds_may_be_traced(make):
    outside, inside = make(), make()
    init, _, _ = envs_to_jax(inside)
    traced = jax.jit(lambda seed: init(seed)[1].observations)
    for seed in (7, [5, 9, 11], 2**31 - 2):
        observations, _ = outside.reset(seed=seed)
        assert_equal(traced(jax.numpy.array(seed)), observations, f"the seed {seed}")
    if jax.config.jax_enable_x64:  # otherwise there are no such numbers
        observations, _ = outside.reset(seed=2**40 + 3)
        assert_equal(traced(jax.numpy.array(2**40 + 3)), observations, "a seed of two words")
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError), match=r"[Ss]eed"):
        jax.block_until_ready(traced(jax.numpy.array(-1)))


def test_rows_continue_their_random_numbers_without_a_seed(make):
    outside, inside = make(), make()
    outside.reset(seed=2)
    observations, _ = outside.reset()
    init, _, _ = envs_to_jax(inside)
    init(2)
    assert_equal(init()[1].observations, observations, "the second reset")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int32"])
def test_discrete_actions_may_have_any_integer_dtype(make, dtype):
    outside, inside = make(), make()
    outside.reset(seed=2)
    expected = outside.step(np.array([1, 0, 1]))[0]
    init, step, _ = envs_to_jax(inside)
    _, timestep = step(init(2)[0], jax.numpy.array([1, 0, 1], dtype))
    assert_equal(timestep.observations, expected, "a step")


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_actions_are_cast_to_floats_as_by_step(make, dtype):
    outside, inside = make("Pendulum-v1"), make("Pendulum-v1")
    outside.reset(seed=2)
    actions = np.array([[0.3], [-1], [2]]).astype(dtype)
    expected = outside.step(actions)[0]
    init, step, _ = envs_to_jax(inside)
    assert_equal(step(init(2)[0], actions)[1].observations, expected, "a step")


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "Hopper-v5"])
def test_floats_of_64_bits_are_read_as_by_step(make, env_id):
    outside, inside = make(env_id), make(env_id)
    outside.reset(seed=2)
    actions = np.full(outside.action_space.shape, 1 / 3)
    jax.config.update("jax_enable_x64", True)
    try:
        init, step, _ = envs_to_jax(inside)
        _, timestep = step(init(2)[0], actions)
        assert_equal(tuple(timestep)[:2], outside.step(actions)[:2], "a step")
    finally:
        jax.config.update("jax_enable_x64", False)


def test_steps_outside_of_compiled_functions_go_on_from_there(make):
    outside, inside = make(), make()
    outside.reset(seed=4)
    outside.step([1, 1, 1])
    init, step, _ = envs_to_jax(inside)
    state, _ = init(4)
    state, _ = step(state, [1, 1, 1])
    state.block_until_ready()
    for ours, theirs in zip(inside.step([0, 0, 0]), outside.step([0, 0, 0]), strict=True):
        np.testing.assert_equal(ours, theirs)


def test_masks_of_actions_from_infos_are_not_those_of_an_earlier_step(make):
    envs = make("Taxi-v4")
    envs.reset(seed=1)
    assert not envs.action_masks().all()
    init, step, _ = envs_to_jax(envs)
    jax.block_until_ready(step(init(1)[0], [0, 0, 0]))
    assert envs.action_masks().all()  # infos are left out, so nothing is known
    envs.step([0, 0, 0])
    assert not envs.action_masks().all()


def test_an_effect_is_for_xla_alone(make):
    functions, state, ones = envs_to_jax(make()), jax.numpy.uint32(0), np.ones(3, int)
    given = [(state,), (state, ones), (state, ones > 0)]
    for function, arguments in zip(functions, given, strict=True):
        # JAX calls functions with effects by way of Python.
        assert not jax.make_jaxpr(function)(*arguments).effects
        assert "has_side_effect = true" in jax.jit(function).lower(*arguments).as_text()


def test_a_step_that_nothing_uses_is_left_out(make):
    envs = make()
    init, step, _ = envs_to_jax(envs)
    state, _ = init(1)

    @jax.jit
    def run(state):
        step(state, np.ones(3, int))
        return state + 0

    begun = envs._pool.begun()
    assert int(run(state)) == int(state) == envs._pool.begun() == begun
    jax.block_until_ready(step(run(state), np.ones(3, int)))


def test_branches_and_loops_take_the_steps_of_their_turns(make):
    envs = make()
    init, step, _ = envs_to_jax(envs)
    state, _ = init(1)
    advance = jax.jit(
        lambda goes, state: jax.lax.cond(
            goes, lambda state: step(state, np.ones(3, int))[0], lambda state: state, state
        )
    )
    begun = envs._pool.begun()
    for goes in (False, True, False):
        state = advance(goes, state)
    assert int(state) == envs._pool.begun() == begun + 1
    # Nothing that a reset needs changes from turn to turn.
    starts = jax.jit(lambda: jax.lax.map(lambda _: init()[1].observations, np.arange(3)))()
    assert len(np.unique(np.asarray(starts), axis=0)) == 3
    assert envs._pool.begun() == begun + 4


def test_without_jit_a_loop_is_the_same(make):
    outside, inside = make(), make()
    outside.reset(seed=4)
    expected = [outside.step(np.ones(3, int))[0] for _ in range(3)]
    init, step, _ = envs_to_jax(inside)
    with jax.disable_jit():
        _, found = jax.lax.scan(step, init(4)[0], np.ones((3, 3), int))
    assert_equal(found.observations, np.stack(expected), "three steps")


def test_close_ends_a_running_scan(make):
    envs = make(num_envs=64)
    init, step, _ = envs_to_jax(envs)
    errors = []
    state, _ = init(1)
    begun = envs._pool.begun()

    @jax.jit
    def forever(state):
        def body(_, state):
            return step(state, jax.numpy.ones(64, int))[0]

        return jax.lax.fori_loop(0, 2**31 - 1, body, state)

    def run():
        try:
            forever(state).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    while envs._pool.begun() < begun + 100:
        pass
    envs.close()
    thread.join()
    assert "after a call to `close()`" in errors[0]


def test_collections_do_not_disturb_a_scan(make):
    init, step, _ = envs_to_jax(make())
    errors, actions = [], np.ones((20_000, 3), int)
    run = jax.jit(lambda state: jax.lax.scan(step, state, actions)[0])
    state = jax.block_until_ready(run(init(1)[0]))

    def scan():
        try:
            jax.block_until_ready(run(state))
        except jax.errors.JaxRuntimeError as error:
            errors.append(str(error))

    thread = threading.Thread(target=scan)
    thread.start()
    while thread.is_alive():
        gc.collect()
    assert not errors


COLLECT_IN_A_STEP = """
import gc
import jax
import mujoco
import cartwheel
from cartwheel.jax import envs_to_jax

envs = cartwheel.NativeVectorEnv("InvertedPendulum-v5", 2, executor="inline")
init, step, _ = envs_to_jax(envs)
state, _ = init(seed=1)
collected = []

def control(model, data):
    if not collected:
        collected.append(gc.collect())

mujoco.set_mjcb_control(control)
jax.block_until_ready(jax.jit(step)(state, jax.numpy.zeros((2, 1))))
mujoco.set_mjcb_control(None)
print(len(collected))
"""


def test_an_environment_may_collect_garbage_in_a_compiled_step():
    """A collection that waited for the end of the step, which waits for it, would never end."""
    program = [sys.executable, "-c", COLLECT_IN_A_STEP]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=200, check=False)
    assert ended.stdout == "1\n", ended.stderr


def test_a_compiled_function_does_not_keep_the_environments():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 3)
    init, step, reset = envs_to_jax(envs)
    state, _ = init(1)
    actions = jax.numpy.ones(3, int)
    compiled = jax.jit(step).lower(state, actions).compile()
    state, _ = compiled(state, actions)
    envs.close()
    with pytest.raises(CompiledErrors, match="after a call to `close"):
        jax.block_until_ready(compiled(state, actions))
    kept = weakref.ref(envs)
    del envs, init, step, reset
    jax.clear_caches()
    gc.collect()
    assert kept() is None
    with pytest.raises(CompiledErrors, match="closed and collected"):
        jax.block_until_ready(compiled(state, actions))


@pytest.mark.parametrize("num_envs", [1, 64, 1024], ids=["one", "small", "large"])
def test_arrays_of_steps_outside_are_taken_without_a_copy(make, num_envs, x64):
    envs = make(num_envs=num_envs, autoreset_mode="same_step")
    envs.reset(seed=1)
    *results, infos = envs.step(np.zeros(num_envs, np.int64))
    for array in [*results, infos["final_obs"], infos["_final_obs"]]:
        taken = jax.numpy.from_dlpack(array)
        if x64 or array.dtype != np.float64:
            assert taken.unsafe_buffer_pointer() == array.ctypes.data, (array.dtype, array.shape)
        np.testing.assert_array_equal(taken, array)


def test_arrays_of_results_outlive_the_environments(make):
    envs = make()
    init, step, _ = envs_to_jax(envs)
    state, _ = init(1)
    state, timestep = step(state, [1, 1, 1])
    before = np.array(timestep.observations)
    envs.close()
    np.testing.assert_array_equal(timestep.observations, before)
