"""Agents show masks of actions in their observations or infos."""
# ruff: noqa: ARG002 (signatures are PettingZoo's)

from contextlib import closing
from functools import partial

import numpy as np
import pettingzoo
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

import cartwheel
from cartwheel._cartwheel import keep_masks
from tests.multiagent.environments import rock_paper_scissors
from tests.support.gates import Gates
from tests.support.masked import expected, mask_of

MODES = ["next_step", "same_step", "disabled"]
AGENTS = ["a_0", "a_1", "b_0"]


class Masked(pettingzoo.ParallelEnv):
    """Each agent counts from a number of its own; ``a_1`` ends two steps before the others."""

    metadata = {"name": "masked"}  # noqa: RUF012 - PettingZoo's

    def __init__(self, shows=True, key="action_mask"):
        self.possible_agents, self.shows, self.key = list(AGENTS), shows, key
        self.rng = np.random.default_rng(0)

    def observation_space(self, agent):
        count = Box(0, 1000, (1,), np.int64)
        return Dict({self.key: Box(0, 1, (4,), np.int8), "count": count}) if self.shows else count

    def action_space(self, agent):
        return Discrete(4)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.agents = list(AGENTS)
        self.counts = {agent: int(self.rng.integers(20)) for agent in AGENTS}
        self.t, self.limit = 0, int(self.rng.integers(4, 8))
        return self.shown()

    def step(self, actions):
        assert set(actions) >= set(self.agents)
        self.t += 1
        ended = {a: self.t == self.limit - 2 * (a == "a_1") for a in self.agents}
        self.counts = {agent: count + 1 for agent, count in self.counts.items()}
        observations, infos = self.shown()
        rewards, no = dict.fromkeys(self.agents, 1.0), dict.fromkeys(self.agents, False)
        self.agents = [agent for agent in self.agents if not ended[agent]]
        return observations, rewards, ended, no, infos

    def shown(self):
        observations, infos = {}, {}
        for agent in self.agents:
            count = np.array([self.counts[agent]])
            mask = mask_of(self.counts[agent]).astype(np.int8)
            infos[agent] = {} if self.shows else {self.key: mask}
            observations[agent] = {"count": count, self.key: mask} if self.shows else count
        return observations, infos


def wanted(observations, infos, mode, ended):
    """The masks of a batch."""
    masks = {}
    over = infos.get("episode_over", np.zeros(len(infos["present"]["a_0"]), np.bool_))
    for agent in AGENTS:
        shown = observations[agent]
        counts = shown["count"] if isinstance(shown, dict) else shown
        ignored = ~infos["present"][agent] | (over if mode != "same_step" else False)
        ignored = ignored | (ended[agent] & np.logical_not(over if mode == "same_step" else False))
        masks[agent] = expected(counts) | ignored[:, None]
    return masks


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shows", [True, False], ids=["observations", "infos"])
@pytest.mark.parametrize("executor", ["inline", "process"])
def test_masks_are_those_of_the_observations(mode, shows, executor):
    make = [partial(Masked, shows)] * 3
    none = dict.fromkeys(AGENTS, np.zeros(3, np.bool_))
    with closing(cartwheel.ParallelVectorEnv(make, autoreset_mode=mode, executor=executor)) as envs:
        observations, infos = envs.reset(seed=1)
        np.testing.assert_equal(envs.action_masks(), wanted(observations, infos, mode, none))
        over, masked = np.zeros(3, np.bool_), 0
        for _ in range(20):
            if mode == "disabled" and over.any():
                before = envs.action_masks()
                observations, infos = envs.reset(options={"reset_mask": over})
                masks = envs.action_masks()
                for agent in AGENTS:
                    np.testing.assert_array_equal(masks[agent][~over], before[agent][~over])
                    shown = observations[agent]["count"] if shows else observations[agent]
                    np.testing.assert_array_equal(masks[agent][over], expected(shown[over]))
            actions = {agent: np.ones(3, np.int64) for agent in AGENTS}
            observations, _, terminated, _, infos = envs.step(actions)
            over = infos["episode_over"]
            masks = wanted(observations, infos, mode, terminated)
            np.testing.assert_equal(envs.action_masks(), masks)
            masked += not all(mask.all() for mask in masks.values())
        assert masked > 10


