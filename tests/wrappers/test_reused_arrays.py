"""A stack of wrappers reuses arrays of an earlier step, and only those without other references."""

import traceback
import weakref
from collections import defaultdict
from copy import deepcopy

import numpy as np
import pytest

from cartwheel import wrappers as W
from tests.support.comparison import assert_identical
from tests.support.held_arrays import CHANGES, HOLDERS, KEPT, NEEDS_THE_GIL, assert_held, leaves
from tests.support.repetitions import times
from tests.support.wrapping import MODES, PATIENCE_S, D, N, S, build

ROWS = 9
ACTIONS = np.random.default_rng(0).integers(0, 2, (100, ROWS))
#: Wrappers, with the path to an array of a result that they alone make.
WRAPPERS = {
    "ClipReward": (lambda envs: W.ClipReward(envs, -0.5, 0.5), (1,)),
    "DtypeObservation": (lambda envs: W.DtypeObservation(envs, np.float64), (0,)),
    "FrameStack": (lambda envs: W.FrameStack(envs, 3), (0,)),
    "NormalizeObservation": (W.NormalizeObservation, (0,)),
    "NormalizeReward": (lambda envs: W.NormalizeReward(envs, clip=0.5), (1,)),
    "RecordEpisodeStatistics": (W.RecordEpisodeStatistics, (4, "episode", "r")),
    "RecordMetrics": (W.RecordMetrics, (4, "episode", "reward")),
    "dense finals": (lambda envs: W.DtypeObservation(envs, np.float64), (4, "final_obs")),
}


def halved(rewards):
    return rewards * 0.5


def nine_wrappers(envs):
    envs = W.NormalizeReward(W.RecordEpisodeStatistics(envs))
    envs = W.ClipReward(W.TransformReward(envs, halved), -1, 0.3)
    envs = W.FlattenObservation(W.DtypeObservation(envs, np.float64))
    envs = W.FrameStack(W.NormalizeObservation(envs), 2)
    return W.RecordMetrics(envs, stats_key="metrics")


STACKS = {
    **{name: wrap for name, (wrap, _) in WRAPPERS.items()},
    "TransformReward": lambda envs: W.TransformReward(envs, halved),
    "nine wrappers": nine_wrappers,
}


def made(name):
    mode, keywords = (S, {"final_obs": "dense"}) if name == "dense finals" else (N, {})
    envs = STACKS[name](build("native", "pole", mode, ROWS, **keywords))
    envs.reset(seed=1)
    return envs


def by_path(value, path=()):
    """The arrays of a nested value by the way to each, without seconds."""
    if isinstance(value, np.ndarray):
        return {} if path[-1] == "t" else {path: value}
    if isinstance(value, dict):
        pairs = [*value.items()]
    else:
        pairs = [*enumerate(value)] if isinstance(value, tuple) else []
    found = {}
    for key, part in pairs:
        found |= by_path(part, (*path, key))
    return found


@NEEDS_THE_GIL
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_loop_that_keeps_the_last_step_gets_few_arrays(name):
    envs, seen = made(name), defaultdict(list)
    result = None
    for actions in ACTIONS:
        result = envs.step(actions)
        for path, array in by_path(result).items():
            seen[path].append(id(array))
    envs.close()
    assert WRAPPERS[name][1] in seen
    for ids in seen.values():
        assert len(ids) > 4 * KEPT
        assert len(set(ids[KEPT:])) <= KEPT
    del result


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("name", STACKS)
def test_what_is_held_in_any_way_never_changes(name, holder):
    hold, read = HOLDERS[holder]
    envs, random, kept, paths = made(name), np.random.default_rng(1), {}, set()
    for number, actions in enumerate(ACTIONS):
        found = by_path(envs.step(actions))
        paths |= found.keys()
        missing = [path for path in found if path not in kept]
        if number >= KEPT and missing:  # one array of a step, and none of the others
            path = missing[random.integers(len(missing))]
            kept[path] = (hold(found[path]), np.array(read(hold(found[path]))))
        del found
    assert kept.keys() == paths
    for held, expected in kept.values():
        assert np.array_equal(read(held), expected)
    envs.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of NumPy, about setting a shape
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", STACKS)
def test_arrays_that_were_changed_do_not_come_again(name, change):
    envs, oracle = made(name), made(name)
    kept = []
    for number, actions in enumerate(ACTIONS):
        kept.append(oracle.step(actions))  # all of them, so that it gets new ones
        result = envs.step(actions)
        assert_identical(by_path(result), by_path(kept[-1]))
        shown = leaves(result)
        for array in shown:
            assert array.flags.writeable
            assert array.flags.aligned
            assert array.strides == np.empty_like(array).strides
        for array in shown[number % 3 :: 3]:
            CHANGES[change](array)
        del result, shown, array
    envs.close()
    oracle.close()


