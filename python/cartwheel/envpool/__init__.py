"""EnvPool's Python interface, over cartwheel's environments.

Example:
    >>> import numpy as np
    >>> from cartwheel import envpool  # instead of: import envpool
    >>> envs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=3, seed=7)
    >>> observations, info = envs.reset()
    >>> actions = np.zeros(envs.num_envs, np.int32)
    >>> observations, rewards, terminated, truncated, info = envs.step(actions)
    >>> rewards
    array([1., 1., 1.], dtype=float32)
    >>> info["elapsed_step"]
    array([1, 1, 1], dtype=int32)
    >>> envs.close()

A program changes ``import envpool`` to ``from cartwheel import envpool`` and nothing else, if its
environments are native, in Gymnasium's registry, or registered by :func:`register`. Spaces, shapes,
dtypes, keys of infos, attributes and methods are those of EnvPool 1.2.5: ``observation_space`` and
``action_space`` are the spaces of one environment, rewards are ``float32``, and integer
observations are ``int32``. :func:`make` lists the keywords.

These things differ on purpose:

* seeds: The same seed gives the episodes of Gymnasium, not those of EnvPool. The default seed is
  random, because EnvPool's 42 makes the runs of several programs equal. ``reset(seed=...)`` and
  ``seed(...)`` have an effect; EnvPool ignores them. If ``seed`` is a list, ``config["seed"]`` is
  the list; EnvPool shows 0.
* flags: ``terminated`` and ``truncated`` may both be true. EnvPool drops the termination then.
* discounts: The discount of a truncation is 1. EnvPool's 0 looks like a termination.
* bounds: Spaces that have no bounds in EnvPool, such as LunarLander-v3's, have Gymnasium's bounds.
  EnvPool's spaces exclude their own observations.
* infos: Infos that Gymnasium's environment has are all there, with their ``_key`` masks, because an
  environment in Python may leave out an info. There is no ``state`` of Acrobot-v1, which the
  observation contains, and there are no ``lives``, ``reward``, ``terminated`` and ``ram``, which
  belong to EnvPool's Atari environments.
* time steps: Observations also have the fields ``elapsed_step`` and ``info``, because the interface
  of dm_env has no other place for them. ``reward_spec`` and ``discount_spec`` are ``float32``, as
  the arrays are; EnvPool's are ``float64``. Infos of an environment have no specs, because an
  environment in Python does not declare them.
* masks: ``reset(options={"reset_mask": ...})`` returns all environments, which Gymnasium's vector
  wrappers expect. EnvPool returns the environments of the mask.
* frames: ``render()`` returns the frames of all environments, which Gymnasium's vector wrappers
  expect. EnvPool returns that of the environment ``render_env_id``, by default 0.
* misuse: Actions of a wrong kind, number or range raise exceptions, as does a ``recv`` without
  results. EnvPool casts or ignores them, hangs, or terminates the program.
* closing: ``close`` ends the workers, and later calls raise. EnvPool's pools continue.
* options: The options of environments are Gymnasium's (``map_name`` of FrozenLake-v1 is ``size`` in
  EnvPool). EnvPool's ``base_path``, ``from_pixels`` and the options of its renderer, such as
  ``render_width``, do not exist: the environment draws.
* specs: ``state_array_spec``, ``action_array_spec``, ``gen_config`` and the ``gymnasium_*`` spaces
  of ``spec`` do not exist. They describe the memory of EnvPool's core.
* xla: :meth:`GymnasiumEnvPool.xla` is for native environments, because those in Python cannot run
  inside a compiled function; other ``env_type`` do not have it. Wrong shapes and dtypes are errors,
  and ``recv`` with less than ``batch_size`` environments is one. Infos are ``env_id``, ``players``
  and ``elapsed_step``.
"""

from cartwheel._cartwheel import VERSION as __version__
from cartwheel.envpool.checks import EnvBusyError
from cartwheel.envpool.interfaces import DMEnvPool, GymEnvPool, GymnasiumEnvPool, StepType, TimeStep
from cartwheel.envpool.make import make, make_dm, make_gym, make_gymnasium, make_spec
from cartwheel.envpool.pool import EnvPool
from cartwheel.envpool.registry import list_all_envs, register
from cartwheel.envpool.spec import EnvSpec

__all__ = [
    "DMEnvPool",
    "EnvBusyError",
    "EnvPool",
    "EnvSpec",
    "GymEnvPool",
    "GymnasiumEnvPool",
    "StepType",
    "TimeStep",
    "__version__",
    "list_all_envs",
    "make",
    "make_dm",
    "make_gym",
    "make_gymnasium",
    "make_spec",
    "register",
]