@pytest.mark.parametrize(
    ("mode", "shows"),
    [("next_step", True), ("next_step", False), ("disabled", False), ("frozen", True)],
)
def test_a_row_that_a_limit_ended_allows_every_action_until_it_is_reset(mode, shows):
    make = [partial(Masked, shows)] * 2
    keywords = {"autoreset_mode": mode, "executor": "inline", "max_episode_steps": 3}
    if mode == "frozen":
        keywords |= {"autoreset_mode": "disabled", "on_done": "freeze"}
    with closing(cartwheel.ParallelVectorEnv(make, **keywords)) as envs:
        envs.reset(seed=1)
        actions = {agent: np.ones(2, np.int64) for agent in AGENTS}
        other = {"reset_mask": np.array([False, True])}
        for _ in range(2):
            envs.step(actions)
        envs.reset(options=other)
        assert not all(masks[0].all() for masks in envs.action_masks().values())
        assert envs.step(actions)[4]["episode_over"].tolist() == [True, False]
        for _ in range(2):
            masks = envs.action_masks()
            assert all(of_agent[0].all() for of_agent in masks.values())
            assert not all(of_agent[1].all() for of_agent in masks.values())
            envs.reset(options=other)
            if mode == "frozen":
                assert not envs.step(actions)[4]["acted"]["a_0"][0]
        envs.reset(options={"reset_mask": ~other["reset_mask"]})
        assert not all(masks[0].all() for masks in envs.action_masks().values())


class Formed(Masked):
    """Masks in infos are lists, or tuples of the masks of two actions."""

    def __init__(self, form, length=4):
        super().__init__(shows=False)
        self.form, self.length = form, length

    def action_space(self, agent):
        return Discrete(4) if self.form is list else MultiDiscrete([2, 2])

    def shown(self):
        observations, infos = super().shown()
        for info in infos.values():
            mask = info[self.key][: self.length]
            info[self.key] = mask.tolist() if self.form is list else tuple(np.split(mask, 2))
        return observations, infos


@pytest.mark.parametrize("form", [list, tuple])
def test_masks_in_infos_may_be_lists_and_tuples_of_parts(form):
    makes = [partial(Formed, form)] * 2, [partial(Masked, False)] * 2
    with (
        closing(cartwheel.ParallelVectorEnv(makes[0], executor="inline")) as envs,
        closing(cartwheel.ParallelVectorEnv(makes[1], executor="inline")) as others,
    ):
        for one in (envs, others):
            one.reset(seed=1)
        for _ in range(12):
            np.testing.assert_equal(envs.action_masks(), others.action_masks())
            envs.step({name: space.sample() for name, space in envs.action_space.items()})
            others.step({agent: np.ones(2, np.int64) for agent in AGENTS})
    envs = cartwheel.ParallelVectorEnv([partial(Formed, form, 2)], executor="inline")
    text = r"of 'a_0' must have 4 numbers, one for each action, got int\d+ of the shape \(2,\)"
    with closing(envs), pytest.raises(ValueError, match=text):
        envs.reset(seed=1)


class Reserved(Masked):
    """Shows no mask in a reset."""

    def reset(self, seed=None, options=None):
        return super().reset(seed, options)[0], {}


@pytest.mark.parametrize("way", ["mask", "numbers", "state"])
def test_rows_that_begin_anew_without_a_mask_allow_every_action(way):
    make = [partial(Reserved, shows=False)] * 2
    with closing(cartwheel.ParallelVectorEnv(make, executor="inline", states="pickle")) as envs:
        envs.reset(seed=1)
        envs.step({agent: np.ones(2, np.int64) for agent in AGENTS})
        before = envs.action_masks()
        if way == "state":
            envs.set_state([1], envs.get_state([0]))
        else:
            some = {"mask": np.array([False, True]), "numbers": [1]}[way]
            envs.reset(options={"reset_mask" if way == "mask" else "env_index": some})
        masks = envs.action_masks([0, 1])
        for agent in AGENTS:
            assert not before[agent].all()
            np.testing.assert_array_equal(masks[agent], [before[agent][0], np.ones(4, np.bool_)])