@pytest.mark.parametrize("name", STACKS)
def test_a_weak_reference_never_finds_another_step(name):
    envs = made(name)
    for number in range(4 * KEPT):
        shown = leaves(envs.step(ACTIONS[number]))
        references = [weakref.ref(array) for array in shown]
        copies = deepcopy(shown)
        if number % 2:  # a block is free, or all are in use
            del shown
        for actions in ACTIONS[:KEPT]:
            envs.step(actions)
            for reference, copy in zip(references, copies, strict=True):
                found = reference()
                assert found is None or np.array_equal(found, copy)
                del found
        shown = None
        for actions in ACTIONS[: 10 * KEPT]:  # some of which end episodes
            envs.step(actions)
        assert not any(reference() is not None for reference in references)
    envs.close()


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_callback_of_a_weak_reference_may_step_the_wrapper(name):
    """It is called when the array is let go, in a step."""
    envs, path, called = made(name), WRAPPERS[name][1], []

    def step():
        called.append(envs.step(ACTIONS[0])[1])

    for actions in ACTIONS:  # without a GIL, it is let go when so many others were made
        array = by_path(envs.step(actions)).get(path)
        if array is not None:
            weakref.finalize(array, step).atexit = False
        del array
    assert called
    assert all(rewards.shape == (ROWS,) for rewards in called)
    envs.close()


def test_rewards_that_a_function_keeps_do_not_change():
    """Their number differs from step to step."""
    random, kept, seen = np.random.default_rng(2), [], defaultdict(list)

    def func(rewards):
        assert rewards.flags.writeable
        assert rewards.strides == (8,)
        if random.random() < 0.3:
            kept.append((rewards[::2] if random.random() < 0.5 else rewards, rewards[::2].copy()))
        elif random.random() < 0.1:
            rewards.fill(np.nan)
            rewards.setflags(write=False)
            rewards = np.ones(len(rewards))
        seen[len(rewards)].append(rewards.copy())
        return rewards + np.arange(len(rewards))

    envs = W.TransformReward(W.NormalizeReward(build("native", "pole", N, ROWS)), halved)
    envs.func = func
    envs.reset(seed=1)
    for actions in ACTIONS:
        rewards = envs.step(actions)[1]
        kept.append((rewards, rewards.copy()))
        while random.random() < 0.5:
            kept.pop(random.integers(len(kept)))
            if not kept:
                break
    assert len(seen) > 2
    for held, copy in kept:
        assert np.array_equal(held if len(held) == len(copy) else held[::2], copy)
    envs.close()


@NEEDS_THE_GIL
def test_functions_of_rewards_get_few_arrays():
    seen = []

    def func(rewards):
        seen.append((id(rewards), len(rewards)))
        return rewards * 2

    envs = W.TransformReward(build("native", "pole", N, ROWS), halved)
    envs.func = func
    envs.reset(seed=1)
    for actions in (*ACTIONS, *ACTIONS):
        envs.step(actions)
    of_some = [of for of, count in seen if count < ROWS]
    assert len({count for _, count in seen if count < ROWS}) > 1
    assert len(of_some) > 4 * KEPT
    assert len(set(of_some[KEPT:])) <= KEPT
    envs.close()


