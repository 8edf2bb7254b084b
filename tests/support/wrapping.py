"""Vector environments of every kind under wrappers, and the trace of each environment.

The *trace* of an environment is the list of its events, whatever happened to the others: the same
in every kind of vector environment, in every autoreset mode, and in every order of calls. So the
trace in a wrapped vector environment is compared with that of a single environment in a wrapper of
its own (:func:`alone`), or with the trace in another mode.

This file is above 500 lines because all ways to step a vector environment share one driver.

Example:
    script = Script(steps=30, resets={(1, 5): 77})
    envs = RescaleObservation(build("process", "pendulum", S), 0, 1)
    traces = drive(envs, script, way="send")
    assert_traces(traces, alone("pendulum", script, lambda env: Rescale(env, 0, 1)))
"""

import copy
import functools
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, OneOf, Sequence, Text, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array

import cartwheel
from cartwheel._internal import nested
from cartwheel.wrappers.base import VectorWrapper
from tests.support import repetitions
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.environments import NestedEnv, SamplingEnv, TranscriptEnv
from tests.support.oracle import batched

N, S, D = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
MODES = (N, S, D)
#: Kinds of vector environments: cartwheel's, and Gymnasium's own.
KINDS = ("inline", "process", "native", "sync")
#: The ways in which :func:`drive` steps. Gymnasium's own can only ``WAYS[:1]``; ``freeze`` needs
#: ``DISABLED`` and ``build(…, on_done="freeze")``.
WAYS = ("mask", "async", "rows", "send", "freeze")
PATIENCE_S = 30


class FailingEnv(NestedEnv):
    """A walk in one array, with infos. The action 3 raises."""

    action_space = Discrete(4)
    observation_space = Box(-np.inf, np.inf, (2, 3), np.float64)  # type: ignore[assignment]

    def step(self, action):
        if int(action) == 3:
            raise ValueError("chosen to fail")
        return super().step(action)

    def observe(self):
        return self.walk.copy()


#: Parts without a fixed shape among others.
IRREGULAR = Dict(
    word=Text(4, charset="abc"),
    which=Discrete(3, start=-1),
    many=Sequence(Box(0, 1, (2,), np.float32)),
    pair=Tuple([Box(-1, 1, (2,), np.float64), OneOf([Discrete(2), Box(0, 1, (3,), np.float32)])]),
)
#: By name, functions that make an environment. The native kind can have cases only.
ENVIRONMENTS = {
    "pole": Case("CartPole-v1", {"max_episode_steps": 11}),
    "pendulum": Case("Pendulum-v1", {"max_episode_steps": 5}),
    "one step": Case("CartPole-v1", {"max_episode_steps": 1}),
    "blackjack": Case("Blackjack-v1"),
    "taxi": Case("Taxi-v4", {"max_episode_steps": 6}),
    "car": Case("MountainCarContinuous-v0", {"max_episode_steps": 7}),
    "nested": NestedEnv,
    "images": functools.partial(SamplingEnv, Box(0, 255, (8, 6, 3), np.uint8), length=4),
    "irregular": functools.partial(SamplingEnv, IRREGULAR, length=4),
    "counts": functools.partial(TranscriptEnv, 3),
    "failing": FailingEnv,
}


def build(kind, environment, mode=N, num_envs=3, **keywords):
    """Makes a vector environment.

    Args:
        kind: One of :data:`KINDS`.
        environment: A name in :data:`ENVIRONMENTS`, or a function that makes an environment.
        mode: The autoreset mode.
        num_envs: The number of rows.
        **keywords: For cartwheel's, such as ``on_done="freeze"`` or ``batch_size=2``.
    """
    env_fn = ENVIRONMENTS.get(environment, environment) if _is_name(environment) else environment
    keywords["autoreset_mode"] = mode
    if kind == "sync":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about ids that are out of date
            return SyncVectorEnv([env_fn] * num_envs, **keywords)
    if kind == "native":
        keywords = {"num_workers": 2, **env_fn.keywords, **keywords}
        return cartwheel.NativeVectorEnv(env_fn.env_id, num_envs, **keywords)
    if kind == "process":
        keywords.setdefault("num_workers", 2)
    return cartwheel.VectorEnv([env_fn] * num_envs, executor=kind, **keywords)


