"""Metadata of recordings: environments, the origins of episodes, states of rows."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.envs.registration import EnvSpec

from cartwheel._internal.suggestions import keywords_of
from cartwheel.vector.base import PoolVectorEnv

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Keywords of ``make_vec`` that concern the vector environment, not one environment.
VECTOR_KEYWORDS = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers")


def to_json(value: Any, **keywords: Any) -> str:
    """Returns JSON; arrays become lists, and objects without a JSON form their ``repr``."""
    try:
        return json.dumps(value, default=_plain, **keywords)
    except TypeError:  # a key that is neither text nor a number
        return json.dumps(_with_names(value), default=_plain, **keywords)


def _with_names(value: Any) -> Any:
    """The value with text for every key of a dictionary."""
    if isinstance(value, dict):
        return {str(key): _with_names(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_names(part) for part in value]
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value) if isinstance(value, Path) else repr(value)


def write_json(path: Path, value: Any, **keywords: Any) -> None:
    """Writes a JSON file atomically: readers see the old file or the new one."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(to_json(value, **keywords) + "\n", encoding="utf-8")
    part.replace(path)


def single_spec(envs: Any) -> EnvSpec | None:
    """Returns the spec of one environment of a vector environment.

    ``None`` if it has none, or none of Gymnasium: pools of EnvPool have a spec of another type.
    """
    spec = getattr(envs, "spec", None)
    if not isinstance(spec, EnvSpec):
        return None
    spec = copy.deepcopy(spec)
    own = spec.kwargs.pop("cartwheel", None)  # what `make_vec` adds to specs of Gymnasium's
    if own is not None:
        registered = own["spec"]
        is_read = isinstance(registered, dict)
        spec.vector_entry_point = (
            registered.get("vector_entry_point") if is_read else registered.vector_entry_point
        )
    bare = envs.unwrapped
    not_of_one = {*VECTOR_KEYWORDS}
    if isinstance(bare, PoolVectorEnv):
        not_of_one |= keywords_of(type(bare)) - {"env_id", "render_mode"}
    limit = spec.kwargs.pop("max_episode_steps", None)
    if limit is not None:
        spec.max_episode_steps = None if limit == -1 else limit
    spec.kwargs = {key: value for key, value in spec.kwargs.items() if key not in not_of_one}
    return spec


def env_info(envs: Any) -> dict[str, Any]:
    """Returns ``env_id``, ``env_kwargs`` and ``max_episode_steps`` of a vector environment.

    One of a model without an id describes itself, and its model.
    """
    spec, bare = single_spec(envs), envs.unwrapped
    if spec is None:
        if hasattr(bare, "description"):
            return dict(bare.description)
        name = getattr(getattr(envs, "spec", None), "id", None) or type(bare).__name__
        return {"env_id": name, "env_kwargs": {}, "max_episode_steps": None}
    return {
        "env_id": spec.id,
        "env_kwargs": spec.kwargs,
        "max_episode_steps": spec.max_episode_steps,
    }


def compiled_model(envs: Any) -> bytes | None:
    """Returns the compiled model of a vector environment that has one of its own, or ``None``."""
    bare = envs.unwrapped
    return bare.compiled_model() if hasattr(bare, "compiled_model") else None


def with_model(info: dict[str, Any], model: bytes | None, path: Path) -> dict[str, Any]:
    """Writes a compiled model; returns a description of environments that names its file."""
    if model is None:
        return info
    with path.open("xb") as file:
        file.write(model)
    return {**info, "model": {"file": path.name, **info["model"]}}


class Origins:
    """Seeds, options and numbers of the present episodes.

    An environment that was given a seed plays one episode after the other from it. So an episode
    can be played again by the seed of its row and its number since then.
    """

    def __init__(self, num_envs: int) -> None:
        self._row_seeds = np.full(num_envs, -1, np.int64)
        self._episode_seeds = np.full(num_envs, -1, np.int64)
        self._numbers = np.full(num_envs, -1, np.int64)
        self._options: dict[int, dict[str, Any]] = {}

    def begin(
        self,
        rows: NDArray[np.int64],
        seeds: NDArray[np.int64] | None,
        options: dict[int, dict[str, Any]] | None,
    ) -> None:
        """Episodes begin.

        Args:
            rows: The environments.
            seeds: The seed that each was given, or -1.
            options: Those that were given any, by row.
        """
        self._numbers[rows] += 1
        self._episode_seeds[rows] = -1
        if seeds is not None:
            given = seeds >= 0
            at = rows[given]
            self._numbers[at] = 0
            self._row_seeds[at] = self._episode_seeds[at] = seeds[given]
        if self._options or options:
            for row in rows.tolist():
                self._options.pop(row, None)
                if options and row in options:
                    self._options[row] = options[row]

    def skip(self, rows: NDArray[np.int64], episodes: NDArray[np.int64]) -> None:
        """So many episodes of these environments were not shown; -1: an unknown number."""
        self._numbers[rows] += episodes
        self.forget(rows[episodes < 0])

    def forget(self, rows: NDArray[np.int64]) -> None:
        """These environments were replaced, or continue from states: their seed is unknown."""
        self._row_seeds[rows] = self._numbers[rows] = -1

    def metadata(self, row: int) -> dict[str, Any]:
        """Returns the seeds, options and number of the present episode of an environment."""
        episode_seed, row_seed = (
            None if seeds[row] < 0 else int(seeds[row])
            for seeds in (self._episode_seeds, self._row_seeds)
        )
        how: dict[str, Any] = {} if episode_seed is None else {"seed": episode_seed}
        if row in self._options:
            how["options"] = self._options[row]
        return {
            "episode_seed": episode_seed,
            "row_seed": row_seed,
            "episode_in_row": int(self._numbers[row]),
            "reset_kwargs": how,
        }


class States:
    """Saves states of the rows of a vector environment.

    Args:
        envs: It has the method ``get_state``.
        required: Whether it is an error if its environments cannot be saved.
    """

    def __init__(self, envs: Any, *, required: bool) -> None:
        self._envs, self._required = envs, required
        #: Whether environments can be saved; ``None`` before that was tried.
        self._known: bool | None = None

    def __call__(self, rows: list[int]) -> list[bytes] | None:
        """Returns a state for each row; ``None`` if there is none now.

        Raises:
            Exception: The environments cannot be saved, and states are required.
        """
        if self._known is False or getattr(self._envs, "in_flight", None):
            return None
        try:
            states: list[bytes] = self._envs.get_state(rows)
        except Exception as error:
            if self._known is None and not self._required:
                self._known = False
            elif self._known is None or not isinstance(error, ValueError):
                raise
            return None  # a row that lost its environment cannot be saved
        self._known = True
        return states


def states_of(envs: Any, inner: Any, *, asked: bool | None) -> States | None:
    """Returns what saves states for a recording; ``None``: they are not recorded.

    Args:
        envs: The vector environment that is recorded.
        inner: The one within its wrappers.
        asked: Whether states were asked for; ``None``: if environments can be saved.

    Raises:
        ValueError: States were asked for, and there are none.
    """
    if asked and not hasattr(envs, "get_state"):
        raise ValueError(f"record_env_state=True needs environments with `get_state`, got {envs}.")
    return None if asked is False else States(inner, required=bool(asked))