def test_a_function_of_rewards_may_step_its_wrapper():
    shown, is_inner = [], []

    def show(step):
        shown.append((step, deepcopy(step)))

    def func(rewards):
        if len(shown) > 2 and not is_inner:
            is_inner.append(True)
            show(envs.step(ACTIONS[0]))
            is_inner.clear()
        return rewards * 2

    inner = W.FrameStack(build("native", "pole", N, ROWS), 2)
    envs = W.TransformReward(inner, lambda rewards: rewards)  # which is called when it is made
    envs.reset(seed=1)
    envs.func = func
    envs = W.RecordMetrics(W.NormalizeReward(envs))
    for actions in ACTIONS[:30]:
        show(envs.step(actions))
    for now, then in shown:
        assert_identical(now, then)
    envs.close()


def test_arrays_of_steps_that_raise_never_change():
    kept, errors = [], []

    def func(rewards):
        if len(kept) % 3 == 0:
            kept.append((rewards, rewards.copy()))
            raise ValueError("chosen to fail")
        return rewards * 0.5

    def first_array(actions):
        try:
            return leaves(envs.step(actions))[0]
        except ValueError as error:
            errors.append(error)  # whose frames have the function's rewards

    inner = W.NormalizeReward(W.RecordMetrics(build("native", "pole", N, ROWS)))
    envs = W.TransformReward(inner, halved)
    envs.func = func
    envs = W.ClipReward(W.FrameStack(envs, 2), -1, 0.4)
    envs.reset(seed=1)
    for actions in ACTIONS:
        array = first_array(actions)
        if array is not None:
            kept.append((array, array.copy()))
    assert len(errors) > KEPT
    assert_held(kept)
    for error in errors:
        *_, last = traceback.walk_tb(error.__traceback__)
        assert any(last[0].f_locals["rewards"] is held for held, _ in kept)
    envs.close()


def all_states(envs):
    """The states of all wrappers."""
    found = []
    while isinstance(envs, W.VectorWrapper):
        found.append(envs.get_own_state())
        envs = envs.env
    return found


class Finals(W.VectorWrapper):
    """Makes final observations anew; calls a function with all, and the place of one."""

    def __init__(self, envs, then):
        super().__init__(envs)
        self.then = then

    def transform(self, batch):
        if "final_obs" in batch.infos:
            finals = deepcopy(batch.infos["final_obs"])
            batch.infos = {**batch.infos, "final_obs": finals}
            self.then(finals, np.flatnonzero(batch.infos["_final_obs"])[0])


def steps_after(then, wrap=W.NormalizeObservation):
    """Steps in ``SAME_STEP``, with a function of the final observations inside another wrapper."""
    envs = wrap(Finals(build("native", "pole", S, ROWS), then))
    envs.reset(seed=1)
    for actions in ACTIONS:
        yield envs.step(actions)
    envs.close()


@pytest.mark.parametrize("holder", HOLDERS)
def test_final_observations_that_are_held_inside_never_change(holder):
    (hold, read), kept = HOLDERS[holder], []

    def keep(finals, place):
        kept.append((hold(finals[place]), np.array(read(hold(finals[place])))))

    shown = [infos["final_obs"] for *_, infos in steps_after(keep) if "final_obs" in infos]
    assert 10 < len(kept) == len(shown)
    for held, expected in kept:
        assert np.array_equal(read(held), expected)


def test_arrays_of_final_observations_that_are_held_inside_never_change():
    kept = []

    def keep(finals, place):
        kept.append((finals, [None if final is None else final.copy() for final in finals]))
        kept.append((finals[::-1], kept[-1][1][::-1]) if place % 2 else kept[-1])

    list(steps_after(keep))
    assert len(kept) > 20
    for finals, expected in kept:
        assert_identical(list(finals), expected)


