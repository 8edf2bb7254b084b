"""Wrong arguments of an evaluation are refused, and the environments stay usable."""
# ruff: noqa: ARG005 (signatures are Gymnasium's)

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import cartwheel
from cartwheel.wrappers import RecordMetrics
from tests.multiagent.environments import Walkers
from tests.support.executors import INLINE, PROCESS
from tests.support.lotteries import (
    NUM_ENVS,
    SEED,
    LotteryEnv,
    alone,
    follow_luck,
    lotteries,
    same,
)

WRONG_ANSWERS = [
    (lambda observations: np.zeros((1, 2)), ValueError, "1 actions for 5 observations"),
    (lambda observations: np.zeros((6, 2)), ValueError, "6 actions for 5 observations"),
    (lambda observations: (np.zeros((2, 2)), None), ValueError, "2 actions for 5"),
    (lambda observations: (), TypeError, r"a tuple \(\)"),
    (lambda observations: (np.zeros((5, 2)), "state"), TypeError, r"\(ndarray, str\)"),
    (lambda observations: 0.0, TypeError, "float.*batch of 5 actions"),
    (lambda observations: np.zeros((5, 3)), ValueError, "shape"),
    (lambda observations: np.zeros((5, 2), complex), TypeError, "complex"),
    (lambda observations: 1 / 0, ZeroDivisionError, "division"),
]


@pytest.mark.parametrize("executor", [INLINE, PROCESS], ids=str)
@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_a_policy_that_fails_leaves_the_environments_usable(build_with, executor, mode):
    envs = build_with(executor, lotteries(), autoreset_mode=mode)
    expected = alone(lotteries(), follow_luck, 1, SEED)
    for wrong, error, words in WRONG_ANSWERS:
        before = envs.get_attr("steps")
        with pytest.raises(error, match=words):
            cartwheel.evaluate(envs, wrong)
        assert envs.get_attr("steps") == before
    same(cartwheel.evaluate(envs, follow_luck, seed=SEED), expected)

    def fails_late(observations):  # when some rows have finished
        count = len(observations["t"])
        return follow_luck(observations)[: count if count == NUM_ENVS else count + 1 - 2]

    with pytest.raises(ValueError, match=r"the policy returned \d actions for \d observations"):
        cartwheel.evaluate(envs, fails_late)

    def answers_for_all(observations):  # also when some rows have finished
        actions = follow_luck(observations)
        return np.resize(actions, (NUM_ENVS, *actions.shape[1:]))

    with pytest.raises(ValueError, match="rows that have played their episodes are left out"):
        cartwheel.evaluate(envs, answers_for_all)
    assert not envs.in_flight
    same(cartwheel.evaluate(envs, follow_luck, seed=SEED), expected)


