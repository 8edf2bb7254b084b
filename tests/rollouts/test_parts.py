"""The parts of a rollout: each row is there once, in the right place, with its data."""

import collections

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode

import cartwheel
from tests.support.collecting import assert_same, collector_of, states_of
from tests.support.comparison import assert_identical
from tests.support.environments import samplers
from tests.support.executors import INLINE
from tests.support.simulated_rollouts import FROZEN, MODES, episodes, rollouts

RESTARTING = [mode for mode in MODES if mode != FROZEN]
STEPS = 23


def pairs_of(mode):
    """Consecutive rollouts, each with its simulation."""
    number = 1 if mode == FROZEN else 3
    with collector_of(mode, STEPS) as collector:
        rollout = collector.collect()
        simulation = list(rollouts(mode, rollout.num_steps, number))
        yield rollout, simulation[0]
        for simulated in simulation[1:]:
            yield collector.collect(), simulated


def moves(simulated):
    """For each transition: its row; its two states, reward and flags; its episode."""
    for t, step in enumerate(simulated.grid):
        for env, row in enumerate(step):
            if row.transition is not None:
                episode, number, k = row.transition
                last = k == len(episode) - 1
                flags = (last and episode.terminated, last and episode.truncated)
                states = episode.states[k : k + 2]
                yield (t, env), (*states, episode.rewards[k], *flags), (env, number)


@pytest.mark.parametrize("order", ["time", "env"])
@pytest.mark.parametrize("mode", MODES)
def test_transitions_equal_those_of_the_environments(mode, order):
    for rollout, simulated in pairs_of(mode):
        wanted = sorted(
            moves(simulated), key=lambda row: row[0] if order == "time" else row[0][::-1]
        )
        places, rows, numbers = zip(*wanted, strict=True)
        found = rollout.transitions(order, gamma=0.9)
        assert len(found) == len(wanted)
        columns = [states_of(found.observations), states_of(found.next_observations)]
        columns += [found.rewards, found.terminated, found.truncated]
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == list(rows)
        assert list(zip(found.steps.tolist(), found.env_index.tolist(), strict=True)) == list(
            places
        )
        assert_identical(found.actions, states_of(found.observations) % 1000)
        assert_identical(found.extras["half"], found.observations[:, 0] / 2)
        assert_identical(found.discounts, np.where(found.terminated, 0.0, 0.9))
        assert (found.lengths == 1).all()
        same = collections.defaultdict(set)
        for number, episode in zip(numbers, found.episodes.tolist(), strict=True):
            same[number].add(episode)
        assert sorted(len(each) for each in same.values()) == [1] * len(same)
        assert set.union(*same.values()) == set(range(len(same)))
        assert rollout.transitions().discounts is None