def test_a_weak_reference_never_finds_a_final_observation_that_was_changed():
    kept = []

    def keep(finals, place):
        kept.append((weakref.ref(finals[place]), finals[place].copy()))
        kept.append((weakref.ref(finals), deepcopy(finals)))

    for _ in steps_after(keep):
        for reference, expected in kept:
            final = reference()
            assert final is None or all(map(np.array_equal, final, expected))
    assert len(kept) > 20


def test_a_function_of_a_weak_reference_changes_the_shape_of_no_other_final_observation():
    rows, kept = [], []

    def doubled(observations):
        rows[:] = [observations * 2]
        return rows[0]

    def reshape(_reference):
        rows[0].shape = (-1, 1, 1, 1)
        kept.append(np.empty((3, 5)))  # whose lengths may lie where those of the rows were

    def keep(finals, place):
        kept.append(weakref.ref(finals[place], reshape))

    for *_, infos in steps_after(keep, lambda envs: W.TransformObservation(envs, doubled)):
        finals = infos.get("final_obs", ())
        assert {final.shape for final in finals if final is not None} <= {(4,)}
    assert any(isinstance(each, np.ndarray) for each in kept)


@NEEDS_THE_GIL
def test_final_observations_that_no_other_code_has_are_written_where_they_are():
    seen, count = [], 0
    for *_, infos in steps_after(lambda finals, at: seen.append((at, id(finals), id(finals[at])))):
        if "final_obs" in infos:
            (at, all_of_them, one), finals = seen[-1], infos["final_obs"]
            assert (id(finals), id(finals[at])) == (all_of_them, one)
            count += 1
    assert count > 10


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["native", "inline", "process"])
@pytest.mark.parametrize("name", STACKS)
def test_steps_held_at_random_equal_those_of_a_program_that_holds_all(kind, mode, name):
    envs, oracle = (STACKS[name](build(kind, "pole", mode, ROWS)) for _ in range(2))
    random, kept, held, states = np.random.default_rng(3), [], [], []
    over = np.ones(ROWS, np.bool_)

    def compared(call):
        held.append(call(oracle))
        shown = call(envs)
        assert_identical(by_path(shown), by_path(held[-1]))
        for array in leaves(shown):
            if array.dtype != object and random.random() < 0.2:
                view = (array, array[..., :1], array.T, memoryview(array))[random.integers(4)]
                kept.append((view, np.array(view)))
        while kept and random.random() < 0.6:
            kept.pop(random.integers(len(kept)))
        assert_held(kept[-10:])
        return held[-1]

    for number in range(times(80, with_full=400)):
        if number % 20 == 0 or (mode == D and over.any()):
            mask = np.ones(ROWS, np.bool_) if number % 20 == 0 else over
            options = {"reset_mask": mask}
            compared(
                lambda pool, options=options, seed=number: pool.reset(seed=seed, options=options)
            )
            over = np.zeros(ROWS, np.bool_)
            continue
        event = random.choice(["rows", "send", "frozen", "state", *["step"] * 8])
        actions = random.integers(0, 2, ROWS)
        rows = np.sort(random.choice(ROWS, 4, replace=False)) if event in ("rows", "send") else None

        def step(pool, event=event, actions=actions, rows=rows):
            if event == "frozen":
                with pool.frozen():
                    return pool.step(actions)
            if event == "send":
                pool.send(actions[rows], rows)
                return pool.recv(PATIENCE_S)
            return pool.step(actions) if rows is None else pool.step(actions[rows], rows)

        if event == "state":
            state = all_states(envs)
            states.append((state, deepcopy(state)))
        ends = np.logical_or(*compared(step)[2:4])
        over[slice(None) if rows is None else rows] = ends
    assert_held(kept)
    assert_identical([now for now, _ in states], [then for _, then in states])
    envs.close()
    oracle.close()
