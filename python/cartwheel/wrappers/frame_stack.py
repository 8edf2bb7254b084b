"""The last observations of each environment, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.vector.utils import batch_space

from cartwheel._cartwheel import FrameStack as Stack
from cartwheel._internal import nested
from cartwheel._internal.arguments import as_integer
from cartwheel._internal.literals import check_choice
from cartwheel._internal.suggestions import checks_keywords
from cartwheel.wrappers._shared.kept_state import KeepsState
from cartwheel.wrappers._shared.keys import Parts, advised
from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import NOWHERE, RESET

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gymnasium.spaces import Space
    from gymnasium.vector import VectorEnv
    from numpy.typing import NDArray

    from cartwheel.wrappers.base import Operation
    from cartwheel.wrappers.batch import Batch

#: What an episode's stack has before its first observation.
Padding = Literal["reset", "zero"]


class FrameStack(KeepsState, VectorWrapper):
    """Shows the last observations of each environment, ``[N, stack_size, ...]``, oldest first.

    Each leaf of a nested space is stacked. A row that begins an episode is filled; a transition
    advances its row by one; rows that are left alone, frozen or failed do not advance. In
    ``SAME_STEP`` the final observation is the stack of the episode that ended. A row of which an
    observation was lost, with an error or a call that was given up, and was not shown since, is
    filled by its next one: the observations of a stack follow each other. So are the rows of
    environments that were reset before the stack was made.

    Example:
        >>> import cartwheel
        >>> from cartwheel.wrappers import FrameStack
        >>> envs = FrameStack(cartwheel.make_vec("CartPole-v1", 3), 4)
        >>> observations, infos = envs.reset(seed=0)
        >>> observations.shape
        (3, 4, 4)
        >>> envs.close()

    The space of a stack is that of a batch of ``stack_size`` observations: the bounds of a ``Box``
    are repeated, ``Discrete`` becomes ``MultiDiscrete``. Source: ``FrameStackObservation`` of
    Gymnasium 1.4.0, for single environments.

    Args:
        env: A vector environment whose observations are arrays of fixed shape, possibly nested in
            dictionaries and tuples.
        stack_size: The number of observations, at least 1.
        padding_type: Fills a stack before the first observation of an episode: ``"reset"`` by
            this observation, ``"zero"`` by zeros (or the bound nearest to zero, where zero is
            outside of the space).
        keys: The parts of nested observations that are stacked, such as ``["camera"]`` or
            ``["state.joints"]``; the others pass unchanged. By default every leaf.

    Raises:
        TypeError: A leaf of the observation space has no fixed shape, or there is no leaf.
        ValueError: ``stack_size`` is below 1, ``padding_type`` is unknown, or ``keys`` do not fit
            the space.
    """

    row_entries = ("stacks",)

    @checks_keywords
    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        stack_size: int,
        *,
        padding_type: Padding = "reset",
        keys: Sequence[str] | None = None,
    ) -> None:
        self._stack_size = as_integer("stack_size", stack_size, 1, limit=65536)
        check_choice("padding_type", padding_type, Padding)
        self._padding_type: Padding = padding_type
        super().__init__(env)
        space: Space[Any] = env.single_observation_space
        self._space_before = space
        #: The parts that are stacked; ``None`` for all.
        self._parts = None if keys is None else Parts(space, keys)
        if self._parts is None:
            try:
                frame = zero_of(space, "observations")
            except TypeError as error:
                raise advised(error, space, lambda part: zero_of(part, "part")) from None
            if next(nested.named(frame, "observations"), None) is None:
                raise TypeError(f"the observations {space} have no array that could be stacked.")
            self._set_observation_space(batch_space(space, self._stack_size))
        else:
            spaces = self._parts.spaces
            frame = {key: zero_of(part, f"observations/{key}") for key, part in spaces.items()}
            stacked = {key: batch_space(part, self._stack_size) for key, part in spaces.items()}
            self._set_observation_space(self._parts.space_with(stacked))
        self._zeros = frame
        #: One for each leaf, nested like observations.
        self._stacks: Any = nested.apply(lambda zeros: self._stack(env.num_envs, zeros), frame)

    @property
    def stack_size(self) -> int:
        """The number of observations; fixed, as the space."""
        return self._stack_size

    @property
    def padding_type(self) -> Padding:
        """The observations before the first one of an episode; fixed."""
        return self._padding_type

    def _stack(self, num_envs: int, zeros: Any) -> Stack:
        return Stack(num_envs, self._stack_size, zeros, repeats=self._padding_type == "reset")

    def get_own_state(self) -> dict[str, Any]:
        """The state: ``"stacks"``, those of all environments, by the path of their leaf."""
        return {"stacks": {path: stack.state() for path, stack in self._named_stacks()}}

    def _restore(self, state: dict[str, Any]) -> None:
        for path, stack in self._named_stacks():
            stack.set_state(state["stacks"][path])

    def _named_stacks(self) -> list[tuple[str, Any]]:
        return list(nested.named(self._stacks, "observations"))

    def _operation(self) -> Operation:
        if isinstance(self._stacks, Stack) and self._parts is None:
            return "stack", (self._stacks,)
        return "transform", ()

    def transform(self, batch: Batch) -> None:
        """Adds each new observation to the stack of its environment."""
        ends, finals = batch.ended(self._space_before, self._source.autoreset_mode)
        if batch.rejoined is not None:
            ends = np.flatnonzero(batch.rejoined), NOWHERE
        kinds = batch.kinds
        if batch.gaps is not None:  # frames with a gap are not a stack
            kinds = np.where(batch.gaps, RESET, kinds).astype(np.uint8)

        def advance(stack: Stack, frames: Any, last: Any) -> _Pair:
            ended = ends and (*ends, frames[:0] if finals is None else last)
            return _Pair(*stack.advance(batch.env_index, kinds, frames, ended))

        frames = batch.observations
        last = frames if finals is None else finals.observations
        if self._parts is not None:
            frames, last = self._parts.of(frames), self._parts.of(last)
        final_frames = last
        if isinstance(self._stacks, Stack):  # walks of a tree would take as long as the copies
            pair = advance(self._stacks, frames, last)
            shown, last = pair.shown, pair.last
        else:
            pairs = nested.apply(advance, self._stacks, frames, last)
            shown = nested.apply(lambda pair: pair.shown, pairs)
            last = nested.apply(lambda pair: pair.last, pairs)
        if finals is not None and batch.gaps is not None:
            at = np.flatnonzero(batch.gaps[finals.places])
            last = nested.apply(self._filled(at), self._zeros, final_frames, last)
        if self._parts is not None:
            shown = self._parts.replaced(batch.observations, shown)
            if finals is not None:
                last = self._parts.replaced(finals.observations, last)
        batch.observations = shown
        if finals is not None:
            finals.observations, finals.space = last, self.single_observation_space

    def _filled(self, places: NDArray[np.intp]) -> Callable[..., Any]:
        """Fills some of the final stacks of a leaf by the final frames."""

        def filled(zeros: Any, frames: Any, stacks: Any) -> Any:
            kinds = np.full(len(places), RESET, np.uint8)
            stacks[places] = self._stack(len(places), zeros).advance(
                None, kinds, frames[places], None
            )[0]
            return stacks

        return filled


class _Pair:
    """The stacks of a batch, and the final ones. No tuple, which would count as nested."""

    __slots__ = ("last", "shown")

    def __init__(self, shown: Any, last: Any) -> None:
        self.shown, self.last = shown, last


def zero_of(space: Space[Any], path: str) -> Any:
    """Returns a value of zeros, or of the bounds nearest to zero.

    Raises:
        TypeError: A leaf has no fixed shape.
    """
    if isinstance(space, Dict):
        return {key: zero_of(part, f"{path}/{key}") for key, part in space.spaces.items()}
    if isinstance(space, Tuple):
        return tuple(zero_of(part, f"{path}/{i}") for i, part in enumerate(space.spaces))
    if isinstance(space, Box):
        return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
    if isinstance(space, Discrete | MultiDiscrete):
        return np.array(space.start, space.dtype)
    if isinstance(space, MultiBinary):
        return np.zeros(space.shape, space.dtype)
    raise TypeError(f"`{path}` cannot be stacked, because {space} has no fixed shape.")