class Raising(Masked):
    def step(self, actions):
        if max(actions.values()) == 3:
            raise OSError("tripped")
        return super().step(actions)


@pytest.mark.parametrize("shows", [True, False], ids=["observations", "infos"])
def test_a_row_whose_step_was_lost_with_the_error_of_another_allows_every_action(shows):
    make = [partial(Raising, shows)] * 2
    with closing(cartwheel.ParallelVectorEnv(make, executor="inline")) as envs:
        envs.reset(seed=1)
        with pytest.raises(OSError, match="tripped"):
            envs.step({agent: np.array([0, 3]) for agent in AGENTS})
        for agent, masks in envs.action_masks().items():
            assert masks[0].all(), agent
        observations, _ = envs.reset(options={"reset_mask": np.array([False, True])})
        for agent, masks in envs.action_masks().items():
            if shows:
                masks_of_both = expected(observations[agent]["count"])
                np.testing.assert_array_equal(masks, masks_of_both)
            else:
                assert masks[0].all(), agent


class Gated(Masked):
    """A step with the action 3 waits at a gate."""

    def __init__(self, gates, shows):
        super().__init__(shows)
        self.gates = gates

    def step(self, actions):
        self.gates.stand_at(int(max(actions.values()) == 3))
        return super().step(actions)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shows", [True, False], ids=["observations", "infos"])
def test_masks_of_a_step_that_timed_out_are_those_shown_or_allow_every_action(
    mode, shows, tmp_path
):
    gates = Gates(tmp_path)
    keywords = {"autoreset_mode": mode, "executor": "thread", "num_workers": 2}
    make = [partial(Gated, gates, shows)] * 2
    with closing(cartwheel.ParallelVectorEnv(make, **keywords)) as envs:
        envs.reset(seed=1)
        before = envs.action_masks()
        envs.step_async({agent: np.full(2, 3) for agent in AGENTS})
        with pytest.raises(cartwheel.WorkerTimeoutError):
            envs.step_wait(timeout=0.1)
        gates.open(1)
        observations, _ = envs.reset(options={"reset_mask": np.array([False, True])})
        masks = envs.action_masks()
        for agent in AGENTS:
            shown = observations[agent]["count"] if shows else observations[agent]
            wanted = expected(shown)
            if not shows:
                wanted[0] = True
            np.testing.assert_array_equal(masks[agent], wanted)
            assert (masks[agent][0] != before[agent][0]).any()


def test_groups_and_rows_have_the_masks_of_their_agents():
    with closing(cartwheel.ParallelVectorEnv([Masked] * 2, executor="inline")) as envs:
        groups = envs.by_group({"a": ["a_1", "a_0"], "b": ["b_0"]})
        groups.reset(seed=1)
        masks, by_group = envs.action_masks(), groups.action_masks()
        np.testing.assert_array_equal(by_group["a"][:, 0], masks["a_1"])
        np.testing.assert_array_equal(by_group["b"][:, 0], masks["b_0"])
        rows = envs.as_rows()
        rows.reset(seed=1)
        by_row = rows.action_masks()
        assert by_row.shape == (6, 4)
        np.testing.assert_array_equal(by_row[1::3], masks["a_1"])
        np.testing.assert_array_equal(rows.action_masks([4, 0]), by_row[[4, 0]])
        envs.step({agent: np.ones(1, np.int64) for agent in AGENTS}, [1])
        after = rows.action_masks()
        np.testing.assert_array_equal(after[:3], by_row[:3])
        assert after.shape == (6, 4)


