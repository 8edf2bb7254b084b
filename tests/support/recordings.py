"""The expected episodes of a recorder, from traces of the environments, and its files."""

import json

import h5py
import numpy as np

from tests.support.comparison import assert_identical


def expected_episodes(traces, script, action_space):
    """The episodes of each row, from what the vector environment returned.

    Args:
        traces: Of `tests.support.wrapping.drive`.
        script: What it drove.
        action_space: Of one environment.

    Returns:
        For each row a list of dictionaries with the arrays of a file.
    """
    return [_episodes(trace, row, script, action_space) for row, trace in enumerate(traces)]


def _episodes(trace, row, script, action_space):
    found, moments, number = [], [], 0
    for moment in trace:
        if moment.what == "reset":
            found, moments = [*found, moments], [moment]
        elif moment.what == "failed":
            found, moments = [*found, moments], []
            number += 1
        else:
            moments.append(moment._replace(info=(moment.info, number)))
            number += 1
    episodes = []
    for episode in [*found, moments]:
        if len(episode) < 2:
            continue
        steps = episode[1:]
        actions = [script.action(action_space, row, step.info[1]) for step in steps]
        episodes.append(
            {
                "obs": _stack([moment.observation for moment in episode]),
                "actions": np.array(actions, action_space.dtype).reshape(len(steps), -1),
                "rewards": np.array([step.reward for step in steps], np.float32),
                "terminated": np.array([step.terminated for step in steps]),
                "truncated": np.array([step.truncated for step in steps]),
            }
        )
    return episodes


def _stack(observations):
    """Batches of one row as one array with a time axis, nested as in the file."""
    if isinstance(observations[0], dict):
        return {key: _stack([one[key] for one in observations]) for key in observations[0]}
    if isinstance(observations[0], tuple):
        parts = range(len(observations[0]))
        return {str(part): _stack([one[part] for one in observations]) for part in parts}
    return np.concatenate(observations)


def read_h5(path):
    """The groups of a file as nested dictionaries of arrays, by h5py alone."""
    with h5py.File(path, "r") as file:
        return {name: _read(file[name]) for name in file}


def _read(node):
    if isinstance(node, h5py.Dataset):
        return node[()]
    return {name: _read(node[name]) for name in node}


def recorded_episodes(folder, num_envs):
    """The episodes of each row in ManiSkill's files, with their metadata."""
    arrays = read_h5(folder / "demo.h5")
    about = json.loads((folder / "demo.json").read_text())["episodes"]
    assert [one["episode_id"] for one in about] == list(range(len(arrays)))
    rows = [[] for _ in range(num_envs)]
    for one in about:
        rows[one["env_index"]].append((arrays[f"traj_{one['episode_id']}"], one))
    return rows


def assert_recorded(rows, expected):
    """Fails unless the episodes of all rows are the expected ones, to the bit.

    A trace ends with the script. A row that went on while others had steps left has more in its
    file than in its last episode there, and perhaps more episodes.
    """
    for row, (found, wanted) in enumerate(zip(rows, expected, strict=True)):
        assert len(found) >= len(wanted), f"row {row}"
        for number, (arrays, about) in enumerate(found):
            where = f"row {row}, episode {number}"
            steps = about["elapsed_steps"]
            assert len(arrays["actions"]) == steps, where
            assert about["terminated"] == arrays["terminated"][-1], where
            assert about["truncated"] == arrays["truncated"][-1], where
            assert not arrays["terminated"][:-1].any(), where
            assert not arrays["truncated"][:-1].any(), where
            if number < len(wanted):
                episode = wanted[number]
                known = len(episode["rewards"])
                over = episode["terminated"][-1] or episode["truncated"][-1]
                if number == len(wanted) - 1 and not over:
                    arrays = {key: first(value, known, key) for key, value in arrays.items()}
                    arrays |= {key: episode[key] for key in ("terminated", "truncated")}
                assert_identical({key: arrays[key] for key in episode}, episode, where)


def first(tree, steps, key):
    """The first steps of the arrays of an episode."""
    if isinstance(tree, dict):
        return {name: first(part, steps, key) for name, part in tree.items()}
    return tree[: steps + (key == "obs")]
