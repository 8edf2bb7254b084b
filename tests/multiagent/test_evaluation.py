"""``evaluate`` of environments of several agents: each agent, teams, and all agents together."""

import itertools

import numpy as np
import pytest

import cartwheel
from tests.multiagent.environments import Guests, Talkers, Walkers
from tests.multiagent.oracle import MODES, Alone

EVERY_MODE = pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)


def push(observations):
    """Actions that depend on what each agent sees."""
    return {name: observation[:, :1] / 10 for name, observation in observations.items()}


@EVERY_MODE
@pytest.mark.parametrize("executor", ["inline", "process"])
def test_episodes_are_those_of_each_environment_alone(mode, executor):
    with cartwheel.ParallelVectorEnv(
        [Walkers] * 3, autoreset_mode=mode, executor=executor, num_workers=2
    ) as envs:
        found = cartwheel.evaluate(
            envs, push, episodes_per_env=2, seed=4, teams={"ends": ["walker_2", "walker_0"]}
        )
    for row in range(3):
        alone = Alone(Walkers(), mode)
        for episode in range(2):
            shown = alone.reset(4 + row if episode == 0 else None)
            sums, steps = dict.fromkeys(shown, 0.0), dict.fromkeys(shown, 0)
            length, live = 0, True
            observations = {name: of["observation"] for name, of in shown.items()}
            while live:
                actions = {
                    name: one[:1] / 10 for name, one in observations.items() if one is not None
                }
                observed, rewards, over, _, _ = alone.env.step(
                    {name: actions[name] for name in alone.env.agents}
                )
                observations.update(observed)
                for name, reward in rewards.items():
                    sums[name] += reward
                    steps[name] += 1
                length += 1
                live = bool(alone.env.agents)
            for name, agent in found.agents.items():
                assert agent.returns[row, episode] == sums[name]
                assert agent.lengths[row, episode] == steps[name]
                assert agent.terminated[row, episode]
            assert found.total.lengths[row, episode] == length == max(steps.values())
            assert found.total.returns[row, episode] == sum(sums.values())
            team = found.teams["ends"]
            assert team.returns[row, episode] == sums["walker_0"] + sums["walker_2"]
            assert over["walker_2"]
    each = [found.total, *found.teams.values(), *found.agents.values()]
    for one, other in itertools.combinations(each, 2):
        assert not np.shares_memory(one.lengths, other.lengths)
        assert not np.shares_memory(one.failures, other.failures)
    assert "ends: return" in found.summary()
    assert "agents=['walker_0', 'walker_1', 'walker_2'], teams=['ends']" in repr(found)


def test_results_do_not_depend_on_the_mode():
    def answer(observations):
        host = observations["host"]["n"]
        return {
            "host": (host % 4, np.zeros((len(host), 2))),
            "guest_10": np.ones((len(host), 2), int),
            "guest_2": np.zeros((len(host), 2), int),
            7: host % 5,
        }

    found = []
    for mode in MODES:
        with cartwheel.ParallelVectorEnv(
            [Guests] * 4, autoreset_mode=mode, executor="inline"
        ) as envs:
            found.append(cartwheel.evaluate(envs, answer, episodes_per_env=5, seed=0))
    for other in found[1:]:
        for name, agent in other.agents.items():
            assert agent.returns.tolist() == found[0].agents[name].returns.tolist()
            assert agent.lengths.tolist() == found[0].agents[name].lengths.tolist()
    assert len({*found[0].total.lengths.ravel().tolist()}) > 2


def test_policies_get_rows_and_beginnings_if_they_ask_and_text_is_text():
    calls = []

    def policy(_, env_index, first):
        calls.append((env_index.tolist(), first.tolist()))
        return {"a": tuple("x" * (row + 1) for row in env_index), "b": ("",) * len(env_index)}

    with cartwheel.ParallelVectorEnv([Talkers] * 2, executor="inline") as envs:
        found = cartwheel.evaluate(envs, policy, episodes_per_env=2, recurrent=True)
    assert found.agents["a"].returns.tolist() == [[4, 4], [8, 8]]
    assert calls[0] == ([0, 1], [True, True])
    assert calls[4] == ([0, 1], [True, True])
    assert len(calls) == 8


