"""Wrong calls of compiled functions are errors that name the way out, and nothing is stepped."""

import importlib
import os
import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError

import cartwheel
from cartwheel.wrappers import FrameStack
from tests.support.comparison import text_of

jax = pytest.importorskip("jax")
envs_to_jax = importlib.import_module("cartwheel.jax").envs_to_jax
take_apart = importlib.import_module("cartwheel._xla")._parts

pytestmark = pytest.mark.jax
ONES = np.ones(3, int)
RuntimeErrors = jax.errors.JaxRuntimeError


def done(result):
    """Waits for a result, which raises its error."""
    return jax.block_until_ready(result)


@pytest.mark.parametrize(
    "code",
    ["INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "FAILED_PRECONDITION", "UNIMPLEMENTED", "INTERNAL"],
)
def test_errors_of_calls_that_have_run_are_of_one_type(make, code):
    """JAX raises some of them as ``ValueError``, depending on how it called the function."""
    module = importlib.import_module("cartwheel.jax")
    envs, text = make(), f"{code}: row 1"

    def fails(*_):
        raise ValueError(text)

    calls = module.Calls(envs)
    calls.call = lambda *_: fails
    step = module.Step(envs, calls)
    with pytest.raises(RuntimeErrors, match=f"^{text}$"):
        step(np.uint32(0), ONES)
    text = "of a trace"
    with pytest.raises(ValueError, match="of a trace"):
        step(np.uint32(0), ONES)
    envs.close()


@pytest.fixture
def functions(make):
    """Three CartPoles after a reset: the environments, the functions and the state."""
    envs = make()
    init, step, reset = envs_to_jax(envs)
    return envs, init, step, reset, init(1)[0]


# When the functions are made


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda make: FrameStack(make(), 2), TypeError, "envs.unwrapped"),
        (lambda _: cartwheel.SyncVectorEnv([lambda: gym.make("CartPole-v1")]), TypeError, "Python"),
        (lambda _: "CartPole-v1", TypeError, "cartwheel.make_vec"),
        (lambda _: None, TypeError, "native environments"),
        (lambda make: make(batch_size=2), ValueError, "without `batch_size`"),
        (
            lambda make: make(autoreset_mode="same_step", final_obs="object"),
            ValueError,
            "final_obs='dense'",
        ),
        (lambda make: make(render_mode="human"), ValueError, "render_mode='human'"),
    ],
)
def test_environments_that_cannot_be_compiled_are_refused(make, monkeypatch, build, error, message):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    envs = build(make)
    with pytest.raises(error, match=re.escape(message)):
        envs_to_jax(envs)
    if isinstance(envs, gym.vector.VectorEnv):
        envs.close()


def test_a_pool_of_envpools_interface_has_its_own_functions():
    envs = cartwheel.envpool.make_gymnasium("CartPole-v1", num_envs=2)
    with pytest.raises(TypeError, match=r"envs\.xla\(\)"):
        envs_to_jax(envs)
    envs.close()


def test_rewards_in_python_are_refused():
    mujoco = importlib.import_module("cartwheel.mujoco")
    body = "<body><joint name='j'/><geom size='1'/></body>"
    motor = "<actuator><motor joint='j'/></actuator>"
    xml = f"<mujoco><worldbody>{body}</worldbody>{motor}</mujoco>"
    envs = mujoco.make(xml, 2, reward=lambda _: np.zeros(2))
    with pytest.raises(ValueError, match="rewards in Python"):
        envs_to_jax(envs)
    envs.close()


def test_closed_environments_are_refused(make):
    envs = make()
    envs.close()
    with pytest.raises(gym.error.ClosedEnvironmentError):
        envs_to_jax(envs)


# When a call is traced


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        (np.ones(2, int), ValueError, "must have shape (3,) (num_envs=3), got shape (2,)"),
        (np.ones((3, 1), int), ValueError, "got shape (3, 1)"),
        (1, ValueError, "got shape ()"),
        (np.ones(3), TypeError, "`actions` are float32, and the action space's dtype is int64"),
        ("left", TypeError, "`actions` must be an array"),
        (None, TypeError, "`actions` must be an array"),
        ({"a": 1}, TypeError, "`actions` must be an array"),
    ],
)
def test_actions_are_checked_when_they_are_traced(functions, actions, error, message):
    envs, _, step, _, state = functions
    begun = envs._pool.begun()
    for call in (step, jax.jit(step)) if isinstance(actions, np.ndarray) else (step,):
        with pytest.raises(error, match=re.escape(message)):
            call(state, actions)
    assert envs._pool.begun() == begun
    done(step(state, ONES))


