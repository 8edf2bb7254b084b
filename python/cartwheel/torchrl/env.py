"""A batched environment of TorchRL over a vector environment."""

from __future__ import annotations

import multiprocessing
import weakref
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from gymnasium.spaces import Dict, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from tensordict import TensorDict
from torchrl.data import Binary
from torchrl.envs import GymLikeEnv

from cartwheel._internal import nested
from cartwheel._internal.adapters import (
    check_given,
    check_mode,
    check_names,
    check_one_agent,
    check_whole_batches,
)
from cartwheel._internal.arguments import as_autoreset_mode, as_bool, as_env_fns
from cartwheel._internal.reset_arguments import check_chooses_no_rows
from cartwheel._internal.rewards import check_rewards_are_numbers
from cartwheel._internal.suggestions import keywords_of, shown
from cartwheel._internal.versions import autoreset_mode_of
from cartwheel.torchrl.specs import Specs, check_space, named_readers, reader
from cartwheel.vector.action_masks import no_masks, num_actions
from cartwheel.vector.base import PoolVectorEnv
from cartwheel.vector.calls import Calls
from cartwheel.vector.vector_env import VectorEnv
from cartwheel.wrappers.base import VectorWrapper

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from tensordict import TensorDictBase
    from torchrl.envs import EnvBase

    from cartwheel._internal.arguments import EnvFn

_FLAGS = ("done", "terminated", "truncated")
#: Keywords that are not those of :class:`cartwheel.VectorEnv`.
_OWN_KEYWORDS = {
    name: name for name in ("categorical_action_encoding", "device", "with_action_masks")
}
#: The entry of masks of actions, as in TorchRL's ``PettingZooWrapper`` and ``ActionMask``.
_MASK = "action_mask"


