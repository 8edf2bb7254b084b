"""Each check fails on an environment that is wrong in one way, and says what and where."""

import os
from copy import deepcopy
from functools import partial
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel.testing import CHECKS
from tests.support.objectives import TreasureEnv
from tests.testing.walk import Walk, assert_fails, assert_passes, failure, walks

# Seeds


class Unseeded(Walk):
    def reset(self, *, seed=None, options=None):  # noqa: ARG002 - the mistake
        return super().reset(options=options)


class Remembering(Walk):
    """One variable of the episode survives the reset."""

    heat = 0.0

    def info(self, change):
        self.heat += abs(change)
        return super().info(change) | {"heat": self.heat}


class SeededForGood(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None if seed is None else 42, options=options)


def test_a_seed_that_does_not_decide_everything_is_found():
    text = r"(observation|reward).* of row 0 .* in the second run .* and .* in the first \(seed 0\)"
    assert_fails(walks(Unseeded), "same_seed", text, "super().reset(seed=seed)")
    text = r"info\['heat'\] of row 0 in step 1 is"
    assert_fails(walks(Remembering), "same_seed", text, "ignore_infos=['heat']")
    assert_passes(walks(Remembering), "same_seed", ignore_infos=["heat"])


class Unlucky(TreasureEnv):
    """One of the objectives is not seeded."""

    def step(self, action):
        observation, (found, _), *rest = super().step(action)
        return observation, [found, float.fromhex(os.urandom(8).hex())], *rest


def test_an_objective_that_the_seed_does_not_decide_is_named():
    envs = cartwheel.VectorEnv([Unlucky] * 3, executor="inline")
    assert_fails(
        envs, "same_seed", r"reward\[1\] of row 0 in step 1 is", "super().reset(seed=seed)"
    )


class ShortOfAnObjective(Walk):
    reward_space = gym.spaces.Box(-1, 1, (2,))


def test_rewards_of_another_shape_than_their_space_are_found():
    text = r"must have the shape \(2,\) of `reward_space`.*`reward_space = None`"
    assert_fails(walks(ShortOfAnObjective), "spaces", text, "must be accepted")


def test_a_difference_in_a_new_object_is_found():
    class Numbered(Walk):
        made = 0

        def __init__(self):
            super().__init__()
            Numbered.made += 1
            self.number = Numbered.made

        def info(self, change):
            return super().info(change) | {"number": self.number}

    text = r"info\['number'\] of row 0 in step 1 is .* in a new vector environment and"
    assert_fails(walks(Numbered), "same_seed", text, "same bits")


def test_a_seed_that_decides_nothing_is_found():
    text = "16 seeds from 0 to 15000 give row 0 the same 16 steps"
    assert_fails(walks(SeededForGood), "other_seeds", text, "no generator of a fixed seed")


# Infos


class FickleInfo(Walk):
    def info(self, _change):
        return {"deep": {"part": 1 if self.t < 5 else 0.5}}


class ResizedInfo(Walk):
    def info(self, _change):
        return {"path": np.zeros(min(self.t, 3))}


def test_infos_that_change_their_type_are_named():
    text = r"info\['deep'\]\['part'\] is float64 in step \d of row 0 and int64 in step 1 of row 0"
    assert_fails(walks(FickleInfo), "infos", text, "same type")
    text = r"info\['path'\] is float64 of shape \(2,\) in step \d of row 0 and float64 of shape \(1"
    assert_fails(walks(ResizedInfo), "infos", text, "same type")


# Rows that share something


def sharing():
    """A class whose environments share their position."""

    class Sharing(Walk):
        where = np.zeros(2, np.float32)

        def observe(self):
            Sharing.where[:] = Sharing.where * np.float32(0.5) + self.pos
            return super().observe() | {"pos": np.clip(Sharing.where, -40, 40)}

        def reset(self, *, seed=None, options=None):
            if seed is not None:
                Sharing.where[:] = 0
            return super().reset(seed=seed, options=options)

    return Sharing


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (
            "rows",
            r"observation\['pos'\]\[0\] of row 0 .* among 3 rows and .* in a single",
        ),
        ("num_envs", r"observation\['pos'\]\[0\] of row 0 .* among 3 rows"),
        ("executors", r"observation\['pos'\]\[0\] of row 0 .* with executor='inline'"),
        ("modes", r"observation\['pos'\]\[0\] of row 0 .* in the mode NEXT_STEP"),
        ("masked_reset", r"observation\['pos'\]\[0\] of row 1 .* after a reset of other rows"),
        ("send_recv", r"observation\['pos'\]\[0\] of row 0 .* after `send` and `recv`"),
    ],
)
def test_environments_that_share_state_are_found(check, text):
    remedy = "reset of some rows must leave" if check == "masked_reset" else "no class attributes"
    assert_fails(walks(sharing()), check, text, remedy)


