"""A batched environment of TorchRL over environments of several agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from gymnasium.spaces import Dict
from gymnasium.vector import AutoresetMode, VectorEnv
from tensordict import TensorDict
from torchrl.data import Categorical, Composite, OneHot, Unbounded
from torchrl.envs import EnvBase
from torchrl.envs.libs.gym import _gym_to_torchrl_spec_transform

from cartwheel._internal.adapters import check_given, check_is_no_form, check_names
from cartwheel._internal.arguments import as_autoreset_mode, as_bool, as_env_fns
from cartwheel._internal.suggestions import keywords_of, shown
from cartwheel.multiagent import ParallelVectorEnv
from cartwheel.torchrl.env import check_form, chosen_rows, kept, not_copied, start_method
from cartwheel.torchrl.specs import check_space, stacked
from cartwheel.vector.action_masks import no_masks, num_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray
    from tensordict import TensorDictBase

_FLAGS = ("done", "terminated", "truncated")
_OWN_KEYWORDS = {
    name: name
    for name in (
        *("group_map", "use_mask", "categorical_actions", "done_on_any", "device"),
        "with_action_masks",
    )
}


class CartwheelAgentsEnv(EnvBase):
    """Steps a :class:`cartwheel.ParallelVectorEnv` as one batched environment of TorchRL.

    Example:
        >>> import pettingzoo
        >>> from cartwheel.torchrl import CartwheelAgentsEnv
        >>> make = lambda: pettingzoo.make("parallel", "classic/rps-v2")
        >>> env = CartwheelAgentsEnv([make] * 8, executor="inline")
        >>> env.rollout(10)["player", "action"].shape
        torch.Size([8, 10, 2])
        >>> env.close()

    Specs and tensordicts are those of ``torchrl.envs.PettingZooWrapper`` for each row, with the
    batch size ``[num_envs]``: each group of agents has ``"observation"``, ``"action"``,
    ``"reward"``, ``"done"``, ``"terminated"`` and ``"truncated"``, with a dimension of its agents;
    ``"mask"`` with ``use_mask``, and ``"action_mask"`` if observations have one. The flags at the
    root are those by which TorchRL resets rows; it resets only those rows. Infos are left out.

    :meth:`set_seed` resets at once: row ``i`` gets the seed ``s + i``.

    Args:
        envs: Functions that make environments of PettingZoo, as for
            :class:`cartwheel.ParallelVectorEnv`. Or such a vector environment, native or not, with
            ``autoreset_mode="disabled"``.
        group_map: The agents of each group; those of a group have equal spaces. By default agents
            with names such as ``"walker_0"`` and ``"walker_1"`` are the group ``"walker"``, as in
            ``PettingZooWrapper`` for parallel environments, and others a group of their own.
        use_mask: Whether groups have ``"mask"``: which agents live, and of those that take turns,
            which acts next. It is needed where agents end before others.
        categorical_actions: Whether discrete actions are integers; otherwise they are one-hot.
        done_on_any: Whether a row is done when any agent is, as for parallel environments in
            ``PettingZooWrapper``. Otherwise it is done when all agents are.
        device: The device of tensors. ``None``: they stay on the CPU, and tensordicts have none.
        with_action_masks: Whether all groups with discrete actions have ``"action_mask"``, for
            masks in infos: :meth:`cartwheel.ParallelVectorEnv.action_masks` of each step and reset.
        **keywords: Keywords of :class:`cartwheel.ParallelVectorEnv`, if ``envs`` are functions.
            With ``state=True`` there is ``"state"`` at the root. The default of ``context`` is
            ``"forkserver"``, as for :class:`CartwheelEnv`.

    Raises:
        ValueError: Another autoreset mode, batches of some rows, agents of a group with different
            spaces, a space that TorchRL cannot take, or masks of actions that are not discrete.
        TypeError: ``envs`` are something else, or a keyword does not exist.
        Exception: As for :class:`cartwheel.ParallelVectorEnv`.
    """

    def __init__(
        self,
        envs: Iterable[Callable[[], Any]] | ParallelVectorEnv,
        *,
        group_map: Mapping[str, list[Any]] | None = None,
        use_mask: bool = False,
        categorical_actions: bool = True,
        done_on_any: bool = True,
        device: Any = None,
        with_action_masks: bool = False,
        **keywords: Any,
    ) -> None:
        self._with_masks = as_bool("with_action_masks", with_action_masks)
        self._uses_mask = as_bool("use_mask", use_mask)
        categorical = as_bool("categorical_actions", categorical_actions)
        self._done_on_any = as_bool("done_on_any", done_on_any)
        check_names(type(self).__name__, keywords, keywords_of(ParallelVectorEnv), _OWN_KEYWORDS)
        check_is_no_form(type(self).__name__, envs)
        is_made = isinstance(envs, ParallelVectorEnv)
        own = _checked(envs, keywords) if is_made else _made(envs, keywords)
        try:
            super().__init__(device=device, batch_size=[own.num_envs], allow_done_after_reset=True)
            groups = _groups_by_name(own.possible_agents) if group_map is None else group_map
            self._groups = own.by_group(groups)
            self._envs = own
            #: The agent whose turn it is in each row; ``None`` if all act.
            self._turns: NDArray[np.object_] | None = None
            if use_mask and not own.metadata.get("is_parallelizable", True):
                self._turns = np.full(own.num_envs, None, np.object_)
            self.group_map: dict[str, list[Any]] = self._groups.groups
            self._make_specs(categorical=categorical)
            self.is_closed = False  # collectors close what is open
        except BaseException:
            if not is_made:
                own.close()
            raise

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuses to be pickled or copied: a copy would close the environments at its end."""
        raise not_copied(self)

    def _make_specs(self, *, categorical: bool) -> None:
        if self._with_masks and not any(map(self._has_masks, self.group_map)):
            raise no_masks(self._envs)
        specs: dict[str, dict[str, Any]] = {"observation": {}, "action": {}, "reward": {}}
        done: dict[str, Any] = dict.fromkeys(_FLAGS, self._flag_spec(1))
        for name, agents in self.group_map.items():
            space = self._groups.single_observation_spaces[name]
            actions = self._groups.single_action_spaces[name]
            check_space("observation", space)
            check_space("action", actions)
            size = len(agents)
            length = num_actions(actions)
            parts: dict[str, Any] = {}
            if self._has_masks(name):
                assert length is not None, "its actions are discrete"
                parts["action_mask"] = self._flag_spec(size, length)
            if self._masks_in(name):
                rest = {
                    key: part for key, part in space.spaces.items() if key != self._envs.action_mask
                }
                space = Dict(rest)
            if self._uses_mask:
                parts["mask"] = self._flag_spec(size)
            specs["observation"][name] = self._group(
                size, {"observation": self._spec(space, size), **parts}
            )
            action = self._spec(actions, size, categorical=categorical)
            specs["action"][name] = self._group(size, {"action": action})
            reward = Unbounded((self.num_envs, size, 1), dtype=torch.float32, device=self.device)
            specs["reward"][name] = self._group(size, {"reward": reward})
            done[name] = self._group(size, dict.fromkeys(_FLAGS, self._flag_spec(size, 1)))
        if self._envs.state_space is not None:
            check_space("state", self._envs.state_space)
            state = _gym_to_torchrl_spec_transform(
                stacked(self._envs.state_space, 0),
                remap_state_to_observation=False,
                device=self.device,
            )
            specs["observation"]["state"] = state.expand(self.num_envs, *state.shape)
        self.action_spec = self._group(None, specs["action"])
        self.observation_spec = self._group(None, specs["observation"])
        self.reward_spec = self._group(None, specs["reward"])
        self.done_spec = self._group(None, done)

    @property
    def num_envs(self) -> int:
        """The number of rows."""
        return int(self._envs.num_envs)

    def _group(self, size: int | None, parts: dict[str, Any]) -> Composite:
        shape = (self.num_envs,) if size is None else (self.num_envs, size)
        return Composite(parts, shape=shape, device=self.device)

    def _flag_spec(self, *shape: int) -> Categorical:
        return Categorical(n=2, shape=(self.num_envs, *shape), dtype=torch.bool, device=self.device)

    def _spec(self, space: Any, size: int, *, categorical: bool = False) -> Any:
        one = _gym_to_torchrl_spec_transform(
            stacked(space, 0),
            remap_state_to_observation=False,
            categorical_action_encoding=categorical,
            device=self.device,
        )
        return one.expand(self.num_envs, size, *one.shape)

    def _has_masks(self, name: str) -> bool:
        """Whether tensordicts have masks of the actions of a group."""
        from_infos = self._with_masks and self._envs.action_mask is not None
        is_discrete = num_actions(self._groups.single_action_spaces[name]) is not None
        return (from_infos and is_discrete) or self._masks_in(name)

    def _masks_in(self, name: str) -> bool:
        """Whether the observations of a group have masks of actions."""
        place = self._envs.possible_agents.index(self.group_map[name][0])
        return self._envs._batches.masks.in_observations[place]

    # Steps

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        actions = {name: self._actions(tensordict, name) for name in self.group_map}
        mask = tensordict.get("_step", None)
        if mask is not None and not mask.all():
            # Its rollout stops at an entry `_neg_step` of a group, also over PettingZooWrapper.
            raise RuntimeError(
                "TorchRL steps only the rows that are not over here (break_when_all_done=True), "
                "which its rollouts cannot do with groups of agents: use break_when_any_done=False"
            )
        observations, rewards, terminated, truncated, infos = self._groups.step(actions)
        found = self._read(observations, infos)
        ended: dict[str, list[NDArray[np.bool_]]] = {name: [] for name in _FLAGS}
        for name in self.group_map:
            gone = ~infos["present"][name] & ~infos["acted"][name]
            self._check_gone(name, gone, infos)
            flags = terminated[name] | gone, truncated[name] | gone
            each = (flags[0] | flags[1], *flags)
            found[name]["reward"] = torch.from_numpy(rewards[name].astype(np.float32)[..., None])
            for flag, values in zip(_FLAGS, each, strict=True):
                found[name][flag] = torch.from_numpy(values[..., None])
                ended[flag].append(values)
        for flag, parts in ended.items():
            values = np.concatenate(parts, axis=1)
            over = np.any if self._done_on_any else np.all
            whole: NDArray[np.bool_] = over(values, axis=1)
            if flag == "done":
                whole |= infos["episode_over"]
            found[flag] = torch.from_numpy(whole[:, None])
        return self._completed(found)

    def _actions(self, tensordict: TensorDictBase, name: str) -> Any:
        given = tensordict.get((name, "action"), None)
        if given is None:
            raise KeyError(f"the tensordict has no {(name, 'action')}")
        return self.full_action_spec[name, "action"].to_numpy(given, safe=False)

    def _check_gone(self, name: str, gone: NDArray[np.bool_], infos: dict[str, Any]) -> None:
        if self._uses_mask or self._done_on_any:
            return
        rows = np.flatnonzero(gone.any(axis=1) & ~infos["episode_over"])
        if len(rows):
            raise ValueError(
                f"agents of the group {name!r} have ended before others in the rows "
                f"{rows.tolist()}: pass use_mask=True, which tells which agents live."
            )

    def _acting(self, infos: dict[str, Any]) -> dict[str, NDArray[np.bool_]]:
        """Returns which agents live; of those that take turns, the one whose turn it is."""
        lives: NDArray[np.bool_] = self._envs._batches.lives
        if self._turns is not None:
            for agent in self._envs.possible_agents:
                shown = infos.get(agent, {})
                if "active_agent" in shown:  # of PettingZoo's conversion, the same for each agent
                    rows = shown["_active_agent"]
                    self._turns[rows] = shown["active_agent"][rows]
            lives = lives & [self._turns == agent for agent in self._envs.possible_agents]
        return {
            name: np.ascontiguousarray(lives[places].T)
            for name, places in self._groups._places.items()
        }

    def _read(self, observations: dict[str, Any], infos: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        has_masks = any(map(self._has_masks, self.group_map))
        masks = self._groups.action_masks() if has_masks else {}
        acting = self._acting(infos) if self._uses_mask else {}
        for name in self.group_map:
            group: dict[str, Any] = {}
            spec = self.full_observation_spec[name, "observation"]
            shown_by = observations[name]
            if self._masks_in(name):
                shown_by = {
                    key: part for key, part in shown_by.items() if key != self._envs.action_mask
                }
            if self._has_masks(name):
                allowed = torch.from_numpy(masks[name])
                group["action_mask"] = allowed
                action = self.full_action_spec[name, "action"]
                if isinstance(action, Categorical | OneHot):
                    action.update_mask(allowed.to(action.device))
            group["observation"] = _encoded(spec, shown_by, 2)
            if self._uses_mask:
                group["mask"] = torch.from_numpy(acting[name])
            found[name] = group
        if self._envs.state_space is not None:
            found["state"] = _encoded(self.full_observation_spec["state"], infos["state"], 1)
        return found

    def _completed(self, found: dict[str, Any]) -> TensorDictBase:
        for name, agents in self.group_map.items():
            found[name] = TensorDict(found[name], batch_size=[self.num_envs, len(agents)])
        result = TensorDict(found, batch_size=self.batch_size)
        return result if self.device is None else result.to(self.device)

    # Resets

    def _reset(self, tensordict: TensorDictBase | None = None, **keywords: Any) -> TensorDictBase:
        mask = chosen_rows(tensordict, keywords)
        if mask is not None and not mask.any():
            return kept(self, tensordict)
        observations, infos = self._groups.reset(**keywords)
        if self._turns is not None:  # the infos of a reset do not tell
            self._turns[:] = self._envs.get_attr("agent_selection")
        found = self._read(observations, infos)
        for name, agents in self.group_map.items():
            none = torch.zeros((self.num_envs, len(agents), 1), dtype=torch.bool)
            found[name].update({flag: none.clone() for flag in _FLAGS})
        found.update({flag: torch.zeros((self.num_envs, 1), dtype=torch.bool) for flag in _FLAGS})
        return self._completed(found)

    def _set_seed(self, seed: int | None) -> None:
        self.reset(seed=seed)

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Closes the environments and ends their workers."""
        self._envs.close()
        super().close(raise_if_closed=raise_if_closed)


def _encoded(spec: Any, values: Any, axis: int) -> Any:
    """Returns a batch of observations as a tensor, or tensors in a tensordict.

    Parts of a tuple are stacked along ``axis``, behind the dimensions of the batch.
    """
    if isinstance(values, dict):
        return TensorDict(
            {key: _encoded(spec[key], value, axis) for key, value in values.items()},
            batch_size=spec.shape,
        )
    if isinstance(values, tuple):
        values = np.stack(values, axis)
    if tuple(spec.shape) == values.shape:
        return torch.from_numpy(np.ascontiguousarray(values))
    return spec.encode(values, ignore_device=True)


def _groups_by_name(agents: list[Any]) -> dict[str, list[Any]]:
    """Returns the groups of TorchRL: agents ``name_0``, ``name_1`` are the group ``name``."""
    groups: dict[str, list[Any]] = {}
    for agent in agents:
        name, _, number = str(agent).rpartition("_")
        groups.setdefault(name if name and number.isdigit() else str(agent), []).append(agent)
    return groups


def _made(env_fns: Any, keywords: dict[str, Any]) -> ParallelVectorEnv:
    if isinstance(env_fns, VectorEnv):
        raise TypeError(
            f"CartwheelAgentsEnv steps environments of several agents, got {shown(env_fns)}: use "
            "CartwheelEnv."
        )
    keywords = {"autoreset_mode": AutoresetMode.DISABLED, "context": None, **keywords}
    env_fns = as_env_fns(env_fns)
    mode = as_autoreset_mode(keywords["autoreset_mode"])
    check_form(mode, keywords.get("batch_size"), len(env_fns))
    context = keywords["context"] or start_method()
    return ParallelVectorEnv(env_fns, **{**keywords, "context": context})


def _checked(envs: Any, keywords: dict[str, Any]) -> ParallelVectorEnv:
    check_given(CartwheelAgentsEnv.__name__, envs._pool, keywords)
    check_form(envs.autoreset_mode, envs.batch_size, envs.num_envs)
    own: ParallelVectorEnv = envs
    return own
