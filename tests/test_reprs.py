"""Objects show themselves in one line, without arrays; notebooks show the tables of ``Stats``."""

from html.parser import HTMLParser

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from tests.support.cases import lean
from tests.support.environments import transcripts
from tests.support.executors import INLINE


def with_extras(observations):
    rows = len(observations)
    return lean(observations), {"log_prob": np.zeros(rows), "value": np.zeros(rows)}


def collected(policy=with_extras, **keywords):
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 16)
    keywords.setdefault("num_steps", 64)
    rollout = cartwheel.Collector(envs, policy, seed=1, **keywords).collect()
    envs.close()
    return rollout


def test_rollouts_name_their_size_mode_and_extras():
    rollout = collected()
    assert repr(rollout) == "Rollout(64 steps × 16 envs, next_step, extras: log_prob, value)"
    assert repr(rollout.tail(8)) == "Rollout(8 steps × 16 envs, next_step, extras: log_prob, value)"
    assert repr(collected(lean)) == "Rollout(64 steps × 16 envs, next_step)"


def test_parts_of_rollouts_name_their_size_and_extras():
    rollout = collected()
    valid, episodes = int(rollout.valid.sum()), rollout.episodes()
    extras = "extras: log_prob, value"
    assert repr(rollout.flatten()) == f"Rows({valid} rows, {extras})"
    assert repr(rollout.flatten(valid_only=False)) == f"Rows(1024 rows, {extras})"
    assert repr(next(rollout.minibatches(256))) == f"Rows(256 rows, {extras})"
    windows = next(rollout.minibatches(3, by="sequence", length=8))
    assert repr(windows) == f"Windows(8 steps × 3 windows, {extras})"
    assert repr(rollout.transitions()) == f"Transitions({valid} transitions, {extras})"
    assert (
        repr(rollout.transitions(n_step=3, gamma=0.9))
        == f"Transitions({valid} transitions of up to 3 steps, {extras})"
    )
    ended = len(rollout.episodes(complete_only=True))
    assert 0 < ended < len(episodes)
    assert repr(episodes) == f"Episodes({len(episodes)} episodes, {ended} of them complete)"


def test_empty_parts_have_reprs():
    rollout = collected(lean, num_steps=1)
    rollout.valid[:] = False
    assert repr(rollout.flatten()) == "Rows(0 rows)"
    assert repr(rollout.transitions()) == "Transitions(0 transitions)"
    assert repr(rollout.episodes()) == "Episodes(0 episodes, 0 of them complete)"


class Net:
    """Has a repr of several lines, like a module of torch."""

    def __call__(self, observations):
        return lean(observations)

    def __repr__(self):
        return "Net(\n  a layer\n)"


def test_collectors_name_environments_policy_and_length():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 4)
    shown = (
        "NativeVectorEnv('CartPole-v1', num_envs=4, autoreset_mode='next_step', executor='thread')"
    )
    for policy, name in ((lean, "lean"), (Net(), "Net")):
        collector = cartwheel.Collector(envs, policy, num_steps=16)
        assert repr(collector) == f"Collector({shown}, {name}, num_steps=16)"
    collector = cartwheel.Collector(envs, lean, num_episodes=9)
    assert repr(collector) == f"Collector({shown}, lean, num_episodes=9)"
    envs.close()


def test_rollout_arrays_name_their_size():
    for envs in (cartwheel.NativeVectorEnv("CartPole-v1", 4), INLINE(transcripts(2, 3, 4, 5))):
        envs.reset(seed=1)
        assert repr(envs.rollout(8)) == "RolloutArrays(8 steps × 4 envs)"
        envs.close()


def test_vector_environments_name_their_id_size_mode_and_executor():
    for make, shown in (
        (lambda: cartwheel.NativeVectorEnv("cartwheel/Taxi-v4", 3), "NativeVectorEnv('Taxi-v4', "),
        (lambda: cartwheel.make_vec("cartwheel/Taxi-v4", 3), "NativeVectorEnv('Taxi-v4', "),
        (lambda: gym.make_vec("cartwheel/Taxi-v4", 3), "NativeVectorEnv('Taxi-v4', "),
        (
            lambda: cartwheel.make_vec("cartwheel/Taxi-v4", 3, vectorization_mode="sync"),
            "VectorEnv('cartwheel/Taxi-v4', ",
        ),
        (lambda: cartwheel.make_vec("Taxi-v4", 3, executor="inline"), "VectorEnv('Taxi-v4', "),
        (lambda: cartwheel.SyncVectorEnv(transcripts(1, 2, 3)), "SyncVectorEnv("),
    ):
        envs = make()
        executor = "thread" if shown.startswith("Native") else "inline"
        rest = f"num_envs=3, autoreset_mode='next_step', executor={executor!r})"
        assert repr(envs) == shown + rest
        wrapped = gym.wrappers.vector.RecordEpisodeStatistics(envs)
        assert repr(wrapped) == f"<RecordEpisodeStatistics, {envs!r}>"
        envs.close()


def test_single_native_environments_name_their_id_and_render_mode():
    env = gym.make("cartwheel/Taxi-v4")
    assert repr(env.unwrapped) == "NativeEnv('Taxi-v4')"
    assert str(env.unwrapped) == "<NativeEnv<cartwheel/Taxi-v4>>"  # as in Gymnasium
    env.close()
    env = cartwheel.NativeEnv("cartwheel/Taxi-v4", render_mode="ansi")
    assert repr(env) == "NativeEnv('Taxi-v4', render_mode='ansi')"
    env.close()


@pytest.mark.parametrize("recorded", ["flatten", "transitions", "episodes"])
def test_parts_of_rollouts_can_be_compared_and_hashed(recorded):
    """By identity: arrays have no single truth value."""
    rollout = collected(lean, num_steps=4)
    first, second = getattr(rollout, recorded)(), getattr(rollout, recorded)()
    assert first != second
    assert len({first, second, first}) == 2


# Stats


class Tables(HTMLParser):
    """Reads the cells of tables, and checks that all elements are closed in order."""

    def __init__(self):
        super().__init__()
        self.tables, self.open = [], []

    def handle_starttag(self, tag, attrs):
        del attrs
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag != "br":
            self.open.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def tables_of(stats):
    parser = Tables()
    parser.feed(stats._repr_html_())
    parser.close()
    assert not parser.open
    return parser.tables


def test_stats_are_one_line_and_tables_in_notebooks():
    envs = cartwheel.NativeVectorEnv("CartPole-v1", 20, num_workers=2)
    envs.reset(seed=1)
    for _ in range(200):
        envs.step(np.ones(20, int))
    stats = envs.stats()
    envs.close()
    assert repr(stats).startswith("Stats(20 envs, 4,000 steps, ")
    assert "\n" not in repr(stats)
    groups, rows = tables_of(stats)
    assert groups[0] == ["rows", "working", "waiting", "median step", "restarts"]
    assert rows[0] == ["row", "mean step", "slowest", "steps", "resets"]
    assert any(cells[3].startswith("< ") for cells in groups[1:])  # escaped in the source
    assert "< " not in stats._repr_html_()
    assert [cells[3] for cells in rows[1:9]] == ["200"] * 8
    assert rows[9] == ["… 12 more rows"]
    # `print` shows the same cells.
    text = str(stats)
    for cells in (*groups, *rows):
        assert " ".join(cells) in " ".join(text.split())