@pytest.mark.parametrize("n", [2, 3, 100])
@pytest.mark.parametrize("mode", MODES)
def test_n_step_transitions_stop_at_the_end_of_their_episode(mode, n):
    for rollout, simulated in pairs_of(mode):
        found = rollout.transitions(n_step=n, gamma=0.9)
        rows = {place: (states, number) for place, states, number in moves(simulated)}
        for i, (t, env) in enumerate(zip(found.steps, found.env_index, strict=True)):
            number = rows[t, env][1]
            window = []
            for ahead in range(t, min(t + n, rollout.num_steps)):
                if rows.get((ahead, env), (None, None))[1] != number:
                    break
                window.append(rows[ahead, env][0])
            assert found.lengths[i] == len(window)
            total = sum(0.9**k * row[2] for k, row in enumerate(window))
            assert found.rewards[i] == pytest.approx(total, abs=1e-12)
            _, after, _, terminated, truncated = window[-1]
            assert states_of(found.next_observations[i]) == after
            assert (found.terminated[i], found.truncated[i]) == (terminated, truncated)
            discount = 0 if terminated else 0.9 ** len(window)
            assert found.discounts[i] == pytest.approx(discount, abs=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_episodes_are_complete_across_rollouts(mode):
    streams = [episodes(0, env) for env in range(5)]
    ended = []
    for rollout, _ in pairs_of(mode):
        complete = rollout.episodes(complete_only=True)
        everything = list(rollout.episodes())
        assert list(complete) == everything[: len(complete)]
        assert not any(each.terminated or each.truncated for each in everything[len(complete) :])
        assert (np.diff(complete.stops) >= 0).all()
        for each in everything:
            rows = np.s_[each.start : each.stop, each.env_index]
            assert rollout.valid[rows].all()
            flags = rollout.terminated[rows] | rollout.truncated[rows]
            assert not flags[:-1].any()
            assert rollout.is_first[each.start, each.env_index] == (
                each.length == each.stop - each.start
            )
        assert rollout.valid.sum() == sum(each.stop - each.start for each in everything)
        ended += list(complete)
    for each in ended:
        wanted = next(streams[each.env_index])
        assert each.length == len(wanted)
        assert each.episode_return == pytest.approx(sum(wanted.rewards), abs=1e-12)
        assert (each.terminated, each.truncated) == (wanted.terminated, wanted.truncated)


@pytest.mark.parametrize("mode", MODES)
def test_flat_rows_are_the_valid_ones(mode):
    for rollout, _ in pairs_of(mode):
        rollout.extras["place"] = np.arange(rollout.valid.size).reshape(rollout.valid.shape)
        rows = rollout.flatten()
        assert len(rows) == rollout.valid.sum()
        assert_identical(rows["place"], np.flatnonzero(rollout.valid))
        assert_identical(rows.rewards, rollout.rewards[rollout.valid])
        assert_identical(rows.observations, rollout.observations[:-1][rollout.valid])
        everything = rollout.flatten(valid_only=False)
        assert len(everything) == rollout.valid.size
        assert np.shares_memory(everything.observations, rollout.observations)
        assert np.shares_memory(everything.actions, rollout.actions)
        if mode in ("SAME_STEP", "DISABLED"):
            assert np.shares_memory(rows.observations, rollout.observations)


@pytest.mark.parametrize("way", [{"by": "row"}, {"by": "env"}, {"by": "sequence", "length": 5}])
@pytest.mark.parametrize("mode", MODES)
def test_minibatches_hold_every_transition_once(mode, way):
    rollout, _ = next(pairs_of(mode))
    rollout.extras["place"] = np.arange(rollout.valid.size).reshape(rollout.valid.shape)
    size = {"row": 7, "env": 2, "sequence": 3}[way["by"]]
    parts = list(rollout.minibatches(size, seed=3, **way))
    assert {len(part) for part in parts[:-1]} == {size}
    assert 1 <= len(parts[-1]) <= size
    places = []
    for part in parts:
        valid = getattr(part, "valid", np.ones(len(part), bool))
        places.append(part["place"][valid])
        assert_identical(part.rewards, rollout.rewards.reshape(-1)[part["place"]])
        assert_identical(part.observations[..., 0] / 2, part["half"])
    seen = np.concatenate(places)
    assert_identical(np.sort(seen), np.flatnonzero(rollout.valid))
    again = list(rollout.minibatches(size, seed=3, **way))
    assert_identical([part["place"] for part in again], [part["place"] for part in parts])
    other = rollout.minibatches(size, seed=np.random.default_rng(4), **way)
    assert any(
        (one["place"][..., 0] != two["place"][..., 0]).any()
        for one, two in zip(other, parts, strict=True)
        if len(one) == len(two)
    )
    plain = next(iter(rollout.minibatches(size, shuffle=False, **way)))
    first = plain["place"][plain.valid] if way["by"] != "row" else plain["place"]
    assert 0 in first
    count = len(list(rollout.minibatches(size, drop_last=True, **way)))
    assert count == sum(len(part) for part in parts) // size


@pytest.mark.parametrize("stride", [None, 2])
@pytest.mark.parametrize("mode", MODES)
def test_windows_stay_in_their_episode_or_mark_the_start_of_another(mode, stride):
    for rollout, _ in pairs_of(mode):
        length = 3
        windows = rollout.windows(length, stride)
        inside = np.arange(length)[:, None] < windows.lengths
        assert_identical(windows.valid, inside)
        assert not windows.is_first[1:].any()
        starts = []
        for each in rollout.episodes():
            starts += [
                (each.env_index, start, min(length, each.stop - start))
                for start in range(each.start, each.stop, stride or length)
            ]
        columns = (windows.env_index, windows.starts, windows.lengths)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == starts
        through = rollout.windows(length, stride, stop_at_done=False)
        for w in range(len(through)):
            rows = np.s_[through.starts[w] : through.starts[w] + length, through.env_index[w]]
            n = through.lengths[w]
            assert_identical(through.valid[:n, w], rollout.valid[rows])
            assert_identical(through.is_first[:n, w], rollout.is_first[:-1][rows])
            assert_identical(through.observations[:n, w], rollout.observations[:-1][rows])
            assert not through.valid[n:, w].any()


@pytest.mark.parametrize("mode", MODES)
def test_a_tail_is_a_rollout_of_the_last_steps(mode):
    for rollout, _ in pairs_of(mode):
        rollout.set_values(np.sin(rollout.value_inputs()[:, 0]))
        whole, steps = rollout.to_workspace(), rollout.num_steps
        advantages, _ = rollout.gae(0.9, 0.8)
        for n in (1, steps // 2, steps):
            tail = rollout.tail(n)
            assert tail.num_steps == n
            assert np.shares_memory(tail.observations, rollout.observations)
            frames = tail.to_workspace()
            for name, array in frames.items():
                assert_identical(array, whole[name][-n - 1 :])
            assert_identical(tail.next_observations(), rollout.next_observations()[-n:])
            assert_identical(tail.gae(0.9, 0.8)[0], advantages[-n:])
            cut = steps - n
            moved = rollout.transitions()
            kept = moved.steps >= cut
            assert_identical(tail.transitions().next_observations, moved.next_observations[kept])
        assert_same(rollout.tail(steps), rollout)


def test_extras_are_looked_up_by_name_only():
    rollout, _ = next(pairs_of("SAME_STEP"))
    rollout.extras["value"] = np.zeros(rollout.rewards.shape)
    for part in (rollout.flatten(), rollout.windows(3)):
        assert "value" in part
        assert "rewards" not in part
        with pytest.raises(KeyError, match=r"\[.*'value'.*\], and not 'rewards'; observations"):
            part["rewards"]
        with pytest.raises(TypeError, match="not iterable"):
            iter(part)


def test_invalid_arguments_of_parts_are_refused():
    rollout, _ = next(pairs_of("SAME_STEP"))
    for call, message in [
        (lambda: rollout.transitions("rows"), "`order` must be one of 'time', 'env', got 'rows'"),
        (lambda: rollout.transitions(n_step=2), "`n_step=2` needs `gamma`"),
        (lambda: rollout.transitions(n_step=0, gamma=0.9), "`n_step` must be a positive integer"),
        (lambda: rollout.transitions(gamma=1.5), r"\[0, 1\]"),
        (lambda: rollout.transitions(bootstrap="no", gamma=0.9), "bootstrap"),
        (lambda: rollout.minibatches(0), "`batch_size` must be a positive integer, got 0"),
        (lambda: rollout.minibatches(3, by="time"), "`by` must be one of"),
        (lambda: rollout.minibatches(3, by="sequence"), "by='sequence' needs `length`"),
        (lambda: rollout.minibatches(3, length=4), "`length` needs by='sequence'"),
        (
            lambda: rollout.minibatches(3, by="sequence", length=0),
            "`length` must be a positive integer",
        ),
        (lambda: rollout.windows(2.5), "`length` must be a positive integer, got 2.5"),
        (lambda: rollout.windows(0), "`length` must be a positive integer"),
        (lambda: rollout.windows(3, 0), "`stride` must be a positive integer"),
        (lambda: rollout.tail(0), "`n` must be a positive integer"),
        (lambda: rollout.tail(STEPS + 1), f"`n` must be at most {STEPS}"),
        (lambda: rollout.to_workspace("t+2"), "`reward_at` must be one of"),
        (lambda: rollout.workspace_transitions("0"), "`reward_at` must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    rollout.extras["wrong"] = np.zeros((STEPS + 1, 5))
    with pytest.raises(ValueError, match=r"extra `wrong` must have shape \(23, 5, …\), got"):
        rollout.flatten()


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_inputs_of_values_have_parts_without_numbers(mode):
    space = Dict(empty=Box(-1, 1, (0,)), full=Box(-1, 1, (2,)))
    with INLINE(samplers(space, 2), autoreset_mode=mode) as envs:
        rollout = cartwheel.Collector(
            envs, lambda seen: np.zeros(len(seen["full"]), int), 6
        ).collect()
    rows = 7 * 2 + len(rollout.final_index)
    inputs = rollout.value_inputs()
    assert {key: part.shape for key, part in inputs.items()} == {
        "empty": (rows, 0),
        "full": (rows, 2),
    }
