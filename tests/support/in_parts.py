"""Rows that are sent and received in parts, each batch compared with Gymnasium's results."""

from functools import partial

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import concatenate, create_empty_array

from tests.support.comparison import assert_identical

#: The longest wait for a batch.
PATIENCE_S = 30


def index(result):
    """The rows of a received batch."""
    return result[-1]["env_index"].tolist()


def ready(envs):
    """The vector environment, all of whose rows were reset and received."""
    envs.send_reset(seed=1)
    while envs._pool.in_flight():
        envs.recv(PATIENCE_S)
    return envs


class Row(gym.Wrapper):
    """One row of the oracle: the next ``step`` does its ``work``, a step or a reset."""

    work = None

    def step(self, action):  # noqa: ARG002 - the action is in `work`
        kind, what = self.work
        if kind == "step":
            return self.env.step(what)
        observation, info = self.env.reset(**what)
        return observation, 0.0, False, False, info


class Oracle:
    """Builds the batch of any rows in any order, with a ``SyncVectorEnv`` of just these rows."""

    def __init__(self, env_fns, mode, vector_class=SyncVectorEnv):
        self.rows = [Row(env_fn()) for env_fn in env_fns]
        self.restarts = np.zeros(len(self.rows), np.bool_)
        self.make = partial(vector_class, autoreset_mode=mode)
        self.vectors = {}

    def batch(self, rows, work):
        """The result of ``step`` when ``rows`` do their ``work``, with ``env_index`` in the infos.

        Args:
            rows: Row numbers, in the order of the batch.
            work: For each row, ``("step", action)`` or ``("reset", keywords)``.
        """
        if len(rows) not in self.vectors:
            self.vectors[len(rows)] = self.make([lambda: self.rows[0]] * len(rows))
        vector = self.vectors[len(rows)]
        vector.envs = [self.rows[row] for row in rows]
        for env, what in zip(vector.envs, work, strict=True):
            env.work = what
        steps = np.array([kind == "step" for kind, _ in work])
        vector._autoreset_envs = self.restarts[rows] & steps
        result = vector.step(vector.action_space.sample())
        self.restarts[rows] = vector._autoreset_envs
        result[4]["env_index"] = np.array(rows)
        return result

    def close(self):
        for row in self.rows:
            row.close()


class Sender:
    """Sends and receives rows of ``envs``, and compares each batch with the oracle's.

    Attributes:
        idle: The rows that can be sent.
        sent: The work of the rows in flight, in the order in which they were sent.
        counts: The number of results received for each row.
    """

    def __init__(self, envs, oracle):
        self.envs, self.oracle = envs, oracle
        self.idle, self.sent = list(range(envs.num_envs)), {}
        self.counts = np.zeros(envs.num_envs, int)
        self.over = np.zeros(envs.num_envs, np.bool_)
        self.ordered = envs.batch_size == envs.num_envs

    def must_reset(self, row):
        return self.over[row] and self.envs.autoreset_mode is AutoresetMode.DISABLED

    def reset(self, rows, seeds, by_mask=False):
        """Sends resets to ``rows``, given as a mask or as indices."""
        options = {"env_index": np.array(rows)}
        if by_mask:
            rows = sorted(rows)
            options = {"reset_mask": np.isin(np.arange(self.envs.num_envs), rows)}
        self.envs.send_reset(seed=seeds, options=options)
        passed_on = {} if by_mask else None
        self._took_off(rows, [("reset", {"seed": s, "options": passed_on}) for s in seeds])

    def step(self, rows, actions):
        """Sends one action to each of ``rows``."""
        space = self.envs.single_action_space
        batch = concatenate(space, actions, create_empty_array(space, len(rows)))
        self.envs.send(batch, np.array(rows))
        self._took_off(rows, [("step", action) for action in actions])

    def _took_off(self, rows, work):
        self.idle = [row for row in self.idle if row not in rows]
        self.sent.update(zip(rows, work, strict=True))

    def receive(self):
        """Receives a batch, checks it, and returns it."""
        result = self.envs.recv(timeout=PATIENCE_S)
        assert len(index(result)) == min(self.envs.batch_size, len(self.sent))
        return self.compared(result)

    def compared(self, result):
        """Checks a batch that was received, and returns it."""
        rows = index(result)
        assert len(set(rows)) == len(rows)
        if self.ordered:
            assert rows == list(self.sent)[: len(rows)]
        expected = self.oracle.batch(rows, [self.sent.pop(row) for row in rows])
        assert_identical(result, expected, f"rows {rows}")
        self.over[rows] = result[2] | result[3]
        self.counts[rows] += 1
        self.idle += rows
        return result


def play_in_parts(envs, oracle, *, results, seed=0, sender_class=Sender):
    """Sends and receives at random until each row has ``results`` results; returns all batches.

    Every row is reset once with a seed, then stepped; sometimes it is reset again.
    """
    sender, random = sender_class(envs, oracle), np.random.default_rng(seed)
    envs.single_action_space.seed(seed)
    sender.reset(range(envs.num_envs), [int(s) for s in random.integers(2**31, size=envs.num_envs)])
    received = []
    while sender.sent or sender.counts.min() < results:
        waiting = [row for row in sender.idle if sender.counts[row] < results]
        if waiting and (not sender.sent or random.random() < 0.6):
            chosen = random.permutation(waiting)[: random.integers(1, len(waiting) + 1)].tolist()
            resets = [row for row in chosen if sender.must_reset(row) or random.random() < 0.05]
            steps = [row for row in chosen if row not in resets]
            if resets:
                seeds = [None if random.random() < 0.5 else int(row) for row in resets]
                sender.reset(resets, seeds, by_mask=random.random() < 0.5)
            if steps:
                sender.step(steps, [envs.single_action_space.sample() for _ in steps])
        else:
            received.append(sender.receive())
    return received


def receive_all(envs):
    """Receives all rows in flight; returns their numbers in the order of arrival."""
    rows = []
    while envs.in_flight:
        rows += index(envs.recv(PATIENCE_S))
    return rows


def begin(envs):
    """Resets all rows, with `send_reset` and `recv`."""
    envs.send_reset()
    assert sorted(receive_all(envs)) == list(range(envs.num_envs))