class Builds:
    """Builds each vector environment once, for any number of wrappers, and closes all at the end.

    Example:
        with Builds() as build:
            for kind, mode, way, keywords in settings_of("pole"):
                drive(ClipReward(build(kind, "pole", mode, **keywords), 0, 1), SCRIPT, way,
                      close=False)
    """

    def __init__(self):
        self._built = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for envs in self._built.values():
            envs.close()

    def __call__(self, kind, environment, mode=N, num_envs=3, **keywords):
        key = (kind, environment, mode, num_envs, *sorted(keywords.items()))
        if key not in self._built:
            self._built[key] = build(kind, environment, mode, num_envs, **keywords)
        return self._built[key]


def kinds_of(environment):
    """The kinds that can have this environment."""
    native = isinstance(ENVIRONMENTS[environment], Case)
    return [kind for kind in KINDS if native or kind != "native"]


def _is_name(environment):
    return isinstance(environment, str)


class Moment(NamedTuple):
    """One event in the trace of an environment.

    Attributes:
        what: ``"reset"``, ``"step"`` or ``"failed"``.
        observation: After a step that ended the episode: the true last one.
        reward: 0 for a reset.
        terminated: False for a reset.
        truncated: False for a reset.
        info: Of this environment alone: a batch of one row by Gymnasium, without masks.
    """

    what: str
    observation: Any
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(frozen=True)
class Script:
    """The actions and resets of each environment, whatever the others do.

    Attributes:
        steps: The number of transitions of each row.
        seed: Row ``i`` begins with ``seed + i``.
        resets: Explicit resets: ``{(row, k): seed}`` resets the row before its transition ``k``.
        actions: ``actions(row, k)`` is that of transition ``k``; ``None``: samples of the space.
        fails: ``{(row, k): action}``: an action of its own for one transition.
    """

    steps: int = 30
    seed: int = 1
    resets: dict[tuple[int, int], int] = field(default_factory=dict)
    actions: Any = None
    fails: dict[tuple[int, int], Any] = field(default_factory=dict)

    def action(self, space, row, number):
        """The action of a row's transition."""
        if (row, number) in self.fails:
            return self.fails[row, number]
        if self.actions is not None:
            return self.actions(row, number)
        return _samples(space, self.seed, row, self.steps + 1)[min(number, self.steps)]


#: What most tests do.
SCRIPT = Script(steps=13, resets={(1, 3): 50, (0, 3): 51, (2, 9): 52})
#: With ``"failing"``.
FAILING = Script(steps=13, actions=lambda _row, k: k % 3, fails={(1, 4): 3, (0, 4): 3, (1, 9): 3})


def script_of(environment):
    """The one of the two that fits an environment."""
    return FAILING if environment == "failing" else SCRIPT


_SAMPLES: dict[tuple[Any, ...], list[Any]] = {}


def _samples(space, seed, row, count):
    key = (repr(space), seed, row)
    if len(_SAMPLES.get(key, ())) < count:
        source = copy.deepcopy(space)
        source.seed(seed + 1000 * row)
        _SAMPLES[key] = [source.sample() for _ in range(count)]
    return _SAMPLES[key]


def batch_of(space, values):
    """A batch of values of a space, by Gymnasium."""
    return copy.deepcopy(concatenate(space, values, create_empty_array(space, len(values))))


def row_of(space, batch, place):
    """A batch of one row of a batch."""
    return nested.take(space, batch, np.array([place]))