@pytest.mark.parametrize(
    ("description", "words"),
    [
        (("dict", [("a", ("leaf", None))]), "a dictionary with the keys ['a'], got 3"),
        (("tuple", [("leaf", None)] * 2), "a tuple of 2 batches, got 3"),
    ],
)
def test_actions_that_are_not_nested_as_their_space_are_shown(description, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        list(take_apart(description, 3))


@pytest.mark.parametrize("state", [None, 3, ONES, "state", np.int32(3)])
def test_a_state_must_be_one(functions, state):
    _, _, step, reset, _ = functions
    with pytest.raises(TypeError, match="the first argument is the state"):
        step(state, ONES)
    with pytest.raises(TypeError, match="the first argument is the state"):
        reset(state, np.ones(3, bool))


@pytest.mark.parametrize(
    ("mask", "error"), [(np.ones(2, bool), ValueError), (ONES, TypeError), (None, TypeError)]
)
def test_a_mask_must_be_one(functions, mask, error):
    _, _, _, reset, state = functions
    with pytest.raises(error, match="`mask` must"):
        reset(state, mask)


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (-1, gym.error.Error, "-1"),
        ([1, 2], ValueError, "num_envs=3"),
        ([1, None, 2], ValueError, "3 integers, one for each row, got [1, None, 2]"),
        (2**63, ValueError, "below 2**63"),
        ([1, 2, 2**63], ValueError, "below 2**63"),
        ("seed", TypeError, "seed"),
        (jax.numpy.ones(3), TypeError, "float32 of shape (3,)"),
        (jax.numpy.ones(2, int), TypeError, "of shape (2,)"),
    ],
)
def test_seeds_are_checked(functions, seed, error, message):
    _, init, _, _, _ = functions
    with pytest.raises(error, match=re.escape(message)):
        init(seed)


def test_vmap_names_the_number_of_environments(functions):
    _, _, step, _, state = functions
    with pytest.raises(NotImplementedError, match="num_envs"):
        jax.vmap(lambda actions: step(state, actions))(np.ones((2, 3), int))


def test_gradients_name_stop_gradient(make):
    envs = make("Pendulum-v1")
    init, step, _ = envs_to_jax(envs)
    state, _ = init(1)

    def loss(parameter, stop):
        actions = jax.numpy.full((3, 1), 0.5) * parameter
        actions = jax.lax.stop_gradient(actions) if stop else actions
        _, timestep = step(state, actions)
        return (timestep.rewards * parameter).sum()

    for transformed in (jax.grad(loss), jax.jit(jax.grad(loss), static_argnums=1)):
        with pytest.raises(TypeError, match="stop_gradient"):
            transformed(1.0, False)
    assert np.isfinite(jax.grad(loss)(1.0, True))


def test_discrete_actions_of_a_policy_need_no_stop_gradient(functions):
    _, init, step, _, _ = functions

    @jax.jit
    @jax.grad
    def gradient(weights):
        state, timestep = init(1)

        def body(carry, _):
            state, observations = carry
            logits = observations @ weights
            state, timestep = step(state, logits.argmax(-1))
            return (state, timestep.observations), (logits[:, 0] * timestep.rewards).sum()

        return jax.lax.scan(body, (state, timestep.observations), None, 5)[1].sum()

    assert np.isfinite(gradient(jax.numpy.ones((4, 2)) * 0.1)).all()


# When a call runs


def test_an_old_state_names_init(functions):
    envs, init, step, _, state = functions
    newer, _ = done(step(state, ONES))
    begun = envs._pool.begun()
    with pytest.raises(RuntimeErrors, match=r"the state is old.*`init\(\)`"):
        done(step(state, ONES))
    assert envs._pool.begun() == begun
    newer, _ = done(step(newer, ONES))  # the newest state is still good
    envs.step(ONES)
    with pytest.raises(RuntimeErrors, match="the state is old"):
        done(step(newer, ONES))
    done(step(init()[0], ONES))


def test_a_state_keeps_its_number_although_the_next_takes_its_memory(functions):
    envs, _, step, reset, state = functions
    first = envs._pool.begun()

    @jax.jit
    def twice(state):
        newer, _ = step(state, ONES)
        newest, _ = reset(newer, np.zeros(3, bool))
        return state, newer, newest

    states = twice(state)
    assert [int(each) for each in states] == [first, first + 1, first + 2]
    assert int(state) == first
    again = jax.jit(lambda state: (step(state, ONES)[0], step(state, ONES)[0], state))
    with pytest.raises(RuntimeErrors, match=f"it is number {first + 2}, .* at {first + 3}"):
        done(again(states[-1]))
    assert int(states[-1]) == first + 2
    donated = jax.jit(step, donate_argnums=0)
    newest, _ = donated(jax.numpy.uint32(first + 3), ONES)
    newest, _ = done(donated(newest, ONES))
    assert int(newest) == envs._pool.begun() == first + 5


def test_a_compiled_function_raises_the_same_text_each_time(functions):
    _, _, step, _, state = functions
    compiled = jax.jit(step)
    newer, _ = done(compiled(state, ONES))
    for call in (compiled, step):
        for _ in range(3):
            # JAX calls functions that it has called before without Python.
            errors = RuntimeErrors if call is step else (RuntimeErrors, ValueError)
            with pytest.raises(errors, match=r"FAILED_PRECONDITION.*the state is old.*`init\(\)`"):
                done(call(state, ONES))
    done(compiled(newer, ONES))


