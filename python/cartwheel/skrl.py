"""The true next observations for skrl's agents. Needs ``pip install 'cartwheel[skrl]'``.

skrl's ``wrap_env(envs)`` takes the vector environments of cartwheel as they are. ``docs/trainers``
explains which autoreset mode is right, and why.
"""

from __future__ import annotations

from cartwheel._internal.versions import load

load("skrl", "skrl", "cartwheel.skrl", "2")
load("torch", "skrl", "cartwheel.skrl")

# ruff: noqa: E402 - they import what was loaded

from typing import Any

import numpy as np
import torch
from skrl.utils.spaces.torch import flatten_tensorized_space, tensorize_space

from cartwheel._device.sending import array_of
from cartwheel._internal import nested
from cartwheel.errors import named_rows
from cartwheel.vector.infos import failed_rows, is_dense

__all__ = ["TrueNextObservations"]


class TrueNextObservations:
    """Records the true next observation of an episode's last step. Put it before the agent.

    skrl's trainers record the observation that a step returns as the next one, and act on the same.
    In ``SAME_STEP`` that is the first observation of another episode wherever an episode ended: it
    is bootstrapped from after a truncation, and stored in replay memories. In ``NEXT_STEP`` the
    next observations are right, but every episode is followed by a transition that did not happen:
    from its last observation to the first of the next one, with reward 0 and not terminated. So use
    ``SAME_STEP`` and this class, which takes the rows that ended from ``infos["final_obs"]``. The
    other rows, and steps in which nothing ends, cost nothing.

    It serves every agent with ``record_transition``: those with a replay memory (DQN, DDPG, TD3,
    SAC and the like), and those that bootstrap at time limits (PPO and A2C with
    ``time_limit_bootstrap``). ``final_obs`` may have either form of :class:`cartwheel.VectorEnv`.

    Raises:
        TypeError: A class is made that has it after the agent, or an agent of JAX or Warp.

    Example:
        >>> import cartwheel
        >>> from cartwheel.skrl import TrueNextObservations
        >>> from skrl.agents.torch.dqn import DQN
        >>> from skrl.envs.wrappers.torch import wrap_env
        >>> class TrueDQN(TrueNextObservations, DQN):
        ...     pass
        >>> env = wrap_env(
        ...     cartwheel.make_vec("cartwheel/CartPole-v1", 4, autoreset_mode="same_step"),
        ...     verbose=False,
        ... )
        >>> env.close()
    """

    #: Of skrl's ``Agent``: the space of one row's observations, and where tensors are.
    observation_space: Any
    device: Any

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Raises ``TypeError`` if the agent is not PyTorch's, or has its own method before this."""
        super().__init_subclass__(**keywords)
        for base in cls.__mro__:
            if base.__module__.startswith(("skrl.agents.jax", "skrl.agents.warp")):
                raise TypeError(
                    "TrueNextObservations is for the agents of skrl.agents.torch, got "
                    f"{base.__name__} of {base.__module__}"
                )
        for base in cls.__mro__[1 : cls.__mro__.index(TrueNextObservations)]:
            own = "record_transition" in vars(base)
            if own and not issubclass(base, TrueNextObservations):
                raise TypeError(
                    "TrueNextObservations has no effect after the class of the agent: write "
                    f"`class {cls.__name__}(TrueNextObservations, {base.__name__})`"
                )

    def record_transition(
        self,
        *,
        next_observations: torch.Tensor,
        terminated: torch.Tensor,
        truncated: torch.Tensor,
        infos: dict[str, Any],
        **others: Any,
    ) -> None:
        """Records a step as the agent does, with the true next observations.

        Args:
            next_observations: As the environments return them, ``[N, size]``; not changed.
            terminated: Whether episodes have terminated, ``bool`` ``[N, 1]``.
            truncated: Whether episodes have been truncated, ``bool`` ``[N, 1]``.
            infos: The infos of the step, with ``final_obs`` where an episode ended.
            **others: The other arguments of skrl's method.

        Raises:
            ValueError: An episode ended and ``infos`` have no final observation of it: the
                environments are not in ``SAME_STEP``. Or the infos are those of more rows than the
                agent has: several agents share the environments.
        """
        over = (terminated | truncated).flatten()
        if over.any():
            told = {name: array_of(part) for name, part in infos.items()}  # also of NumpyToTorch
            rows = self._ended(over.cpu().numpy(), told)
            if len(rows):
                next_observations = next_observations.clone()
                next_observations[torch.as_tensor(rows)] = self._finals(rows, told["final_obs"])
        super().record_transition(  # type: ignore[misc]
            next_observations=next_observations,
            terminated=terminated,
            truncated=truncated,
            infos=infos,
            **others,
        )

    def _ended(self, over: Any, infos: dict[str, Any]) -> Any:
        """The rows that have a final observation, after a check that all have one."""
        ended = infos.get("_final_obs", np.zeros(len(over), np.bool_))
        if len(ended) != len(over):
            raise ValueError(
                f"the agent has {len(over)} rows and the infos are those of {len(ended)}: "
                "TrueNextObservations needs one agent for all environments; give each of several "
                "agents environments and a trainer of its own"
            )
        failed = failed_rows(infos)
        lost = over & ~ended if failed is None else over & ~ended & ~failed
        if lost.any():
            rows = named_rows(np.flatnonzero(lost).tolist())
            raise ValueError(
                f"the episodes of {rows} ended, and `infos` have no `final_obs` of them: make the "
                "environments with autoreset_mode='same_step'"
            )
        return np.flatnonzero(ended)

    def _finals(self, rows: Any, finals: Any) -> torch.Tensor:
        """The final observations of rows, as skrl's wrapper converts observations."""
        space = self.observation_space
        if is_dense(finals):
            batch = nested.take(space, nested.apply(array_of, finals), rows)
        else:
            batch = nested.stack(space, [nested.apply(array_of, final) for final in finals[rows]])
        tensors = tensorize_space(space, batch, device=self.device)
        return flatten_tensorized_space(tensors)