def info_of(infos, place):
    """The infos of one place of a batch, without masks and without what the batch adds."""
    found = {}
    for key, value in infos.items():
        # `options` depends on the form of a reset, in which the ways of stepping differ.
        hidden = key in ("final_obs", "final_info", "options") or f"_{key}" not in infos
        if hidden or not infos[f"_{key}"][place]:
            continue
        if isinstance(value, dict):
            found[key] = info_of(value, place)
        else:
            found[key] = value[place : place + 1]
    return found


# The trace of a single environment


def alone(environment, script, wrap=lambda env: env, num_envs=3, action_space=None):
    """The traces of single environments, each in a wrapper of its own.

    Args:
        environment: As for :func:`build`.
        script: What to do.
        wrap: Wraps a single environment.
        num_envs: The number of environments.
        action_space: The space of the actions; by default that of the wrapped environment.
    """
    env_fn = ENVIRONMENTS[environment] if _is_name(environment) else environment
    return [_alone(env_fn, script, wrap, row, action_space) for row in range(num_envs)]


def _alone(env_fn, script, wrap, row, action_space):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = wrap(env_fn())
    space = env.observation_space
    seed, replaced, trace = script.seed + row, 0, []
    trace.append(_began(space, env.reset(seed=seed)))
    for number in range(script.steps):
        if trace[-1].terminated or trace[-1].truncated:
            trace.append(_began(space, env.reset()))
        if (row, number) in script.resets:
            seed, replaced = script.resets[row, number], 0
            trace.append(_began(space, env.reset(seed=seed)))
        action = script.action(action_space or env.action_space, row, number)
        try:
            observation, reward, terminated, truncated, info = env.step(action)
        except Exception:
            # As `on_error="restart"` does, with the seed of `workers/restart_policy.py`.
            env, replaced = wrap(env_fn()), replaced + 1
            env.reset(seed=int(np.random.SeedSequence([seed, replaced]).generate_state(1)[0]))
            trace.append(Moment("failed", trace[-1].observation, 0.0, False, True, {}))
            continue
        shown = batch_of(space, [observation])
        flags = bool(terminated), bool(truncated)
        trace.append(Moment("step", shown, float(reward), *flags, info_of(batched([info]), 0)))
    env.close()
    return _tidy(trace)


def _began(space, result):
    info = info_of(batched([result[1]]), 0)
    return Moment("reset", batch_of(space, [result[0]]), 0.0, False, False, info)


def _tidy(trace):
    """Leaves out resets that another reset follows at once: some modes need fewer of them."""
    pairs = zip(trace, [*trace[1:], None], strict=True)
    return [one for one, after in pairs if one.what != "reset" or (after and after.what != "reset")]


def assert_traces(traces, expected, *, infos=True):
    """Fails unless all traces are the same, to the bit.

    Args:
        traces: From :func:`drive`.
        expected: From :func:`alone` or :func:`drive`.
        infos: Whether infos are compared.
    """
    assert len(traces) == len(expected)
    for row, (trace, other) in enumerate(zip(traces, expected, strict=True)):
        assert [one.what for one in trace] == [one.what for one in other], f"row {row}"
        for number, (moment, wanted) in enumerate(zip(trace, other, strict=True)):
            if not infos:
                moment, wanted = moment._replace(info={}), wanted._replace(info={})
            if moment.what == "failed":  # the text of the exception is there
                moment = moment._replace(info={})
            assert_identical(moment, wanted, f"row {row}, moment {number}")


# The traces in a vector environment


def drive(envs, script, way="mask", *, check=None, close=True):
    """Steps a wrapped vector environment until every row has had its transitions.

    It also checks what every wrapper promises: actions and options are not written into, results
    are not overwritten later, rows that are left alone show again what they last showed, a failed
    row shows no new observation, and everything that is shown is in the observation space.

    Args:
        envs: The vector environment.
        script: What each row is told.
        way: ``"mask"``: all rows step, rows are reset by a mask. ``"async"``: the same by
            ``step_async`` and ``reset_async``. ``"rows"``: random rows step, resets by
            ``env_index`` and ``env_idx``. ``"send"``: the same by ``send``, ``recv`` and
            ``send_reset``. ``"freeze"``: as ``"mask"``, but rows that are over wait for others.
        check: Called with every result of ``reset``, ``step`` or ``recv``, and its rows.
        close: Whether ``envs`` are closed at the end.

    Returns:
        The trace of each row.
    """
    driver = _DRIVERS[way](envs, script, check)
    try:
        driver.run()
    finally:
        if close:
            envs.close()
    return [_tidy(trace) for trace in driver.traces]