def test_gradients_of_a_checkpoint_do_not_step_twice(make):
    envs = make("Pendulum-v1")
    init, step, _ = envs_to_jax(envs)

    def loss(parameter, state):
        actions = jax.lax.stop_gradient(jax.numpy.ones((3, 1)) * parameter)
        return jax.numpy.sin(step(state, actions)[1].observations * parameter).sum()

    state, _ = init(1)
    begun = envs._pool.begun()
    with pytest.raises((RuntimeErrors, ValueError), match="the state is old"):
        done(jax.value_and_grad(jax.checkpoint(loss))(1.0, state))
    assert envs._pool.begun() == begun + 1


def test_an_action_out_of_range_is_refused_before_anything_is_stepped(functions):
    envs, _, step, _, state = functions
    begun = envs._pool.begun()
    with pytest.raises(RuntimeErrors, match="action 2 of row 1 is not in Discrete"):
        done(jax.jit(step)(state, np.array([1, 2, 0])))
    with pytest.raises(RuntimeErrors, match="action -1 of row 2"):
        done(step(state, np.array([1, 1, -1], np.int8)))
    assert envs._pool.begun() == begun
    done(step(state, ONES))


def test_actions_that_are_not_numbers_are_refused(make):
    envs = make("Pendulum-v1")
    init, step, _ = envs_to_jax(envs)
    state, _ = init(1)
    with pytest.raises(RuntimeErrors, match="row 1"):
        done(step(state, np.array([[0.0], [np.nan], [0.0]], np.float32)))
    done(step(state, np.zeros((3, 1), np.float32)))


def test_episodes_that_are_over_name_reset(make):
    envs = make(autoreset_mode="disabled", max_episode_steps=1)
    init, step, reset = envs_to_jax(envs)
    state, timestep = done(step(init(1)[0], ONES))
    assert np.all(timestep.truncations)
    with pytest.raises(RuntimeErrors, match=r"over.*`reset\(state, mask\)`"):
        done(step(state, ONES))
    state, _ = reset(state, timestep.truncations)
    done(step(state, ONES))


def test_closed_environments_say_so(functions):
    envs, init, step, reset, state = functions
    envs.close()
    for call in (
        init,
        lambda: step(state, ONES),
        lambda: reset(state, np.ones(3, bool)),
        lambda: jax.jit(step)(state, ONES),
    ):
        with pytest.raises(RuntimeErrors, match=r"after a call to `close\(\)`"):
            done(call())


def test_a_pending_call_is_named(functions):
    envs, init, step, _, state = functions
    envs.step_async(ONES)
    for call in (init, lambda: step(state, ONES)):
        with pytest.raises(RuntimeErrors, match=r"old|a call to `step` is pending"):
            done(call())
    envs.step_wait()
    done(step(init()[0], ONES))


def test_a_step_that_timed_out_is_waited_for_outside(make):
    envs = make("Null-v0", 8, num_workers=2, work=50_000_000, timeout=0.02)
    init, step, _ = envs_to_jax(envs)
    state, _ = done(init())
    zeros = np.zeros(8, int)
    with pytest.raises(RuntimeErrors, match="a reset waits for them and drops their results"):
        done(step(state, zeros))
    with pytest.raises(AlreadyPendingCallError, match="pending call to `step`") as caught:
        envs.step(zeros)
    assert "`step_wait()` waits again" in text_of(caught.value)
    envs.step_wait()
    done(init())


def test_rows_in_flight_are_named(functions):
    envs, init, step, _, state = functions
    envs.send(ONES[:1], env_index=[1])
    with pytest.raises(RuntimeErrors, match=r"rows \[1\] are in flight|the state is old"):
        done(step(state, ONES))
    with pytest.raises(RuntimeErrors, match=r"rows \[1\] are in flight"):
        done(init())
    envs.recv()
    done(step(init()[0], ONES))


def test_a_rollout_that_is_recorded_is_named(functions):
    envs, init, step, _, state = functions
    envs.rollout(4)
    with pytest.raises(RuntimeErrors, match="the state is old"):
        done(step(state, ONES))
    with pytest.raises(RuntimeErrors, match="end_rollout"):
        done(init())
    envs.end_rollout()
    done(step(init()[0], ONES))


def test_a_forked_child_is_refused(functions):
    _, _, step, _, state = functions
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            functions[0].step(ONES)
        except cartwheel.ForkedProcessError:
            os.write(write, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 10) == b"refused"
    os.close(read)
    done(step(state, ONES))


def test_functions_are_not_copied(functions):
    _, _, step, _, _ = functions
    with pytest.raises(TypeError, match="cannot be pickled"):
        importlib.import_module("pickle").dumps(step)
    assert importlib.import_module("copy").deepcopy(step) is step
    assert "CartPole-v1" in repr(step)