@pytest.mark.parametrize("executor", [INLINE, PROCESS], ids=str)
def test_an_environment_that_raises_leaves_the_others_usable(build_with, executor):
    envs = build_with(executor, [*lotteries(2), partial(LotteryEnv, 1, raises_at=7)])
    with pytest.raises(RuntimeError, match="lost the ticket"):
        cartwheel.evaluate(envs, follow_luck, seed=SEED)
    assert not envs.in_flight
    steps_like_row_3 = [*lotteries(2), partial(LotteryEnv, 1)]
    same(
        cartwheel.evaluate(envs, follow_luck, seed=SEED),
        alone(steps_like_row_3, follow_luck, 1, SEED),
    )


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"episodes_per_env": 0}, "episodes_per_env.*0"),
        ({"episodes_per_env": -1}, "episodes_per_env.*-1"),
        ({"episodes_per_env": 1.5}, "episodes_per_env.*1.5"),
        ({"episodes_per_env": True}, "episodes_per_env.*True"),
        ({"confidence": 0}, "confidence.*0"),
        ({"confidence": 1.0}, "confidence.*1.0"),
        ({"confidence": float("nan")}, "confidence.*nan"),
        ({"options": {"reset_mask": np.array([True, False])}}, "reset_mask"),
        ({"options": {"env_index": [0]}}, "env_index"),
        ({"options": {"env_idx": [0]}}, "env_idx"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_reset(build_with, keywords, words):
    envs = build_with(INLINE, lotteries(2))
    with pytest.raises(ValueError, match=words):
        cartwheel.evaluate(envs, follow_luck, **keywords)
    with pytest.raises(TypeError, match="policy"):
        cartwheel.evaluate(envs, "no function")
    assert not any(hasattr(env.unwrapped, "t") for env in envs.envs)


def test_environments_that_cannot_be_evaluated_are_refused(build_with):
    with pytest.raises(ValueError, match="batch_size=1 below num_envs=2"):
        cartwheel.evaluate(build_with(INLINE, lotteries(2), batch_size=1), follow_luck)
    in_parts = INLINE(lotteries(2), batch_size=1, autoreset_mode="next_step")
    with pytest.raises(ValueError, match="batch_size=1 below num_envs=2"):
        cartwheel.evaluate(build_with(RecordEpisodeStatistics, in_parts), follow_luck)
    plain = build_with(gym.vector.SyncVectorEnv, lotteries(2))
    plain.metadata = {}
    with pytest.raises(ValueError, match="autoreset_mode"):
        cartwheel.evaluate(plain, follow_luck)
    busy = build_with(INLINE, lotteries(2))
    busy.reset()
    busy.send(np.zeros((2, 2)))
    with pytest.raises(gym.error.AlreadyPendingCallError):
        cartwheel.evaluate(busy, follow_luck)
    busy.recv()
    cartwheel.evaluate(busy, follow_luck)


@pytest.mark.parametrize(
    "call",
    [
        lambda envs: cartwheel.evaluate(envs, follow_luck),
        lambda envs: cartwheel.Collector(envs, follow_luck, 4),
        cartwheel.testing.check_vector_env,
        cartwheel.wrappers.RecordMetrics,
    ],
)
def test_an_object_that_is_not_a_vector_environment_is_refused_with_what_to_pass_instead(call):
    with pytest.raises(TypeError, match=r"AwaitableEnvs.*make a cartwheel\.VectorEnv of the same"):
        call(cartwheel.AwaitableEnvs(lotteries(2), lazy=True))
    with pytest.raises(TypeError, match=r"got (\[1\]|<class 'list'>): see cartwheel\.make_vec"):
        call([1])
    agents = cartwheel.ParallelVectorEnv([Walkers] * 2, executor="inline")
    with agents, pytest.raises(TypeError, match=r"pass their ParallelVectorEnv, `envs\.envs`, or"):
        call(agents.by_group({"all": agents.possible_agents}))


USES = {
    "reset": lambda envs: envs.reset(),
    "reset of a row": lambda envs: envs.reset(options={"reset_mask": np.arange(NUM_ENVS) == 2}),
    "step": lambda envs: envs.step(np.zeros((NUM_ENVS, 2), np.float32)),
}
KINDS = {
    "inline": INLINE,
    "process": PROCESS,
    "wrapped": lambda *args, **keywords: RecordMetrics(INLINE(*args, **keywords)),
    "gymnasium": lambda *args, **keywords: RecordMetrics(
        gym.vector.SyncVectorEnv(*args, **keywords)
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.value)
def test_a_policy_and_a_progress_that_use_the_environments_are_refused(build_with, mode, kind, use):
    envs = build_with(KINDS[kind], lotteries(), autoreset_mode=mode)
    uses, calls = USES[use], []

    def disturb(observations):
        calls.append(uses(envs))
        return follow_luck(observations)

    orders = ["lockstep"] if kind == "gymnasium" else ["lockstep", "free"]
    for order in orders:
        with pytest.raises(RuntimeError, match="by another caller during `evaluate`"):
            cartwheel.evaluate(envs, disturb, order=order, progress=False)
    assert len(calls) == len(orders)
    with pytest.raises(RuntimeError, match="by another caller during `evaluate`"):
        cartwheel.evaluate(envs, follow_luck, episodes_per_env=2, progress=lambda *_: envs.reset())
    same(cartwheel.evaluate(envs, follow_luck, seed=SEED), alone(lotteries(), follow_luck, 1, SEED))