class CartwheelEnv(GymLikeEnv):
    """Steps a vector environment as one batched environment of TorchRL.

    Example:
        >>> import cartwheel
        >>> from torchrl.collectors import Collector
        >>> from cartwheel.torchrl import CartwheelEnv
        >>> envs = cartwheel.make_vec("cartwheel/CartPole-v1", 8, autoreset_mode="disabled")
        >>> env = CartwheelEnv(envs, categorical_action_encoding=True)
        >>> for batch in Collector(env, frames_per_batch=800, total_frames=1600):
        ...     print(batch["next", "reward"].shape)
        torch.Size([8, 100, 1])
        torch.Size([8, 100, 1])

    Specs, rollouts and what collectors yield equal those of ``torchrl.envs.GymWrapper`` around
    Gymnasium's ``SyncVectorEnv`` in the mode ``DISABLED``, bit for bit. This holds for native
    environments, too. TorchRL resets finished rows itself; here a reset of some rows is one call.

    Tensors. The batch size is ``[num_envs]``. The observation is ``"observation"``; those of a
    ``Dict`` space have their own keys. ``"reward"`` is ``float32``, and ``"done"``,
    ``"terminated"`` and ``"truncated"`` are ``bool``, all of shape ``[num_envs, 1]``. Observations
    of ``Box`` and ``MultiBinary`` spaces share memory with the arrays of the vector environment,
    which are never overwritten: a tensor keeps its values for as long as it is referenced.

    Seeds. :meth:`set_seed` resets at once, as ``GymWrapper``'s does: row ``i`` gets the seed ``s +
    i``. Later resets continue the random numbers.

    Infos are read only by readers: :meth:`set_info_dict_reader`, :meth:`auto_register_info_dict`.
    A key of infos is an array with one value for each row.

    Attributes that TorchRL does not have are those of the vector environment: ``env.stats()``,
    ``env.call("render")``. :meth:`close` closes it.

    Args:
        envs: Functions that make the environments, as for :class:`cartwheel.VectorEnv`. Or a vector
            environment of cartwheel with ``autoreset_mode="disabled"``, native or not, with or
            without wrappers. (With wrappers of Gymnasium, some rows cannot be stepped without the
            others, as ``rollout(…, break_when_all_done=True)`` needs it.)
        categorical_action_encoding: Whether discrete actions and observations are integers, as
            ``GymWrapper`` understands it; by default they are one-hot.
        device: The device of tensors. ``None``: they stay on the CPU, and tensordicts have none.
        with_action_masks: Whether tensordicts have ``"action_mask"``, ``bool`` of shape
            ``[num_envs, actions]``: :meth:`cartwheel.VectorEnv.action_masks` of each step and
            reset, for the transform ``ActionMask`` and for masked distributions. An observation of
            this name is replaced.
        **keywords: Keywords of :class:`cartwheel.VectorEnv`, if ``envs`` are functions. The default
            of ``context`` is ``"forkserver"``, because forking a program that uses PyTorch's
            threads or CUDA is not safe for environments that use them, too.

    Raises:
        ValueError: Another autoreset mode, a ``batch_size`` below the number of environments, or a
            space that TorchRL cannot take: ``Text``, ``Graph``, ``Sequence``, ``OneOf``, tuples of
            unequal parts, discrete spaces that do not start at 0.
        TypeError: ``envs`` is a vector environment of another library or of several agents, or
            returns tensors; keywords go with a vector environment, or do not exist; or
            ``categorical_action_encoding`` is not a ``bool``.
        gymnasium.error.ClosedEnvironmentError: The vector environment is closed.
        Exception: As for :class:`cartwheel.VectorEnv`.
    """

    def __init__(
        self,
        envs: Iterable[EnvFn] | GymnasiumVectorEnv[Any, Any, Any],
        *,
        categorical_action_encoding: bool = False,
        device: Any = None,
        with_action_masks: bool = False,
        **keywords: Any,
    ) -> None:
        self._categorical = as_bool("categorical_action_encoding", categorical_action_encoding)
        self._with_masks = as_bool("with_action_masks", with_action_masks)
        check_names("CartwheelEnv", keywords, keywords_of(VectorEnv), _OWN_KEYWORDS)
        check_one_agent("CartwheelEnv", envs, "use CartwheelAgentsEnv")
        is_vector = isinstance(envs, GymnasiumVectorEnv)
        vector = _checked(envs, keywords) if is_vector else _made(envs, keywords)
        try:
            check_rewards_are_numbers(vector, "CartwheelEnv")
            check_space("observation", vector.single_observation_space)
            check_space("action", vector.single_action_space)
            if self._with_masks:
                check_masks(vector)
            super().__init__(env=vector, device=device, batch_size=[vector.num_envs])
        except BaseException:
            if not is_vector:
                vector.close()
            raise

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuses to be pickled or copied: a copy would close the environments at its end."""
        raise not_copied(self)

    # Required of a TorchRL wrapper

    def _check_kwargs(self, kwargs: dict[str, Any]) -> None:
        """Does nothing: the arguments are checked already."""

    def _build_env(self, env: Any) -> Any:
        return env

    def _init_env(self) -> None:
        """Does nothing: the first reset is TorchRL's."""

    def _make_specs(self, env: Any) -> None:
        specs = Specs(env, categorical=self._categorical, device=self.device)
        self.done_spec = specs.done
        self.action_spec = specs.action
        self.reward_spec = specs.reward
        self.observation_spec = specs.observation
        if self._with_masks:
            length = num_actions(env.single_action_space)
            self.observation_spec[_MASK] = Binary(
                n=length, shape=(env.num_envs, length), dtype=torch.bool, device=self.device
            )
        self._column = (env.num_envs, 1)
        self._readers: Any = (
            named_readers(env.observation_space, self.observation_spec)
            if isinstance(env.observation_space, Dict)
            else reader(env.observation_space, self.observation_spec["observation"])
        )
        #: Makes an array of an action; ``None`` for a ``Dict`` space.
        self._as_array = None if isinstance(env.action_space, Dict) else specs.action.to_numpy
        self._action_shape = specs.action.shape
        #: Whether rows that are not reset repeat the observation that they showed last.
        self._repeats = _repeats_rows(env)
        #: Observations, in tensordicts.
        self._leaves = list(self.observation_spec.keys(True, True))
        #: References to the observations of the last step of all rows, while no other call is made.
        self._shown: list[weakref.ref[Any]] = []
        self._calls = Calls(env)

    def _output_transform(self, step: Any) -> Any:
        observations, rewards, terminations, truncations, infos = step
        over = terminations | truncations
        return observations, rewards, terminations, truncations, over, infos

    def _reset_output_transform(self, reset: Any) -> Any:
        return reset

    # Steps

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        actions = self._actions(tensordict)
        mask = tensordict.get("_step", None)
        partial = mask is not None and not mask.all()
        step = self._step_rows(actions, mask) if partial else self._env.step(actions)
        observations, rewards, terminations, truncations, over, infos = self._output_transform(step)
        found = self._read(observations)
        found["reward"] = torch.from_numpy(rewards.astype(np.float32).reshape(self._column))
        for name, flags in zip(_FLAGS, (over, terminations, truncations), strict=True):
            found[name] = torch.from_numpy(flags.reshape(self._column))
        stepped = self._completed(found, infos)
        if partial:
            root = tensordict.select(*stepped.keys(True, True), strict=False)
            return stepped.where(mask.reshape(-1), root, pad=0)
        self._shown[:] = [weakref.ref(stepped.get(leaf)) for leaf in self._leaves]
        self._calls.note()
        return stepped

    def _actions(self, tensordict: TensorDictBase) -> Any:
        if self._as_array is not None:
            action = tensordict.get("action")
            if action is None or action.shape != self._action_shape:
                self._refuse_shape(action)
            return self._as_array(action, safe=False)
        return self.full_action_spec.to_numpy(tensordict.select(*self.action_keys).to_dict())

    def _refuse_shape(self, action: Any) -> None:
        """Raises for an action that is missing or has another shape than its spec."""
        if action is None:
            raise KeyError('the tensordict has no "action"')
        spaces = Discrete | MultiDiscrete
        is_one_hot = not self._categorical and isinstance(self._env.single_action_space, spaces)
        remedy = ", one-hot; categorical_action_encoding=True takes integers" if is_one_hot else ""
        raise ValueError(
            f"actions must have the shape {tuple(self._action_shape)}{remedy}; got the shape "
            f"{tuple(action.shape)}"
        )

    def _step_rows(self, actions: Any, mask: Any) -> Any:
        """Steps some rows; arrays of the result have zeros for the others.

        Raises:
            RuntimeError: Wrappers of Gymnasium, which step all rows, are around the environments.
        """
        if not getattr(self._env, "steps_rows", False):
            raise RuntimeError(
                "TorchRL steps only the rows that are not over here (break_when_all_done=True), "
                f"and {self._env} steps all: use the wrappers of cartwheel.wrappers"
            )
        rows = np.flatnonzero(mask.numpy(force=True))

        def spread(part: Any) -> Any:
            whole = np.zeros((self._env.num_envs, *part.shape[1:]), part.dtype)
            whole[rows] = part
            return whole

        step = self._env.step(nested.at(actions, rows), env_index=rows)
        return nested.apply(spread, step)

    def _read(self, observations: Any) -> dict[str, Any]:
        if isinstance(self._readers, list):
            found = {name: read(observations[key]) for key, name, read in self._readers}
        else:
            found = {"observation": self._readers(observations)}
        if self._with_masks:
            masks = self._env.action_masks(range(self._env.num_envs))
            found[_MASK] = torch.from_numpy(masks)
        return found

    def _completed(self, found: dict[str, Any], infos: dict[str, Any]) -> TensorDictBase:
        """Makes the tensordict, and adds the results of info readers."""
        result = TensorDict._new_unsafe(found, batch_size=self.batch_size)
        if self.device is not None:
            result = result.to(self.device)
        for read_infos in self.info_dict_reader:
            read = read_infos(infos, result)
            result = result if read is None else read
        return result

    # Resets

    def _reset(self, tensordict: TensorDictBase | None = None, **keywords: Any) -> TensorDictBase:
        rows = chosen_rows(tensordict, keywords)
        if rows is not None and not rows.any():
            return kept(self, tensordict)
        observations, infos = self._reset_output_transform(self._env.reset(**keywords))
        found = self._read(observations)
        found.update({name: torch.zeros(self._column, dtype=torch.bool) for name in _FLAGS})
        return self._completed(found, infos)

    def _set_seed(self, seed: int | None) -> None:
        self.reset(seed=seed)

    def maybe_reset(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Resets the rows that are done, as TorchRL's method does, in less time.

        A reset of some rows returns the observations of all rows. If the tensordict shows what the
        last step returned, no observation is left to choose row by row.
        """
        quick = self._repeats and not self.info_dict_reader and self._shows_last_step(tensordict)
        if not quick:
            return super().maybe_reset(tensordict)
        done = tensordict.get("done")
        over = done.numpy(force=True)
        if not over.any():
            return tensordict
        rows = TensorDict._new_unsafe({"_reset": done}, batch_size=self.batch_size)
        return _renewed(tensordict, self._reset(rows), None if over.all() else done)

    def _shows_last_step(self, tensordict: TensorDictBase) -> bool:
        return (
            len(self._shown) > 0
            and all(
                tensordict.get(leaf, None) is shown()
                for leaf, shown in zip(self._leaves, self._shown, strict=True)
            )
            and _is_plain(tensordict)
            and not self._calls.others()
        )

    # Work of TorchRL that is not needed

    def _create_done_specs(self) -> None:
        """Does nothing: there are all three flags.

        TorchRL's has a local function that refers to itself and to the environment. So the
        environment would stay until a garbage collection.
        """

    @classmethod
    def _complete_done(cls, done_spec: Any, result: TensorDictBase) -> TensorDictBase:
        """Returns the result: it has all three flags."""
        del done_spec
        return result

    def _step_proc_data(self, result: TensorDictBase) -> TensorDictBase:
        """Returns the result, whose shapes are right; ``run_type_checks`` is respected."""
        return super()._step_proc_data(result) if self.run_type_checks else result


def not_copied(env: EnvBase) -> TypeError:
    """The error of an environment that is to be pickled or copied."""
    return TypeError(
        f"{type(env).__name__} cannot be pickled or copied, because its environments cannot be: "
        "pass a function that makes one."
    )


def chosen_rows(
    tensordict: TensorDictBase | None, keywords: dict[str, Any]
) -> NDArray[np.bool_] | None:
    """Returns the rows that a reset is of, and adds them to its options; ``None`` for all rows.

    Raises:
        ValueError: The options choose rows.
    """
    options = keywords.get("options")
    check_chooses_no_rows(options, "the entry '_reset' of the tensordict does")
    mask = None if tensordict is None else tensordict.get("_reset", None)
    if mask is None:
        return None
    rows: NDArray[np.bool_] = mask.numpy(force=True).reshape(-1)
    keywords["options"] = {**(options or {}), "reset_mask": rows}
    return rows


def kept(env: EnvBase, tensordict: TensorDictBase) -> TensorDictBase:
    """Returns what a reset of no environment returns: as of ``SerialEnv``, what it was given.

    Raises:
        RuntimeError: The tensordict has no observation that could be returned.
    """
    leaves = list(env.observation_spec.keys(True, True))
    given = tensordict.select(*leaves, *env.done_keys, strict=False)
    missing = set(leaves).difference(given.keys(True, True))
    if missing:
        raise RuntimeError(
            f"`_reset` selects no environment, and the tensordict has no {min(missing)!r} that "
            "could be returned: pass what the last step or reset returned"
        )
    return env.full_done_spec.zero().update(given)


def check_masks(envs: Any) -> None:
    """Checks that environments may have masks of actions.

    Raises:
        ValueError: They cannot.
    """
    innermost = envs.unwrapped
    if innermost.action_mask is None or num_actions(innermost.single_action_space) is None:
        raise no_masks(innermost)


def _repeats_rows(envs: Any) -> bool:
    """Whether all wrappers, if any, are cartwheel's; others may transform a row anew."""
    while isinstance(envs, VectorWrapper):
        envs = envs.env
    return isinstance(envs, PoolVectorEnv)


def _is_plain(tensordict: TensorDictBase) -> bool:
    """Whether there are only tensors in the tensordict: no lazy stacks, no other objects."""
    return type(tensordict) is TensorDict and all(
        isinstance(entry, torch.Tensor) or _is_plain(entry) for entry in tensordict.values()
    )


def _renewed(tensordict: TensorDictBase, fresh: Any, done: Any) -> TensorDictBase:
    """Returns the tensordict after a reset, which brought ``fresh``.

    Entries without a value from the reset, such as those of a policy, are zero in the rows of
    ``done``, as in TorchRL; unless all rows were reset, then ``done`` is ``None``.
    """
    entries = {**dict(fresh.items()), **dict(tensordict.items())}
    for name, entry in entries.items():
        brought = fresh.get(name, None)
        if not isinstance(entry, torch.Tensor):
            entries[name] = _renewed(entry, {} if brought is None else brought, done)
        elif brought is not None:
            entries[name] = brought
        elif done is not None:
            over = done.view(-1, *[1] * (entry.ndim - 1))
            entries[name] = entry.masked_fill(over, 0)
    return TensorDict._new_unsafe(
        entries, batch_size=tensordict.batch_size, device=tensordict.device
    )


def _made(env_fns: Any, keywords: dict[str, Any]) -> VectorEnv[Any, Any]:
    env_fns = as_env_fns(env_fns)
    keywords = {"autoreset_mode": AutoresetMode.DISABLED, "context": None, **keywords}
    check_form(
        as_autoreset_mode(keywords["autoreset_mode"]), keywords.get("batch_size"), len(env_fns)
    )
    return VectorEnv(env_fns, **{**keywords, "context": keywords["context"] or start_method()})


def start_method() -> str:
    """Returns the start method of workers.

    TorchRL makes ``spawn`` the default. The fork server forks from a process that has no threads,
    and starts workers as safely. But a child that was forked itself cannot use its parent's server.
    """
    forked = multiprocessing.parent_process() and multiprocessing.get_start_method() == "fork"
    return "fork" if forked else "forkserver"


def _checked(envs: Any, keywords: dict[str, Any]) -> Any:
    """Returns a vector environment that was given, once it is checked."""
    if not isinstance(envs.unwrapped, PoolVectorEnv):
        raise TypeError(
            f"CartwheelEnv steps vector environments of cartwheel, got {shown(envs)}: pass the "
            "functions that make the environments, or use torchrl.envs.GymWrapper"
        )
    check_given("CartwheelEnv", envs, keywords)
    check_form(autoreset_mode_of(envs), envs.unwrapped.batch_size, envs.num_envs)
    return envs


def check_form(mode: AutoresetMode, batch_size: Any, num_envs: int) -> None:
    """Raises ``ValueError`` unless TorchRL can step environments in this mode and these batches."""
    check_mode(mode, AutoresetMode.DISABLED, "TorchRL resets finished rows itself")
    check_whole_batches("TorchRL", batch_size, num_envs)