def test_episodes_that_a_failure_cut_short_are_played_again():
    keywords = {"executor": "inline", "on_error": "restart"}
    failing = [Walkers, lambda: Walkers(fails_at=2)]
    with (
        cartwheel.ParallelVectorEnv(failing, max_restarts=2, **keywords) as envs,
        pytest.raises(OSError, match="tripped"),
    ):
        cartwheel.evaluate(envs, push, seed=0)
    made = []

    def second():
        made.append(Walkers(fails_at=2 if len(made) < 2 else None))
        return made[-1]

    with cartwheel.ParallelVectorEnv([Walkers, second], **keywords) as envs:
        found = cartwheel.evaluate(envs, push, seed=[0, 0])
    assert found.total.failures.tolist() == [0, 2]
    lengths = found.total.lengths
    assert lengths[0, 0] == 4
    assert lengths[1, 0] in (4, 5, 6)  # the seed of the replacement decides
    assert found.agents["walker_2"].lengths.tolist() == lengths.tolist()
    assert (found.agents["walker_0"].returns < 1).all()


@EVERY_MODE
def test_an_environment_that_always_fails_raises_the_last_error(mode):
    keywords = {"executor": "inline", "on_error": "restart", "max_restarts": None}
    text = "row 1 failed in 100 episodes in a row, the last time by OSError: tripped"
    made = []

    def failing():
        made.append(None)
        return Walkers(fails_at=2)

    with (
        cartwheel.ParallelVectorEnv([Walkers, failing], autoreset_mode=mode, **keywords) as envs,
        pytest.raises(RuntimeError, match=text),
    ):
        cartwheel.evaluate(envs, push, seed=0)
    assert len(made) == 101


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"order": "free"}, ValueError, "`order` must be 'lockstep' for several agents"),
        ({"teams": ["walker_0"]}, TypeError, "must be a dictionary of lists of the agents"),
        (
            {"teams": {"a": ["walker_0"], "b": "walker_1"}},
            TypeError,
            "must be a dictionary of lists",
        ),
        ({"teams": {"a": ["x"]}}, ValueError, "'a' has \\['x'\\]"),
        ({"teams": {"a": []}}, ValueError, "'a' has \\[\\]"),
        ({"teams": {"a": ["walker_0"] * 2}}, ValueError, "each once: 'a' has"),
        ({"options": {"reset_mask": [True]}}, ValueError, "must not choose rows"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(keywords, error, text):
    with cartwheel.ParallelVectorEnv([Walkers], executor="inline") as envs:
        with pytest.raises(error, match=text):
            cartwheel.evaluate(envs, push, **keywords)
        with pytest.raises(ValueError, match="are missing"):
            cartwheel.evaluate(envs, lambda observations: {"x": observations["walker_0"]})
    with (
        cartwheel.NativeVectorEnv("CartPole-v1", 1) as envs,
        pytest.raises(ValueError, match=r"agents of a ParallelVectorEnv, got \{\} for NativeVect"),
    ):
        cartwheel.evaluate(envs, push, teams={})
    with (
        cartwheel.ParallelVectorEnv([Walkers] * 2, batch_size=1, executor="inline") as envs,
        pytest.raises(ValueError, match="batch_size=1 below num_envs=2: evaluate environments"),
    ):
        cartwheel.evaluate(envs, push)


def test_progress_is_reported_to_a_function():
    reports = []
    with cartwheel.ParallelVectorEnv([Walkers] * 2, executor="inline") as envs:
        cartwheel.evaluate(
            envs, push, episodes_per_env=2, seed=0, progress=lambda *report: reports.append(report)
        )
    assert reports == [(1, 4), (2, 4), (3, 4), (4, 4)]


@EVERY_MODE
def test_a_policy_that_uses_the_environments_is_refused(mode):
    with cartwheel.ParallelVectorEnv([Walkers] * 2, autoreset_mode=mode, executor="inline") as envs:
        for use in (envs.reset, envs.as_rows().reset):

            def disturb(observations, use=use):
                use()
                return push(observations)

            with pytest.raises(RuntimeError, match="by another caller during `evaluate`"):
                cartwheel.evaluate(envs, disturb, progress=False)
        found = cartwheel.evaluate(envs, push, seed=0)
        assert found.total.lengths.tolist() == [[4], [5]]
