"""Columns of rows that are at different steps, and the rollouts that are made of them.

A *column* is one row's next ``T`` steps, in order. Column ``k`` of row ``n`` is written to column
``n`` of block ``k``, so rows may be in different blocks, at different steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cartwheel._internal import nested
from cartwheel._internal.rewards import reward_shape_of
from cartwheel.rollouts.collecting.block import Block
from cartwheel.rollouts.collecting.policy_calls import Answers
from cartwheel.rollouts.recording import carry_after

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gymnasium.vector import AutoresetMode
    from numpy.typing import NDArray

    from cartwheel.rollouts.buffers import Carry
    from cartwheel.rollouts.collecting.policy_calls import Actor
    from cartwheel.rollouts.rollout import Rollout


class Columns:
    """The columns of all rows.

    Attributes:
        run_ahead: How many columns a row may be in front of the rollout that is collected, or, with
            ``columns``, one less than it may be in front of the slowest row.
    """

    def __init__(
        self,
        envs: Any,
        mode: AutoresetMode,
        actor: Actor,
        num_steps: int,
        *,
        run_ahead: int,
        columns: int | None,
        num_rows: int,
    ) -> None:
        self._mode, self._actor = mode, actor
        self._space = envs.single_observation_space
        self._reward_shape = reward_shape_of(envs)
        self._num_steps, self.run_ahead = num_steps, run_ahead
        self._columns, self._num_rows = columns, num_rows
        self._answers = Answers(envs.single_action_space, num_rows)

    def _begin_columns(self, carry: Carry, shown: Any) -> None:
        """All rows begin their first column at the observations ``shown``."""
        every = self._num_rows
        self._carry = carry
        self._step, self._column = np.zeros(every, np.int64), np.zeros(every, np.int64)
        #: The columns of each row that count as complete.
        self._settled = np.zeros(every, np.int64)
        #: Complete columns that no rollout has yet: their rows, by time.
        self._complete: list[int] = []
        self._handed_out = np.zeros(every, np.int64)
        self._blocks: dict[int, Block] = {}
        nested.assign(self._block(0).observations, 0, shown)
        self._rollouts = 0

    @property
    def total(self) -> int:
        """Steps of all columns of a rollout."""
        return self._num_steps * (self._columns or self._num_rows)

    @property
    def done(self) -> int:
        """The number of them that the next rollout has already."""
        if self._columns is None:
            steps = (self._column - self._rollouts) * self._num_steps + self._step
        else:
            steps = self._step.copy()
            steps[self._complete] = self._num_steps
            steps.sort()
            steps = steps[-self._columns :]
        return int(steps.clip(0, self._num_steps).sum())

    @property
    def carry(self) -> Carry:
        """The state before the next rollout."""
        return self._carry

    @property
    def shown(self) -> Any:
        """The first observations of the next rollout."""
        return nested.apply(np.copy, nested.at(self._block(self._rollouts).observations, 0))

    def _permitted(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows may continue with their column, as far as ``run_ahead`` allows."""
        ahead = self.run_ahead
        slowest = self._rollouts if self._columns is None else int(self._settled.min()) + 1
        return self._column[rows] <= slowest + ahead

    def _is_complete(self) -> bool:
        """Whether the next rollout has all of its columns."""
        if self._columns is None:
            return bool((self._settled > self._rollouts).all())
        return len(set(self._complete)) >= self._columns

    def _settle(self, rows: NDArray[np.int64]) -> None:
        """Counts the complete columns of rows."""
        if self._columns is not None:
            for row in rows[self._settled[rows] < self._column[rows]].tolist():
                self._complete += [row] * int(self._column[row] - self._settled[row])
        self._settled[rows] = self._column[rows]

    def _hand_out(self) -> Rollout:
        """Returns the next rollout: a block, or columns of several."""
        forms = self._answers.extras or {}
        if self._columns is None:
            block, carry = self._blocks.pop(self._rollouts), self._carry
            rows = np.arange(self._num_rows)
        else:
            chosen = list(dict.fromkeys(self._complete))[: self._columns]
            for row in chosen:
                self._complete.remove(row)
            rows = np.array(chosen)
            block, carry = self._gathered(rows), self._carry.take(rows)
        block.expect(forms)
        rollout = block.rollout(self._mode, carry, rows)
        if self._actor.mirror is not None and self._columns is None:
            rollout.observations = block.on_device(self._actor.mirror).complete()
        self._rollouts += 1
        after = carry_after(rollout)
        self._carry = after if self._columns is None else self._carry.replaced(rows, after)
        return rollout

    def _gathered(self, rows: NDArray[np.int64]) -> Block:
        """Returns the oldest columns of rows, and frees blocks that are not needed any more."""
        numbers = self._handed_out[rows]
        gathered = Block.gathered(
            [
                (self._blocks[number], rows[places], places)
                for number in np.unique(numbers).tolist()
                for places in [np.flatnonzero(numbers == number)]
            ]
        )
        self._handed_out[rows] += 1
        for number in [number for number in self._blocks if number < self._handed_out.min()]:
            del self._blocks[number]
        return gathered

    # Writing

    def _count_steps(self, rows: NDArray[np.int64]) -> None:
        """Moves rows to their next step; after the last one, to their next column."""
        self._step[rows] += 1
        done = rows[self._step[rows] == self._num_steps]
        if not len(done):
            return
        for block, at in self._by_column(done):
            which = done[at]
            following = self._block(int(self._column[which[0]]) + 1)
            last = nested.at(block.observations, (self._num_steps, which))
            following.show(0, which, last)
        self._column[done] += 1
        self._step[done] = 0
        self._arrive(done)

    def _arrive(self, rows: NDArray[np.int64]) -> None:
        """Rows have another complete column."""
        self._settle(rows)

    def _block(self, number: int) -> Block:
        """Returns a block, which is made when its first row needs it."""
        if number not in self._blocks:
            self._blocks[number] = Block(
                self._space,
                self._answers.actions,
                self._num_steps,
                self._num_rows,
                self._reward_shape,
            )
        return self._blocks[number]

    def _by_column(self, rows: NDArray[np.int64]) -> Iterator[tuple[Block, Any]]:
        """Yields the blocks of rows, with the places of their rows in ``rows``."""
        numbers = self._column[rows]
        first = int(numbers[0])
        if (numbers == first).all():
            yield self._block(first), slice(None)
            return
        for number in np.unique(numbers).tolist():
            yield self._block(number), np.flatnonzero(numbers == number)
