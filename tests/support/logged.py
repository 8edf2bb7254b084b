"""An environment that keeps the truth about its episodes, and a caller that loses results.

The caller reconstructs from what it was shown which episodes it saw from the first observation to
the last, and compares all with the log of the environments: no wrapper may say anything wrong,
however results were lost, and none may leave out an episode of which nothing was lost.

Example:
    envs = RecordMetrics(FrameStack(cartwheel.VectorEnv([Logged] * 3), DEPTH))
    caller = Caller(envs, seed=1)
    caller.run(200)
    caller.check()
"""

from __future__ import annotations

import json
import re
from functools import partial

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode

#: The frames of a stack.
DEPTH = 3
#: The action that raises.
RAISES = 2


class Logged(gym.Env):
    """Observes the number of its episode and its steps; ends after 1 to 6 steps."""

    observation_space = gym.spaces.Box(0, 1 << 30, (2,), np.int64)
    action_space = gym.spaces.Discrete(3)
    #: The longest episode.
    longest = 6

    def __init__(self):
        self.episode, self.steps, self.total = -1, 0, 0.0
        #: Number, length and return of each episode that has ended.
        self.log = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if (options or {}).get("raises"):
            raise ValueError("chosen to fail in a reset")
        self.episode, self.steps, self.total = self.episode + 1, 0, 0.0
        self.length = int(self.np_random.integers(1, self.longest + 1))
        return self.observe(), {}

    def step(self, action):
        if int(action) == RAISES:
            raise ValueError("chosen to fail")
        self.steps += 1
        reward = float(1000 * self.episode + self.steps)
        self.total += reward
        over = self.steps >= self.length
        if over:
            self.log.append((self.episode, self.steps, self.total))
        return self.observe(), reward, over, False, {}

    def observe(self):
        return np.array([self.episode, self.steps])


