"""RLlib's multi-agent environment runner, with environments that step at once."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium as gym
from ray.rllib.callbacks.utils import make_callback
from ray.rllib.env.env_context import EnvContext
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner
from ray.tune.registry import ENV_CREATOR, _global_registry

from cartwheel.native.plugins import without_module
from cartwheel.rllib.vector_multi_agent_env import AsyncVectorMultiAgentEnv

if TYPE_CHECKING:
    from collections.abc import Callable


class AsyncMultiAgentEnvRunner(MultiAgentEnvRunner):
    """RLlib's runner of multi-agent environments, which steps them in worker processes, at once.

    RLlib's own steps the environments of a runner one after another, and refuses the vectorization
    ``"async"``. Only the choice of the runner changes, by
    ``config.env_runners(env_runner_cls=AsyncMultiAgentEnvRunner, num_envs_per_env_runner=8)``: the
    environment is the registered one, ``gym_env_vectorize_mode`` is not read, and episodes are
    those of RLlib's runner with the same seed.

    Attributes:
        vector_kwargs: Keywords of :class:`AsyncVectorMultiAgentEnv`, such as ``num_workers``. A
            subclass sets them: ``class Runner(AsyncMultiAgentEnvRunner):
            vector_kwargs = {"num_workers": 4}``.
    """

    vector_kwargs: ClassVar[dict[str, Any]] = {}
    env: Any

    def make_env(self) -> None:
        """Makes ``num_envs_per_env_runner`` environments. RLlib calls this."""
        if self.env is not None:
            self.env.close()
        env_fn = functools.partial(self._creator(), self._env_context())
        self.env = AsyncVectorMultiAgentEnv(
            [env_fn] * self.config.num_envs_per_env_runner,
            check=not self.config.disable_env_checking,
            **self.vector_kwargs,
        )
        self.num_envs = self.env.num_envs
        self._needs_initial_reset = True
        make_callback(
            "on_environment_created",
            callbacks_objects=self._callbacks,
            callbacks_functions=self.config.callbacks_on_environment_created,
            kwargs={
                "env_runner": self,
                "metrics_logger": self.metrics,
                "env": self.env,
                "env_context": env_fn.args[0],
            },
        )

    def _env_context(self) -> EnvContext:
        config = self.config.env_config
        if isinstance(config, EnvContext):
            return config
        return EnvContext(
            config,
            worker_index=self.worker_index,
            num_workers=self.config.num_env_runners,
            remote=self.config.remote_worker_envs,
        )

    def _creator(self) -> Callable[[EnvContext], Any]:
        """Returns the function that makes one environment, without names of this process.

        Worker processes do not know what was registered here: they get the function itself, or the
        spec of an id of Gymnasium.

        Raises:
            ValueError: The config names no environment.
        """
        env: Any = self.config.env
        if not env:
            raise ValueError(
                "the config has no environment: config.environment(name), with a name that was "
                "registered by ray.tune.register_env."
            )
        if callable(env):
            return functools.partial(env)
        if _global_registry.contains(ENV_CREATOR, env):
            creator: Callable[[EnvContext], Any] = _global_registry.get(ENV_CREATOR, env)
            return creator
        return functools.partial(_make_registered, gym.spec(without_module(env)))


def _make_registered(spec: gym.envs.registration.EnvSpec, env_context: EnvContext) -> Any:
    # Gymnasium's checker knows no environments of several agents.
    return gym.make(spec, disable_env_checker=True, **env_context)