def test_agents_without_masks_say_so():
    make = [rock_paper_scissors] * 2
    with closing(cartwheel.ParallelVectorEnv(make, executor="inline")) as envs:
        envs.reset()
        assert not envs.has_action_masks
        with pytest.raises(ValueError, match="neither observations nor infos of an agent"):
            envs.action_masks()


class ManyActions(Masked):
    def action_space(self, agent):
        return Discrete(2**62)


def test_agents_without_masks_may_have_any_number_of_actions():
    make = partial(ManyActions, shows=False, key="other")
    with closing(cartwheel.ParallelVectorEnv([make] * 2, executor="inline")) as envs:
        envs.reset(seed=1)
        envs.step({agent: np.zeros(2, np.int64) for agent in AGENTS})
        assert not envs.has_action_masks


@pytest.mark.parametrize("shows", [True, False], ids=["observations", "infos"])
def test_masks_have_the_key_that_the_caller_names(shows):
    makes = [[partial(Masked, shows, key)] * 2 for key in ("action_mask", "legal")]
    with (
        closing(cartwheel.ParallelVectorEnv(makes[0], executor="inline")) as usual,
        closing(
            cartwheel.ParallelVectorEnv(makes[1], executor="inline", action_mask="legal")
        ) as envs,
        closing(cartwheel.ParallelVectorEnv(makes[0], executor="inline", action_mask=None)) as none,
    ):
        for one in (usual, envs, none):
            one.reset(seed=4)
        np.testing.assert_equal(envs.action_masks(), usual.action_masks())
        assert not all(masks.all() for masks in envs.action_masks().values())
        assert not none.has_action_masks
        with pytest.raises(ValueError, match="action_mask=None"):
            none.action_masks()


def test_keys_that_name_no_mask_are_refused():
    for keyword, message in (
        ("count", r"names Box\(0, 1000, \(1,\), int64\) in the observations of 'a_0'"),
        (3, "must be the key of masks"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            cartwheel.ParallelVectorEnv([Masked] * 2, executor="inline", action_mask=keyword)


def test_a_loaded_state_has_the_masks_of_infos():
    make = [partial(Masked, False)] * 3
    keywords = {"executor": "inline", "states": "pickle"}
    with (
        closing(cartwheel.ParallelVectorEnv(make, **keywords)) as envs,
        closing(cartwheel.ParallelVectorEnv(make, **keywords)) as others,
    ):
        envs.reset(seed=2)
        envs.step({agent: np.zeros(3, np.int64) for agent in AGENTS})
        state = envs.state_dict()
        others.load_state_dict(state)
        np.testing.assert_equal(others.action_masks(), envs.action_masks())
        assert not all(masks.all() for masks in envs.action_masks().values())
        with pytest.raises(ValueError, match="bytes of the lengths"):
            others.load_state_dict(state | {"agent_masks": [b""]})


class Touchy(Masked):
    """Refuses a state if it was told to."""

    touchy = False

    def get_state(self):
        return self.counts, self.t, self.limit, self.agents

    def set_state(self, state):
        if self.touchy:
            self.touchy = False
            raise ValueError("this state is refused")
        self.counts, self.t, self.limit, self.agents = state


def test_a_state_that_a_row_refuses_leaves_the_masks_of_infos():
    make = [partial(Touchy, False)] * 3
    with closing(cartwheel.ParallelVectorEnv(make, executor="inline")) as envs:
        envs.reset(seed=2)
        rows, state = envs.get_state(), envs.state_dict()
        envs.step({agent: np.zeros(3, np.int64) for agent in AGENTS})
        before = envs.action_masks()
        for load in (lambda: envs.load_state_dict(state), lambda: envs.set_state(None, rows)):
            envs.set_attr("touchy", [False, True, False])
            with pytest.raises(ValueError, match="this state is refused"):
                load()
            np.testing.assert_equal(envs.action_masks(), before)


@pytest.mark.parametrize("replaces", [True, False])
@pytest.mark.parametrize("has_rows", [True, False])
def test_kept_masks_are_those_of_a_loop(has_rows, replaces):
    rng = np.random.default_rng(has_rows)
    for _ in range(20):
        known = rng.random((9, 4)) < 0.5
        rows = rng.permutation(9)[:5] if has_rows else None
        numbers = range(9) if rows is None else rows.tolist()
        masks = rng.random((len(numbers), 3, 4)) < 0.3
        shown, ignored = (rng.random((2, len(numbers))) < 0.5).copy()
        wanted = known.copy()
        for at, row in enumerate(numbers):
            if ignored[at] or (shown[at] and not masks[at, 1].any()):
                wanted[row] = True
            elif shown[at]:
                wanted[row] = masks[at, 1]
            elif replaces:
                wanted[row] = True
        keep_masks(known, rows, (masks, 1, shown), ignored, replaces=replaces)
        np.testing.assert_array_equal(known, wanted)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"rows": np.array([0, 2])}, IndexError, "2"),
        ({"ignored": np.zeros(3, np.bool_)}, ValueError, "`ignored` must have 2 elements"),
        ({"masks": np.zeros((2, 1, 5), np.bool_)}, ValueError, "`masks` must have the shape"),
        ({"masks": np.zeros((2, 1, 4), np.int64)}, TypeError, "`masks`"),
        ({"place": 1}, ValueError, "more than 1"),
        ({"shown": np.zeros(1, np.bool_)}, ValueError, "`is_shown` must have 2 elements"),
        ({"known": np.zeros((2, 8), np.bool_)[:, ::2]}, ValueError, "C-contiguous"),
    ],
)
def test_masks_of_other_shapes_change_nothing(changed, error, message):
    of_rows = np.ones(2, np.bool_)
    found = {
        "known": np.zeros((2, 4), np.bool_),
        "rows": None,
        "masks": np.ones((2, 1, 4), np.bool_),
        "place": 0,
        "shown": of_rows,
        "ignored": ~of_rows,
    } | changed
    shown = (found["masks"], found["place"], found["shown"])
    with pytest.raises(error, match=message):
        keep_masks(found["known"], found["rows"], shown, found["ignored"], replaces=True)
    assert not found["known"].any()