class _Driver:
    """All rows step at once; rows are reset by a mask."""

    #: Steps that rows that are over wait for a reset.
    patience = 0

    def __init__(self, envs, script, check):
        self.envs, self.script, self.check = envs, script, check
        self.mode = envs.metadata["autoreset_mode"]
        self.num_envs = envs.num_envs
        self.traces = [[] for _ in range(self.num_envs)]
        self.counts = np.zeros(self.num_envs, int)
        self.over = np.zeros(self.num_envs, bool)
        #: What each row last showed, and how long it has been over.
        self.shown = [None] * self.num_envs
        self.flags = [(False, False)] * self.num_envs
        self.waited = np.zeros(self.num_envs, int)
        self.due = dict(script.resets)
        self.kept = []
        self.spaces = {}
        self.random = np.random.default_rng(script.seed)

    def run(self):
        rows = np.arange(self.num_envs)
        self.reset(rows, [self.script.seed + int(row) for row in rows], first=True)
        while (self.counts < self.script.steps).any():
            self.turn()
        for result, copied in self.kept:
            assert_identical(result, copied, "an earlier result, which was overwritten,")

    def keep(self, result):
        self.kept = [*self.kept[-12:], (result, copy.deepcopy(result))]

    def turn(self):
        """Resets rows that need it, and steps all."""
        self.waited[self.over] += 1
        again = self.over & (self.mode == D) & (self.waited > self.patience)
        if again.any():
            self.reset(again.nonzero()[0], None)
        self.reset_due(np.arange(self.num_envs))
        self.take(self.step(self.actions(range(self.num_envs))), range(self.num_envs))

    def reset_due(self, rows):
        """Makes the resets of the script, of rows that are not over."""
        due = [
            (row, self.due.pop((row, int(self.counts[row]))))
            for row in rows
            if not self.over[row] and (row, int(self.counts[row])) in self.due
        ]
        if due:
            rows, seeds = zip(*due, strict=True)
            self.reset(np.array(rows), list(seeds))

    def actions(self, rows):
        space = self.envs.single_action_space
        return batch_of(
            space,
            [
                # A row that resets or rests ignores its action.
                self.script.action(space, row, self.script.steps if self.over[row] else count)
                for row, count in ((row, int(self.counts[row])) for row in rows)
            ],
        )

    def step(self, actions):
        before = copy.deepcopy(actions)
        result = self.envs.step(actions)
        assert_identical(actions, before, "actions")
        return result

    def reset(self, rows, seeds, *, first=False):
        options = {}
        if not first:
            options["reset_mask"] = np.isin(np.arange(self.num_envs), rows)
            if seeds is not None:
                seeds = dict(zip(rows.tolist(), seeds, strict=True))
                seeds = [seeds.get(row) for row in range(self.num_envs)]
        result = self.call_reset(seeds, None if first else options)
        self.began(rows, result, range(self.num_envs))

    def call_reset(self, seeds, options):
        before = copy.deepcopy(options)
        result = self.envs.reset(seed=seeds, options=options)
        pops = isinstance(self.envs.unwrapped, SyncVectorEnv)  # Gymnasium's own remove the mask
        if not pops or isinstance(self.envs, VectorWrapper):
            assert_identical(options, before, "options")
        return result

    def began(self, rows, result, places):
        """A reset returned, with the rows of ``places``."""
        self.keep(result)
        observations, infos = result
        assert observations in self.space(len(places))
        for place, row in enumerate(places):
            shown = row_of(self.envs.single_observation_space, observations, place)
            if row in rows:
                self.begin(row, shown, info_of(infos, place))
            else:
                assert_identical(shown, self.shown[row], f"row {row}, which was left alone,")
        if self.check is not None:
            self.check(result, np.array(places))

    def begin(self, row, shown, info):
        self.traces[row].append(Moment("reset", shown, 0.0, False, False, info))
        self.over[row], self.waited[row], self.shown[row] = False, 0, shown
        self.flags[row] = (False, False)

    def space(self, count):
        if count not in self.spaces:
            self.spaces[count] = batch_space(self.envs.single_observation_space, count)
        return self.spaces[count]

    def take(self, result, rows, resets=()):
        """A step returned, with these rows; ``resets`` are those that were sent a reset."""
        self.keep(result)
        observations, rewards, terminations, truncations, infos = result
        assert observations in self.space(len(rows))
        assert rewards.dtype == np.float64
        assert terminations.dtype == truncations.dtype == np.bool_
        assert rewards.shape == terminations.shape == truncations.shape == (len(rows),)
        for place, row in enumerate(rows):
            shown = row_of(self.envs.single_observation_space, observations, place)
            reward, flags = float(rewards[place]), (terminations[place], truncations[place])
            self.row(int(row), place, shown, reward, tuple(map(bool, flags)), infos, resets)
        if self.check is not None:
            self.check(result, np.array(rows))

    def row(self, row, place, shown, reward, flags, infos, resets):
        if row in resets or (self.over[row] and self.mode == N):
            assert (reward, *flags) == (0.0, False, False), f"row {row} was reset"
            self.begin(row, shown, info_of(infos, place))
            return
        if self.over[row]:
            assert_identical((reward, *flags), (0.0, *self.flags[row]), f"row {row}, which rests,")
            assert_identical(shown, self.shown[row], f"row {row}, which rests,")
            return
        failed = bool(infos.get("_env_error", np.zeros(place + 1, bool))[place]) and not flags[0]
        if self.counts[row] < self.script.steps:
            final, info = self.true(shown, place, flags, infos)
            what = "failed" if failed else "step"
            self.traces[row].append(Moment(what, final, reward, *flags, info))
            if failed:
                assert_identical(final, self.shown[row], f"row {row}, which failed,")
            self.counts[row] += 1
        self.shown[row], self.flags[row] = shown, flags
        if any(flags):
            if self.mode == S:
                rest = {key: value for key, value in infos.items() if "env_error" not in str(key)}
                if self.counts[row] < self.script.steps:
                    self.begin(row, shown, info_of(rest, place))
            else:
                self.over[row] = True

    def true(self, shown, place, flags, infos):
        """The true observation after a step, and its infos."""
        if self.mode != S or not any(flags):
            assert "_final_obs" not in infos or not infos["_final_obs"][place]
            return shown, info_of(infos, place)
        assert infos["_final_obs"][place]
        final = infos["final_obs"]
        space = self.envs.single_observation_space
        if isinstance(final, np.ndarray) and final.dtype == object:
            final = batch_of(space, [final[place]])
        else:
            final = row_of(space, final, place)
        assert final in self.space(1)
        return final, info_of(infos.get("final_info", {}), place)


