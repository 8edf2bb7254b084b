"""``make parity`` counts every value that differs, and prints the total at the end."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from tests.support.cases import Case, twins
from tests.support.comparison import count_differing, count_values
from tools import parity

NAN = float("nan")
A = np.array


@pytest.mark.parametrize(
    ("actual", "expected", "differing", "values"),
    [
        (A([1.0, 2.0]), A([1.0, 2.0]), 0, 2),
        (A([1.0, np.nextafter(2.0, 3.0)]), A([1.0, 2.0]), 1, 2),
        (A([0.0, NAN]), A([-0.0, -NAN]), 1, 2),
        (A([1, 2, 3]), A([1.0, 2.0, 3.0]), 3, 3),
        (A([[1, 2]]), A([1, 2]), 2, 2),
        (A([A([1, 2]), None], object), A([A([1, 3]), 0], object), 2, 3),
        ({"a": A([1, 2]), "b": 1}, {"b": 1, "a": A([1, 2])}, 0, 3),
        ({"a": A([1, 2])}, {}, 1, 0),
        ({}, {"a": A([1, 2]), "b": {"c": 1}}, 3, 3),
        ({}, {"a": {}}, 1, 0),
        ((1, 2.5), (1, 2.0), 1, 2),
        ((1, 2), (1, 2, 3), 3, 3),
        ([1], (1,), 1, 1),
        (True, 1, 1, 1),
        (-0.0, 0.0, 1, 1),
    ],
)
def test_values_that_differ_in_any_bit_are_counted(actual, expected, differing, values):
    assert count_differing(actual, expected) == differing
    assert count_differing(expected, expected) == 0
    assert count_values(expected) == values


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_a_run_compares_every_part_of_the_results(mode, monkeypatch):
    """Compared with an environment of other rules, each part has values that differ."""
    case = Case("Taxi-v4", {"is_rainy": True, "max_episode_steps": 20})
    same = parity.play(case, mode, episodes=9, rows=4, seed=1)
    assert not any(same.differing.values())
    assert same.episodes >= 9
    assert same.steps % 4 == 0
    other = Case("Taxi-v4", {**case.keywords, "rainy_probability": 0.5})
    monkeypatch.setattr(parity, "twins", lambda _, *args: twins(other, *args))
    differing = parity.play(case, mode, episodes=30, rows=4, seed=1).differing
    seen = {part for part, number in differing.items() if number}
    final = {"final"} if mode is AutoresetMode.SAME_STEP else set()
    assert seen >= {"observations", "rewards", "infos", *final}


@pytest.mark.slow
def test_the_command_prints_a_table_and_fails_when_something_differs(monkeypatch, capsys):
    words = ["Blackjack-v1", "--episodes", "10", "--rows", "2"]
    assert parity.main(words) == 0
    text = capsys.readouterr().out
    assert text.count("Blackjack-v1") == 4
    assert text.count(" SameStep ") == 4
    assert "glibc" in text
    assert "\n0 of " in text
    case = Case("Blackjack-v1", {"natural": True, "sab": False})
    monkeypatch.setattr(parity, "CASES", [(case, 1)])
    monkeypatch.setattr(parity, "twins", lambda _, *args: twins(Case("Blackjack-v1"), *args))
    assert parity.main([*words, "--episodes", "200"]) == 1
    assert "\n0 of " not in capsys.readouterr().out


def test_an_unknown_id_is_refused(capsys):
    with pytest.raises(SystemExit):
        parity.main(["CartPole-v7"])
    assert "no such environments: CartPole-v7" in capsys.readouterr().err
