"""``python -m cartwheel envs``: every environment and everything about it, as wide as asked."""

import math
import sys

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel._cartwheel import native_envs
from cartwheel._cli import envs as command
from cartwheel._cli.envs import overview, page, unknown
from cartwheel.native.keywords import Described, describe_keywords, describe_reset_options

BUILT_IN = native_envs()
IDS = [env_id for env_id, *_ in BUILT_IN]


def sections(env_id):
    """The lines of a page, by the first word of the title of their section."""
    found = {}
    for part in page(env_id, None).split("\n\n"):
        title, *lines = part.splitlines()
        if title.startswith("  "):
            title, lines = "facts", [title, *lines]
        found[title.split()[0]] = dict(line.strip().partition("  ")[::2] for line in lines)
    return found


def test_the_list_has_a_line_for_each_environment_without_a_terminal():
    lines = overview(None).splitlines()
    assert [line.split()[0] for line in lines[1 : len(IDS) + 1]] == [f"cartwheel/{i}" for i in IDS]
    by_id = {line.split()[0]: line.split(maxsplit=4)[1:] for line in lines[1 : len(IDS) + 1]}
    assert by_id["cartwheel/CartPole-v1"] == ["500", "475", "Discrete(2)", "Box(4)"]
    blackjack = "Tuple(Discrete(32), Discrete(11), Discrete(2))"
    assert by_id["cartwheel/Blackjack-v1"] == ["–", "–", "Discrete(2)", blackjack]


def test_the_list_says_once_for_each_environment_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    (line,) = (line for line in overview(None).splitlines() if "Ant-v5" in line)
    assert line.split(maxsplit=4)[4].startswith("needs mujoco: pip install 'cartwheel[mujoco]'")


@pytest.mark.parametrize("width", [80, pytest.param(100, marks=pytest.mark.slow)])
def test_lines_are_not_wider_than_the_terminal(monkeypatch, width):
    # Plugins of other tests may have longer ids and spaces than 80 columns have room for.
    monkeypatch.setattr(command, "native_envs", lambda: BUILT_IN)
    listed = overview(width)
    for text in (listed, *(page(env_id, width) for env_id in IDS)):
        assert max(map(len, text.splitlines())) <= width
    assert "".join(listed.split()).count("Tuple(Discrete(32),") == 1


@pytest.mark.parametrize("env_id", IDS)
def test_a_page_has_the_limits_spaces_and_render_modes_of_the_environment(env_id):
    facts = sections(env_id)["facts"]
    spec = gym.spec(f"cartwheel/{env_id}")
    envs = cartwheel.NativeVectorEnv(env_id, 1)
    shown = {name: value.strip() for name, value in facts.items()}
    assert shown["max_episode_steps"] == str(spec.max_episode_steps or "–")
    assert shown["reward_threshold"] == (
        "–" if spec.reward_threshold is None else f"{spec.reward_threshold:g}"
    )
    assert shown["action"].split() == str(envs.single_action_space).split()
    assert shown["observation"].split() == str(envs.single_observation_space).split()
    for mode in envs.metadata["render_modes"]:
        assert repr(mode) in shown["render_mode"]
    envs.close()


@pytest.mark.parametrize("env_id", IDS)
def test_a_page_has_every_keyword_parameter_and_option(env_id):
    found = sections(env_id)
    envs = cartwheel.NativeVectorEnv(env_id, 1)
    none = {"none"}
    assert set(found["keywords:"]) == ({each.name for each in describe_keywords(env_id)} or none)
    assert set(found["reset"]) == ({each.name for each in describe_reset_options(env_id)} or none)
    assert set(found["parameters:"]) == (set(envs.parameters) or none)
    envs.reset(seed=0)
    for name in envs.parameters:
        shown = eval(found["parameters:"][name], {"inf": math.inf})
        value = envs.get_attr(name)[0]
        if isinstance(value, float | np.ndarray):
            np.testing.assert_allclose(shown, value, rtol=1e-5)
        else:
            assert shown == value
    envs.close()


@pytest.mark.parametrize(
    ("env_id", "hint"),
    [
        ("cartpole", "did you mean cartwheel/CartPole-v1 or cartwheel/CartPole-v0?"),
        ("Taxi-v3", "did you mean cartwheel/Taxi-v4?"),
        ("LunarLander-v3", "cartwheel.make_vec('LunarLander-v3', num_envs) steps it in Python"),
        ("my_game/Maze-v0", "`python -m cartwheel envs my_game:my_game/Maze-v0`"),
        ("Nothing", "`python -m cartwheel envs` lists them"),
    ],
)
def test_an_unknown_id_gets_a_hint(env_id, hint):
    text = unknown(env_id)
    assert text.startswith(f"there is no native environment {env_id!r}; ")
    assert text.endswith(hint)


def test_a_page_of_an_environment_that_needs_keywords_says_so(monkeypatch):
    def needs(*_):
        raise ValueError("pass `map`")

    monkeypatch.setattr(command, "NativeVectorEnv", needs)
    found = sections("CartPole-v1")
    assert found["facts"]["spaces"].strip() == "cannot be made without keywords: pass `map`"
    assert found["facts"]["max_episode_steps"].strip() == "500"
    assert "parameters:" not in found
    assert found["keywords:"]


def test_a_default_that_is_a_dictionary_is_cut_short(monkeypatch):
    described = [Described("map", {"a": 1}, ""), Described("more", {}, "")]
    monkeypatch.setattr(command, "describe_keywords", lambda _: described)
    assert sections("CartPole-v1")["keywords:"] == {"map": " {…}", "more": "{}"}