class _Freezing(_Driver):
    """Rows that are over rest for some steps."""

    patience = 3


class _Asynchronous(_Driver):
    """Calls that begin and calls that wait."""

    def step(self, actions):
        before = copy.deepcopy(actions)
        self.envs.step_async(actions)
        result = self.envs.step_wait()
        assert_identical(actions, before, "actions")
        return result

    def call_reset(self, seeds, options):
        before = copy.deepcopy(options)
        self.envs.reset_async(seed=seeds, options=options)
        result = self.envs.reset_wait()
        assert_identical(options, before, "options")
        return result


class _InRows(_Driver):
    """Random rows step, in random order; resets name rows."""

    name = "env_index"

    def turn(self):
        waiting = (self.counts < self.script.steps).nonzero()[0]
        rows = self.random.permutation(waiting)[: self.random.integers(1, len(waiting) + 1)]
        again = self.over[rows] & (self.mode == D)
        if again.any():
            self.reset(rows[again], None)
        self.reset_due(rows.tolist())
        actions = self.actions(rows.tolist())
        before = copy.deepcopy(actions)
        result = self.envs.step(actions, rows)
        assert_identical(actions, before, "actions")
        assert result[4]["env_index"].tolist() == rows.tolist()
        self.take(result, rows.tolist())

    def reset(self, rows, seeds, *, first=False):
        if first:
            super().reset(rows, seeds, first=True)
            return
        self.name = {"env_index": "env_idx", "env_idx": "env_index"}[self.name]
        result = self.call_reset(seeds, {self.name: rows})
        self.began(rows, result, result[1]["env_index"].tolist())


