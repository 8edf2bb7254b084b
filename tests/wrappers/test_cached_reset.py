"""Every reset loads one of the initial states: as single environments that are copied."""

import copy
import functools
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import SyncVectorEnv

import cartwheel
from cartwheel._internal import nested
from cartwheel.wrappers import CachedReset, FrameStack, RecordEpisodeStatistics
from tests.support.cases import Case
from tests.support.comparison import assert_identical
from tests.support.executors import INLINE, NATIVE, PROCESS, THREAD, Executor, Native
from tests.support.faulty import FaultyEnv, fault
from tests.support.in_parts import Oracle, Sender
from tests.support.oracle import MODE, D, N, S
from tests.support.stateful import NestedWalkEnv, walk

SEED, STATES = 7, 5
MASK = 2**64 - 1
LAKE = Case("FrozenLake-v1", {"max_episode_steps": 6})
POLE = Case("CartPole-v1", {"max_episode_steps": 5})
CARDS = Case("Blackjack-v1")
SETTINGS = [
    (INLINE, walk),
    (THREAD, walk),
    (Executor("process", {"num_workers": 7}), functools.partial(walk, NestedWalkEnv)),
    (NATIVE, POLE),
    (NATIVE, LAKE),
    (Native("native", {"num_workers": 7}), CARDS),
]
NAMES = ["inline", "thread", "process, nested", "native", "native, infos", "native, tuples"]
KINDS = pytest.mark.parametrize(("executor", "env_fn"), SETTINGS, ids=NAMES)


def mixed(*words):
    """SplitMix64 over 64-bit words, without the zeros at the end."""
    words = list(words)
    while words and not words[-1]:
        words.pop()
    number = 0
    for word in [0, *words]:
        number = (number + word + 0x9E3779B97F4A7C15) & MASK
        number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & MASK
        number = (number ^ number >> 27) * 0x94D049BB133111EB & MASK
        number ^= number >> 31
    return number