class Caller:
    """Steps wrapped environments at random, and gives up or breaks some of the calls.

    ``envs`` are in a ``RecordMetrics``, and somewhere in a ``FrameStack`` of :data:`DEPTH`.
    """

    def __init__(self, envs, seed, *, ways=("step", "rows", "wait", "send"), raises=0.1):
        self.envs, self.raises, self.ways = envs, raises, ways
        self.random = np.random.default_rng(seed)
        self.mode = envs.metadata["autoreset_mode"]
        #: For each row, by the number of the episode: 0 if its first observation was shown, and the
        #: steps whose results were returned.
        self.seen = [{} for _ in range(envs.num_envs)]
        self.ended = [set() for _ in range(envs.num_envs)]
        self.lost = 0

    def run(self, events):
        self.reset()
        for _ in range(events):
            self.run_once()

    def run_once(self):
        way = self.random.choice([*self.ways, "reset"])
        self.make(getattr(self, f"do_{way}"))

    def make(self, call):
        """Makes a call, and what it needs if it fails."""
        while call is not None:
            call = self._after(call)

    def _after(self, call):
        try:
            call()
        except gym.error.ResetNeeded as error:
            return partial(self.reset, rows_of(error))
        except gym.error.AlreadyPendingCallError as error:
            return partial(self.finish, error.name)
        except ValueError as error:
            if "chosen to fail" not in str(error):
                raise
            self.lost += 1
            return self.recover
        return None

    # Calls

    def actions(self, count):
        actions = np.zeros(count, int)
        if self.random.random() < self.raises:
            actions[self.random.integers(count)] = RAISES
        return actions

    def some(self):
        num_envs = self.envs.num_envs
        return self.random.permutation(num_envs)[: self.random.integers(1, num_envs + 1)]

    def do_step(self):
        self.take(self.envs.step(self.actions(self.envs.num_envs)))

    def do_rows(self):
        rows = self.some()
        self.take(self.envs.step(self.actions(len(rows)), rows))

    def do_wait(self):
        self.envs.step_async(self.actions(self.envs.num_envs))
        try:
            result = self.envs.step_wait(0)
        except TimeoutError:
            if self.random.random() < 0.7:
                self.lost += 1
                self.do_reset()
                return
            result = self.envs.step_wait(30)
        self.take(result)

    def do_send(self):
        rows = self.some()
        self.envs.send(self.actions(len(rows)), rows)
        while len(self.envs.in_flight):
            try:
                result = self.envs.recv(0)
            except TimeoutError:
                if self.random.random() < 0.5:
                    self.lost += 1
                    self.reset(self.envs.in_flight[:1])
                    return
                result = self.envs.recv(30)
            self.take(result)

    def do_reset(self):
        self.reset(self.some())

    def reset(self, rows=None):
        if rows is None:
            self.begin(self.envs.reset(seed=1))
            return
        rows = np.asarray(rows)
        how = self.random.choice(["mask", "async mask", "index", "async index", "sent"])
        mask = np.isin(np.arange(self.envs.num_envs), rows)
        options = {"reset_mask": mask} if "mask" in how else {"env_index": rows}
        if how == "sent" and "send" not in self.ways:
            how = "index"
        if how == "sent":
            self.envs.send_reset(options=options)
            while len(self.envs.in_flight):
                self.take(self.envs.recv(30))
        elif "async" in how:
            self.envs.reset_async(options=options)
            self.begin(self.envs.reset_wait())
        else:
            self.begin(self.envs.reset(options=options))

    def finish(self, pending):
        """Waits for a call that was begun."""
        if pending == "step" or (pending == "send" and "send" not in self.ways):
            self.take(self.envs.step_wait(30))
        elif pending == "reset":
            self.begin(self.envs.reset_wait(30))
        else:
            self.recover()

    def recover(self):
        """Resets the rows that raised; the others go on."""
        while len(getattr(self.envs, "in_flight", ())):
            self.take(self.envs.recv(30))
        self.take(self.envs.step(np.zeros(self.envs.num_envs, int)))

    # What is shown

    def begin(self, result):
        observations, infos = result
        rows = infos.get("env_index", np.arange(self.envs.num_envs)).tolist()
        for row, stack in zip(rows, observations, strict=True):
            self.show(row, stack)

    def take(self, result):
        observations, _, terminations, truncations, infos = result
        rows = infos.get("env_index", np.arange(self.envs.num_envs)).tolist()
        over = terminations | truncations
        for place, row in enumerate(rows):
            if over[place] and self.mode == AutoresetMode.SAME_STEP:
                self.show(row, infos["final_obs"][place], is_step=True)
                self.ended[row].add(int(infos["final_obs"][place][-1, 0]))
            elif over[place]:
                self.ended[row].add(int(observations[place, -1, 0]))
            self.show(row, observations[place], is_step=True)

    def show(self, row, stack, *, is_step=False):
        """Frames of a stack are of one episode and follow each other; the first may be repeated."""
        episodes, steps = stack[:, 0].tolist(), stack[:, 1].tolist()
        assert len(set(episodes)) == 1, f"row {row}: frames of several episodes, {stack.tolist()}"
        first = steps.count(steps[0])
        expected = [steps[0]] * first + [
            steps[0] + more for more in range(1, len(steps) - first + 1)
        ]
        assert steps == expected, f"row {row}: frames that do not follow, {stack.tolist()}"
        if first > 1 and steps[0] > 0:
            assert self.lost, (
                f"row {row}: the stack begins anew at {steps[0]}, and nothing was lost"
            )
        if is_step or steps[-1] == 0:
            self.seen[row].setdefault(episodes[-1], set()).add(steps[-1])

    # What is right

    def check(self, finished=None, *, leaves_out=False):
        """Compares the episodes that ``RecordMetrics`` has with the truth and with what was seen.

        Args:
            finished: The episodes of another wrapper, by row: lengths and returns.
            leaves_out: Whether episodes may be left out of which nothing was lost.
        """
        if finished is None:
            columns = self.envs.finished()
            finished = [[] for _ in range(self.envs.num_envs)]
            names = ("env_index", "episode_len", "return")
            for row, length, total in zip(*(columns[name].tolist() for name in names), strict=True):
                finished[row].append((length, total))
        for row, log in enumerate(self.envs.get_attr("log")):
            truth = [(length, total) for _, length, total in log]
            found = finished[row]
            wrong = [episode for episode in found if episode not in truth]
            assert not wrong, f"row {row}: episodes that never were, {wrong}"
            assert sorted(found) == sorted(set(found)), f"row {row}: episodes that are told twice"
            for episode, length, total in log:
                steps = self.seen[row].get(episode, set())
                if (
                    not leaves_out
                    and episode in self.ended[row]
                    and steps == set(range(length + 1))
                ):
                    assert (length, total) in found, f"row {row}: episode {episode} is missing"


def rows_of(error):
    """The rows that an error says have to be reset."""
    return json.loads(re.search(r"rows (\[.*?\])", str(error))[1])