class _Sending(_InRows):
    """Rows are sent and received, some while others are in flight."""

    def __init__(self, envs, script, check):
        super().__init__(envs, script, check)
        self.resetting = set()

    def run(self):
        self.envs.send_reset(seed=self.script.seed)
        self.resetting = set(range(self.num_envs))
        super().run()

    def reset(self, rows, seeds, *, first=False):
        if not first:
            options = {"env_index": rows}
            before = copy.deepcopy(options)
            self.envs.send_reset(seed=seeds, options=options)
            assert_identical(options, before, "options")
            self.resetting |= set(rows.tolist())

    def turn(self):
        idle = np.setdiff1d((self.counts < self.script.steps).nonzero()[0], self.envs.in_flight)
        if len(idle) and (not self.envs.in_flight or self.random.random() < 0.6):
            rows = self.random.permutation(idle)[: self.random.integers(1, len(idle) + 1)]
            again = self.over[rows] & (self.mode == D)
            if again.any():
                self.reset(rows[again], None)
            self.reset_due(rows.tolist())
            rows = np.array([row for row in rows.tolist() if row not in self.resetting], int)
            if len(rows):
                self.envs.send(self.actions(rows.tolist()), rows)
            return
        result = self.envs.recv(PATIENCE_S)
        rows = result[4]["env_index"].tolist()
        resets = self.resetting & set(rows)
        self.resetting -= resets
        self.take(result, rows, resets)


_DRIVERS = {
    "mask": _Driver,
    "async": _Asynchronous,
    "rows": _InRows,
    "send": _Sending,
    "freeze": _Freezing,
}


def ways_of(kind, mode):
    """The ways in which vector environments of a kind can be driven in a mode."""
    if kind == "sync":
        return WAYS[:1]
    return WAYS if mode == D else WAYS[:-1]


def settings_of(environment):
    """Kinds, modes and ways for an environment, and keywords of :func:`build`.

    With ``--full`` these are all combinations. By default each mode and each kind is met, in each
    mode one way, and ``"freeze"``: every wrapper meets the others in `tests/contract`. Which ones
    meet depends on the environment, so several environments have all ways. ``"failing"`` has no
    setting of Gymnasium's kind, which does not replace what fails.
    """
    *kinds, _ = kinds_of(environment)
    first = list(ENVIRONMENTS).index(environment)
    fails = environment == "failing"
    for kind in kinds if fails else kinds_of(environment):
        for number, mode in enumerate(MODES):
            for way in ways_of(kind, mode):
                if kind == "sync":
                    has_turn = number == first % len(MODES)
                else:
                    turn = number + first // 4 + (way == "freeze")
                    is_met = way in (WAYS[(first + number) % 4], "freeze")
                    has_turn = is_met and kind == kinds[turn % len(kinds)]
                if not (has_turn or repetitions.full):
                    continue
                keywords = {"on_error": "restart", "max_restarts": None} if fails else {}
                if way == "freeze":
                    keywords["on_done"] = "freeze"
                if way == "send" and kind != "process":  # one start of processes less
                    keywords["batch_size"] = 2
                yield kind, mode, way, keywords