def test_an_environment_that_knows_its_process_is_found():
    class Placed(Walk):
        made_in = os.getpid()

        def info(self, change):
            return super().info(change) | {"far": os.getpid() != self.made_in}

    text = r"info\['far'\] of row 0 in step 1 is True with executor='process', num_workers=2"
    assert_fails(walks(Placed), "executors", text, "A row must depend on its own seed")


class Stubborn(Walk):
    """Goes on from its last episode, if a step came between its end and the reset."""

    def reset(self, *, seed=None, options=None):
        t, result = self.t, super().reset(seed=seed, options=options)
        if seed is None and options is None and t:
            result[0]["pos"][:] = 7
        return result


def test_modes_that_reset_in_another_way_are_found():
    text = r"observation\['pos'\]\[0\] of row \d at the reset after step \d+ is .*DISABLED and 7.0"
    assert_fails(walks(Stubborn), "modes", text, "own seed")


# Vector environments that are wrong themselves


class Forgetful(cartwheel.VectorEnv):
    """Shows zeros for rows that a reset leaves alone."""

    def reset(self, *, seed=None, options=None):
        mask = (options or {}).get("reset_mask")
        observations, infos = super().reset(seed=seed, options=options)
        if mask is not None:
            observations["pos"][~mask] = 0
        return observations, infos


class Thawing(cartwheel.VectorEnv):
    """Frozen rows go on to get rewards."""

    def step(self, actions, env_index=None):
        result = super().step(actions, env_index)
        result[1][result[2]] += 1
        return result


def test_rows_that_a_masked_reset_does_not_show_are_found():
    envs = Forgetful([Walk] * 3, executor="inline", autoreset_mode="disabled")
    text = r"observation\['pos'\]\[0\] of row 1 is 0.0 in the batch of a reset of other rows"
    assert_fails(envs, "masked_reset", text, "observations")


def test_frozen_rows_that_change_are_found():
    envs = Thawing([Walk] * 3, executor="inline", autoreset_mode="disabled", on_done="freeze")
    text = r"reward of row \d, which is over and frozen, is 1.0 in step \d+ and must be 0.0"
    assert_fails(envs, "frozen_rows", text, "reward 0")


class Endless(Walk):
    spec = gym.envs.registration.EnvSpec("Endless-v0", max_episode_steps=7)


def test_a_limit_that_is_only_declared_is_found():
    text = r"row \d continues after 7 steps of an episode, and `max_episode_steps` is 7"
    assert_fails(walks(Endless), "time_limit", text, "gymnasium.wrappers.TimeLimit")


# Parameters, states and frames


class Rounding(cartwheel.NativeVectorEnv):
    def get_attr(self, name):
        values = super().get_attr(name)
        return tuple(round(value, 1) for value in values) if name == "masspole" else values


class Stirring(cartwheel.NativeVectorEnv):
    def get_attr(self, name):
        if name == "gravity":
            self.set_attr("force_mag", 5.0)
        return super().get_attr(name)


def test_parameters_that_do_not_keep_their_values_are_named():
    envs = Rounding("CartPole-v1", 3)
    envs.set_attr("masspole", 0.13)
    text = r"observation\[\d\] of row 0 in step \d+ is .* after writing .* get_attr\('masspole'\) b"
    assert_fails(envs, "parameters", text, "`set_attr('masspole', value)` must store exactly")
    text = r"observation\[\d\] of row 0 in step \d+ is .* after get_attr\('gravity'\) in step 16 a"
    assert_fails(Stirring("CartPole-v1", 3), "parameters", text, "reading must change nothing")


class Saved(cartwheel.VectorEnv):
    """Saves and loads env_index by copying their environments."""

    def get_state(self, env_index):
        return [deepcopy(vars(self.envs[row])) for row in env_index]

    def set_state(self, env_index, states):
        for row, state in zip(env_index, states, strict=True):
            vars(self.envs[row]).update(deepcopy(state))


class WithoutRandomness(Saved):
    def get_state(self, env_index):
        states = super().get_state(env_index)
        return [{name: state[name] for name in ("pos", "t")} for state in states]