@pytest.mark.parametrize("mode", MODES)
def test_evaluate_hands_masks_to_the_policy(mode):
    def policy(observations, action_masks):
        for agent, masks in action_masks.items():
            shown = observations[agent]["count"]
            is_free = masks.all(axis=1)
            np.testing.assert_array_equal(masks[~is_free], expected(shown)[~is_free])
            seen.append(np.count_nonzero(~is_free))
        return {agent: masks.argmax(axis=1) for agent, masks in action_masks.items()}

    seen = []
    with closing(
        cartwheel.ParallelVectorEnv([Masked] * 2, executor="inline", autoreset_mode=mode)
    ) as envs:
        evaluation = cartwheel.evaluate(envs, policy, episodes_per_env=2, seed=1, progress=False)
    assert evaluation.total.returns.shape == (2, 2)
    assert sum(seen) > 10


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shows", [True, False])
def test_rows_have_all_masks_after_a_batch_of_some_environments(mode, shows):
    make = partial(Masked, shows=shows)
    envs = cartwheel.ParallelVectorEnv([make] * 3, executor="inline", autoreset_mode=mode)

    def zeros(_observations, env_index, _first):
        return dict.fromkeys(AGENTS, np.zeros(len(env_index), np.int64))

    with closing(envs):
        rows = envs.as_rows()
        cartwheel.evaluate(envs, zeros, recurrent=True, seed=1, progress=False)
        assert rows.action_masks().shape == (9, 4)
        rows.reset(seed=1)
        infos = envs.step({agent: np.zeros(2, np.int64) for agent in AGENTS}, [2, 0])[4]
        of_batch = envs.action_masks()
        infos["env_index"].sort()
        np.testing.assert_equal(envs.action_masks(), of_batch)
        masks = rows.action_masks()
        for place, mask in enumerate(envs.action_masks([0, 1, 2]).values()):
            np.testing.assert_array_equal(masks[place::3], mask)
        assert not masks.all()