def words_of(seed):
    return [seed >> 64 * at & MASK for at in range(seed.bit_length() // 64 + 1)]


class Samples:
    """Single environments after their resets, and what these returned."""

    def __init__(self, env_fn, num_envs, states=STATES, seed=SEED):
        words = np.random.SeedSequence(seed).generate_state(1 + num_envs + states, "u8").tolist()
        self.key, self.own = words[0], words[1 : 1 + num_envs]
        self.envs = [env_fn() for _ in range(states)]
        self.results = [
            env.reset(seed=own) for env, own in zip(self.envs, words[1 + num_envs :], strict=True)
        ]


class Copied(gym.Wrapper):
    """Each reset makes a copy of one of the samples; the random numbers go on."""

    def __init__(self, env_fn, samples, row):
        super().__init__(env_fn())
        self.samples, self.draw, self.chosen = samples, None, None
        self.reset(seed=samples.own[row])

    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - Gymnasium's signature
        chosen, self.chosen = self.chosen, None
        seed = chosen if seed is None else seed
        inner = self.env.unwrapped
        stream = inner.np_random if seed is None else seeding.np_random(seed)[0]
        if seed is not None:
            self.draw = [mixed(self.samples.key, mixed(*words_of(seed))), 0]
        number = mixed(*self.draw) * len(self.samples.envs) >> 64
        self.draw[1] += 1
        self.env = copy.deepcopy(self.samples.envs[number])
        self.env.unwrapped._np_random = stream
        return copy.deepcopy(self.samples.results[number])


def oracles(env_fn, num_envs, **keywords):
    samples = Samples(env_fn, num_envs, **keywords)
    return [functools.partial(Copied, env_fn, samples, row) for row in range(num_envs)]


def actions_of(envs, random):
    return random.integers(2, size=envs.num_envs)


@KINDS
@MODE
def test_resets_of_every_kind_load_states_as_copies_of_single_environments_do(
    executor, env_fn, mode
):
    envs = CachedReset(executor([env_fn] * 4, autoreset_mode=mode), STATES, seed=SEED)
    oracle, random = (
        SyncVectorEnv(oracles(env_fn, 4), autoreset_mode=mode),
        np.random.default_rng(1),
    )
    assert_identical(envs.reset(), oracle.reset())
    for step in range(60):
        if random.random() < 0.15:
            seed = int(random.integers(2**40)) if random.random() < 0.5 else None
            mask = random.random(4) < 0.6
            mask[random.integers(4)] = True
            options = {"reset_mask": mask} if random.random() < 0.8 else None
            got = envs.reset(seed=seed, options=None if options is None else dict(options))
            assert_identical(got, oracle.reset(seed=seed, options=options))
        if mode != D and step == 30:
            envs.next_reset(seed=2**70)
            for row, env in enumerate(oracle.envs):
                env.chosen = 2**70 + row
        actions = actions_of(envs, random)
        result = envs.step(actions)
        assert_identical(result, oracle.step(actions))
        over = result[2] | result[3]
        if mode == D and over.any():
            options = {"reset_mask": over}
            assert_identical(envs.reset(options=dict(options)), oracle.reset(options=options))
    envs.close()


@KINDS
@pytest.mark.parametrize("mode", [N, S, D], ids=lambda mode: mode.value)
def test_rows_that_are_sent_load_states(executor, env_fn, mode):
    envs = CachedReset(executor([env_fn] * 5, autoreset_mode=mode, batch_size=2), STATES, seed=SEED)
    oracle, random = Oracle(oracles(env_fn, 5), mode), np.random.default_rng(2)
    sender = Sender(envs, oracle)
    sender.reset(range(5), [10, 11, 12, 13, 14])
    while sender.counts.min() < 25:
        if sender.idle and (not sender.sent or random.random() < 0.6):
            rows = random.permutation(sender.idle)[: random.integers(1, len(sender.idle) + 1)]
            ends = [row for row in rows.tolist() if sender.must_reset(row) or random.random() < 0.1]
            steps = [row for row in rows.tolist() if row not in ends]
            if ends:
                sender.reset(ends, [None] * len(ends))
            if steps:
                sender.step(steps, random.integers(2, size=len(steps)).tolist())
        else:
            sender.receive()
    while sender.sent:
        sender.receive()
    envs.close()


@pytest.mark.parametrize("num_states", [1, 4, 9])
def test_every_state_has_a_seed_of_its_own_and_is_drawn_as_often(num_states):
    envs = CachedReset(cartwheel.NativeVectorEnv("CartPole-v1", 4), num_states, seed=3)
    assert envs.num_states == num_states
    seen = np.concatenate([envs.reset()[0] for _ in range(250)])
    distinct, counts = np.unique(seen, axis=0, return_counts=True)
    assert len(distinct) == num_states
    assert (np.abs(counts - 1000 / num_states) < 6 * np.sqrt(1000 / num_states) + 1).all()
    envs.close()


def test_the_seed_decides_states_and_draws_in_every_executor():
    def rows(executor, seed, num_workers):
        env_fn = POLE if isinstance(executor, Native) else walk
        envs = CachedReset(executor([env_fn] * 5, num_workers=num_workers), 6, seed=seed)
        rows = [envs.reset()[0].tolist() for _ in range(3)] + [envs.reset(seed=1)[0].tolist()]
        envs.close()
        return rows

    for executor in (Executor("process"), Native("native")):
        first = rows(executor, 1, 2)
        assert first == rows(executor, 1, 5)
        assert first != rows(executor, 2, 2)
        assert rows(executor, None, 2) != rows(executor, None, 2)


@pytest.mark.parametrize(
    ("executor", "env_fn"), [(INLINE, walk), (NATIVE, POLE)], ids=["inline", "native"]
)
def test_after_ctrl_c_environments_are_wrapped_again(executor, env_fn, monkeypatch):
    def interrupted(*_, **_keywords):
        raise KeyboardInterrupt

    inner = executor([env_fn] * 3)
    with monkeypatch.context() as patch:
        patch.setattr(type(inner), "recv", interrupted)
        with pytest.raises(KeyboardInterrupt):
            CachedReset(inner, 2, seed=1)
    inner.recv()
    envs, others = CachedReset(inner, 5, seed=3), CachedReset(executor([env_fn] * 3), 5, seed=3)
    for _ in range(5):
        assert_identical(envs.reset(), others.reset())
    for each in (envs, others):
        each.close()


@pytest.mark.parametrize(
    ("executor", "env_fn"), [(INLINE, walk), (NATIVE, CARDS)], ids=["inline", "native"]
)
def test_episodes_from_the_same_state_have_random_numbers_of_their_own(executor, env_fn):
    envs = CachedReset(executor([env_fn] * 3, autoreset_mode=D, on_done="freeze"), 1, seed=3)
    traces, firsts = set(), set()
    for _ in range(6):
        firsts.update(str(row) for row in _rows(envs.reset()[0]))
        steps = [_rows(envs.step(np.ones(3, int))[0]) for _ in range(3)]
        traces.update(map(str, zip(*steps, strict=True)))
    assert len(firsts) == 1
    assert len(traces) > 6
    envs.close()


def _rows(observations):
    """The rows of a batch of arrays, or of tuples of arrays."""
    parts = observations if isinstance(observations, tuple) else (observations,)
    return np.column_stack(parts).tolist()


@KINDS
def test_draws_are_saved_and_restored(executor, env_fn):
    envs = CachedReset(executor([env_fn] * 3, autoreset_mode=S), STATES, seed=SEED)
    envs.reset()
    for _ in range(7):
        envs.step(np.ones(3, int))
    saved, states = pickle.loads(pickle.dumps(envs.get_own_state())), envs.get_state()
    random = np.random.default_rng(0)
    actions = random.integers(2, size=(20, 3))
    expected = [envs.step(action) for action in actions]
    other = CachedReset(executor([env_fn] * 3, autoreset_mode=S), STATES, seed=99)
    other.reset()
    for restored in (envs, other):
        restored.set_own_state(saved)
        restored.set_state(None, states)
        assert_identical([restored.step(action) for action in actions], expected)
    assert len(envs.get_state([0])[0]) < 3 * len(saved["states"][0]), "without the cache"
    before = envs.get_own_state()
    for change, words in [
        ({"states": []}, "must be num_states=5 initial states, got 0"),
        ({"states": [b"?"] * STATES}, "state"),
        ({"key": -1}, r"from 0 to 2\*\*64 - 1, got -1"),
        ({"draw_keys": np.zeros(2, np.uint64)}, r"draw_keys.* must be an array uint64 \(3,\)"),
        ({"draw_counts": np.zeros(3, np.int64)}, "draw_counts.* must be an array uint64"),
        ({"more": 1}, "must be a dict with the keys"),
    ]:
        with pytest.raises(ValueError, match=words):
            envs.set_own_state({**saved, **change})
        assert_identical(envs.get_own_state(), before)
    envs.close()
    other.close()


class FaultyWalk(FaultyEnv):
    def get_state(self):
        return self.walk.copy(), self.steps, self.np_random.bit_generator.state

    def set_state(self, state):
        self.walk, self.steps, self.np_random.bit_generator.state = state
        self.walk = self.walk.copy()


@MODE
def test_replacements_and_restarted_workers_load_states_too(build_processes, mode):
    fns = [functools.partial(FaultyWalk, row) for row in range(4)]
    inner = build_processes(
        fns, autoreset_mode=mode, on_error="restart", on_worker_death="restart", on_done="freeze"
    )
    envs = CachedReset(inner, 3, seed=1)
    known = {row.tobytes() for _ in range(9) for row in envs.reset()[0]}
    assert len(known) == 3
    actions = np.full(4, fault("none"))
    for name, rows in (("value error", [2]), ("kill", [2, 3])):
        actions[2] = fault(name)
        envs.step(actions)
        actions[2] = fault("none")
        if mode == N:
            observations = envs.step(actions)[0]
        else:
            observations = envs.reset(options={"env_index": np.array(rows)})[0]
            rows = range(len(rows))
        assert {observations[row].tobytes() for row in rows} <= known
        assert {row.tobytes() for row in envs.reset()[0]} <= known


def test_wrappers_above_and_below_see_usual_resets(build_any):
    env_fn = POLE if build_any.executor == "native" else walk
    for mode in (N, S, D):
        inner = build_any([env_fn] * 3, autoreset_mode=mode)
        envs = RecordEpisodeStatistics(FrameStack(CachedReset(inner, 2, seed=1), 2))
        observations, _ = envs.reset()
        assert_identical(observations[:, 0], observations[:, 1])
        arrays = envs.rollout(4) if mode != D else None
        for _ in range(4):
            assert envs.step(np.zeros(3, int))[0].shape[:2] == (3, 2)
        del arrays
        below = CachedReset(FrameStack(build_any([env_fn] * 3, autoreset_mode=mode), 2), 2, seed=1)
        observations, _ = below.reset()
        assert_identical(observations[:, 0], observations[:, 1])
        assert below.step(np.zeros(3, int), np.arange(3))[0].shape[:2] == (3, 2)


@KINDS
def test_rows_must_be_reset_before_they_are_stepped(executor, env_fn):
    envs = CachedReset(executor([env_fn] * 4), STATES, SEED)
    actions = nested.take(envs.single_action_space, envs.action_space.sample(), np.arange(4))
    some = nested.take(envs.single_action_space, actions, np.arange(2))

    def refused(step, *arguments):
        with pytest.raises(ResetNeeded, match="before calling") as error:
            step(*arguments)
        return error.value.__notes__

    for step in (envs.step, envs.step_async, envs.send):
        assert refused(step, actions) == ["rows [0, 1, 2, 3] were never reset"]
        assert refused(step, some, [3, 1]) == ["rows [1, 3] were never reset"]
    envs.reset(options={"env_index": np.array([2, 0])})
    envs.step(some, [0, 2])
    assert refused(envs.step, some, [2, 3]) == ["rows [3] were never reset"]
    envs.reset(options={"reset_mask": np.array([False, True, False, False])})
    envs.send_reset(options={"env_index": np.array([3])})
    assert refused(envs.step, actions) == ["rows [3] were never reset"]
    envs.recv()
    envs.step(actions)
    envs.close()
    fresh = CachedReset(executor([env_fn] * 4), STATES, SEED)
    fresh.close()
    with pytest.raises(ClosedEnvironmentError):
        fresh.step(actions)


def test_wrong_arguments_are_refused_before_anything_is_reset():
    envs = INLINE([walk] * 2)
    for arguments, words in [
        ((0,), "`num_states` must be a positive integer, got 0"),
        ((1.5,), "`num_states` must be a positive integer, got 1.5"),
        ((3, -1), "`seed` must be an integer from 0 on, got -1"),
    ]:
        with pytest.raises(ValueError, match=words):
            CachedReset(envs, *arguments)
    assert [env.unwrapped._np_random for env in envs.envs] == [None, None]
    with pytest.raises(TypeError, match="must be a vector environment of cartwheel"):
        CachedReset(SyncVectorEnv([walk]), 2)
    cached = CachedReset(envs, 2)
    with pytest.raises(ValueError, match="`CachedReset` already"):
        CachedReset(cached, 2)
    cached.reset()
    cached.send(np.zeros(1, int), [1])
    with pytest.raises(gym.error.AlreadyPendingCallError):
        cached.get_own_state()
    cached.close()
    plain = INLINE([functools.partial(gym.make, "CartPole-v1")])
    with pytest.raises(ValueError, match=r"row 0, .*CartPoleEnv, cannot be saved"):
        CachedReset(plain, 2)
    plain.close()
    flying = PROCESS([walk] * 2)
    flying.send_reset()
    with pytest.raises(gym.error.AlreadyPendingCallError):
        CachedReset(flying, 2)
    flying.close()