class Drawing(Saved):
    def get_state(self, env_index):
        for row in env_index:
            self.envs[row].np_random.random()
        return super().get_state(env_index)


def test_states_that_are_not_whole_are_found():
    assert_passes(Saved([Walk] * 3, executor="inline"), "states")
    text = r"(observation|reward|is_reset|terminated).* of row \d .* after `set_state` and .* after"
    envs = WithoutRandomness([Walk] * 3, executor="inline")
    assert_fails(envs, "states", text, "the random numbers")
    text = r" of row \d in step \d+ is .* after get_state in step 16 and .* without it"
    assert_fails(Drawing([Walk] * 3, executor="inline"), "states", text, "draw no random number")


class Flickering(Walk):
    def render(self):
        return np.zeros((4, 5, 3), np.float32)


class Growing(Walk):
    def render(self):
        return np.zeros((4, 5 + self.t, 3), np.uint8)


class Shaking(Walk):
    def render(self):
        self.np_random.random()
        return super().render()


class Silent(Walk):
    def render(self):
        return None


@pytest.mark.parametrize(
    ("kind", "mode", "text", "remedy"),
    [
        (Flickering, "rgb_array", r"frame of row 0 in step 0 .* float32 of shape \(4, 5", "uint8"),
        (
            Growing,
            "rgb_array",
            r"frame of row 0 in step 1 .* shape \(4, 6, 3\), and .*\(4, 5, 3",
            "",
        ),
        (Silent, "rgb_array", "frame of row 0 in step 0 .* is NoneType", "array"),
        (Silent, "ansi", "frame of row 0 in step 0 .* is NoneType", "str"),
        (Shaking, "rgb_array", "of row 0 in step 1 is .* drawn after every step", "change nothing"),
    ],
)
def test_frames_that_are_wrong_are_named(kind, mode, text, remedy):
    assert_fails(walks(lambda: kind(mode)), "rendering", text, remedy)


# What methods return


class Four(Walk):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, info


class Bare(Walk):
    def reset(self, **keywords):
        return super().reset(**keywords)[0]


@pytest.mark.parametrize(
    ("kind", "text", "remedy"),
    [
        (Four, "`step` returned 4 values in step 1", "has one flag, `done`, instead of two"),
        (Bare, "`reset` returned {'pos': .* in `reset`", "Return (observation, info)."),
    ],
)
def test_results_of_another_length_than_gymnasiums_are_named(kind, text, remedy):
    assert_fails(walks(kind), "spaces", text, remedy)


# Exceptions


class Raising(Walk):
    def step(self, action):
        if self.t == 6:
            raise KeyError("door")
        return super().step(action)


def test_an_exception_is_a_failure_with_its_cause_row_and_step():
    text = r"it raised KeyError: 'door'; raised by the environment of row \d; in step \d+, all rows"
    envs = walks(Raising)
    assert_fails(envs, "rows", text, "every state")
    assert isinstance(failure(walks(Raising), "rows").__cause__, KeyError)


class Undrawn(Shaking):
    def render(self):
        raise KeyError("window")


class Unclosed(Walk):
    def close(self):
        raise KeyError("server")


class Exiting(Walk):
    def step(self, action):
        raise SystemExit(int(action) + 3)


@pytest.mark.parametrize(
    ("make", "check", "text"),
    [
        (partial(Undrawn, "rgb_array"), "rendering", r"'window'.* row 0; .*in `render\(\)`"),
        (Unclosed, "spaces", "it raised KeyError: 'server'"),
        (Exiting, "rows", r"it raised SystemExit: \d; raised by the environment of row 0"),
    ],
    ids=["render", "close", "exit"],
)
def test_an_exception_of_any_method_is_a_failure(make, check, text):
    assert_fails(walks(make), check, text, "`render` and `close` must work at any time")


def test_an_environment_that_is_wrong_in_one_way_fails_with_all_checks():
    """No earlier check hides what is wrong."""
    wrong = {SeededForGood: "other_seeds", FickleInfo: "infos", Endless: "time_limit"}
    assert {kind: failure(walks(kind), steps=32).check for kind in wrong} == wrong
    assert failure(walks(sharing()), steps=32).check == "rows"


def test_every_check_has_an_environment_that_fails_it():
    natives = Path(__file__).parents[1] / "native/plugins/test_unwritten.py"
    files = [*Path(__file__).parent.glob("test_*.py"), natives]
    text = "".join(file.read_text(encoding="utf-8") for file in files if "healthy" not in file.name)
    assert [name for name in CHECKS if f'"{name}"' not in text] == []
