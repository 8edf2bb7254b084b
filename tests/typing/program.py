"""A program of a user, which a type checker reads and which is never run.

Every line with ``type: ignore`` is wrong on purpose. In ``test_types.py`` mypy fails if it does not
refuse one of these lines, or if it refuses another line.
"""

from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_type

import cartwheel

Array = NDArray[Any]


class Model:
    """Has the interface of Stable-Baselines3's models."""

    def predict(
        self,
        observation: Any,
        state: tuple[Array, ...] | None = None,
        episode_start: Array | None = None,
        deterministic: bool = False,  # noqa: FBT001 - the signature of Stable-Baselines3
    ) -> tuple[Array, tuple[Array, ...] | None]:
        """Returns actions and no state."""
        del observation, state, episode_start, deterministic
        return np.zeros(1), None


def policy(observations: Array) -> Array:
    """Returns actions."""
    return observations[:, 2] > 0


# Vector environments need no annotation, and their batches are arrays.
env_fns = [lambda: gym.make("CartPole-v1")] * 2
envs = cartwheel.VectorEnv(env_fns)
observations, infos = envs.reset(seed=[1, 2])
assert_type(observations, Array)
assert_type(infos, dict[str, Any])
observations, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
assert_type(observations, Array)
assert_type(rewards, NDArray[np.float64])
assert_type(terminations, NDArray[np.bool_])
assert_type(envs.recv()[1], NDArray[np.float64])
assert_type(envs.rollout(8).observations, Array)
assert_type(envs.call("render"), tuple[Any, ...])
for preset in (cartwheel.SyncVectorEnv(env_fns), cartwheel.AsyncVectorEnv(env_fns)):
    assert_type(preset.reset()[0], Array)
build = partial(cartwheel.VectorEnv[Array, Array], executor="inline")
build(env_fns).close()

# Seeds are integers of Python or NumPy.
envs.reset(seed=np.int64(3))
envs.reset(seed=np.arange(2))
envs.reset(seed=[np.int32(1), None])
numbers: list[int] = [1, 2]
envs.reset(seed=numbers)
cartwheel.evaluate(envs, policy, seed=np.int64(3))

# Wrappers return what vector environments return.
Step = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]
wrapped = cartwheel.wrappers.NormalizeReward(cartwheel.wrappers.RecordEpisodeStatistics(envs))
assert_type(wrapped.reset(seed=1), tuple[Any, dict[str, Any]])
assert_type(wrapped.step([0, 1]), Step)
assert_type(wrapped.step_wait(), Step)
assert_type(wrapped.recv(), Step)

# Pools of EnvPool's interface.
pool = cartwheel.envpool.make("CartPole-v1", num_envs=2)
assert_type(pool, cartwheel.envpool.GymnasiumEnvPool)
Pooled = tuple[Any, NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]
assert_type(pool.step(np.zeros(2, np.int64)), Pooled)
assert_type(cartwheel.envpool.make("CartPole-v1", "dm"), cartwheel.envpool.DMEnvPool)
cartwheel.envpool.make("CartPole-v1", env_type="gym").step(np.zeros(1, np.int64))
cartwheel.envpool.make("CartPole-v1", "dmc")  # type: ignore[call-overload]

# Nested observations are named once.
words: cartwheel.VectorEnv[dict[str, Array], Array] = cartwheel.VectorEnv(env_fns)
assert_type(words.reset()[0], dict[str, Array])
cards: cartwheel.NativeVectorEnv[tuple[Array, ...]] = cartwheel.NativeVectorEnv("Blackjack-v1", 2)
assert_type(cards.reset()[0], tuple[Array, ...])

# Values that cannot be chosen.
cartwheel.VectorEnv(env_fns, executor="proces")  # type: ignore[arg-type]
cartwheel.VectorEnv(env_fns, on_error="ignore")  # type: ignore[arg-type]
cartwheel.VectorEnv(env_fns, on_worker_death="ignore")  # type: ignore[arg-type]
cartwheel.VectorEnv(env_fns, autoreset_mode="samestep")  # type: ignore[arg-type]
cartwheel.VectorEnv(env_fns, on_done="wait")  # type: ignore[arg-type]
cartwheel.VectorEnv(env_fns, num_workers="2")  # type: ignore[arg-type]
cartwheel.VectorEnv(env_fns, workers=2)  # type: ignore[call-arg]
cartwheel.NativeVectorEnv("CartPole-v1", 2, executor="process")  # type: ignore[arg-type]
cartwheel.make_vec("CartPole-v1", 2, executor="proces")  # type: ignore[call-overload]
cartwheel.make_vec("CartPole-v1", 2, on_error="ignore")  # type: ignore[call-overload]
cartwheel.make_vec("CartPole-v1", 2, vectorization_mode="fast")  # type: ignore[call-overload]
envs.step()  # type: ignore[call-arg]
envs.reset(seed="1")  # type: ignore[arg-type]

# A native id makes native environments; the id of another variable may name either kind.
native = cartwheel.make_vec("cartwheel/CartPole-v1", 2, autoreset_mode="same_step", gravity=1.0)
assert_type(native, cartwheel.NativeVectorEnv)
assert_type(native.env_id, str)
assert_type(
    cartwheel.make_vec("cartwheel/CartPole-v1", 2, vectorization_mode="sync"), cartwheel.VectorEnv
)
assert_type(
    cartwheel.make_vec("Pendulum-v1", 2, vectorization_mode="async", max_episode_steps=9),
    cartwheel.VectorEnv,
)
either = cartwheel.make_vec("CartPole-v1", 2, executor="process", num_workers=2)
assert_type(either, cartwheel.VectorEnv | cartwheel.NativeVectorEnv)
assert_type(either.step([0, 1])[0], Array)
assert_type(
    cartwheel.make_vec("CartPole-v1", 2, "sync", {"copy": False}),
    cartwheel.VectorEnv | cartwheel.NativeVectorEnv,
)

# Policies.
cartwheel.Collector(envs, policy, num_steps=8)
cartwheel.Collector(envs, lambda seen: (policy(seen), {"value": np.zeros(2)}), num_steps=8)
cartwheel.Collector(either, Model(), num_steps=8)
cartwheel.Collector(envs, object(), num_steps=8)  # type: ignore[arg-type]
cartwheel.Collector(envs, policy, until="done")  # type: ignore[arg-type]
evaluation = cartwheel.evaluate(native, Model(), episodes_per_env=2)
assert_type(evaluation.returns, NDArray[np.float64])
assert_type(evaluation.mean_return, float)
cartwheel.evaluate(native, np.zeros(2))  # type: ignore[call-overload]
rollout = cartwheel.Collector(envs, policy, num_steps=8).collect()
assert_type(rollout.rewards, NDArray[np.float64])
assert_type(rollout.valid, NDArray[np.bool_])
assert_type(rollout.transitions().rewards, NDArray[np.float64])
rollout.transitions("times")  # type: ignore[arg-type]
rollout.minibatches(8, by="rows")  # type: ignore[arg-type]
