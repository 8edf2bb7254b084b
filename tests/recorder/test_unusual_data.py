"""Keys, nesting and shapes that are unusual are recorded, or left out with a warning by name."""
# ruff: noqa: ARG002 (signatures are Gymnasium's)

import json
import warnings
from functools import partial

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Tuple

import cartwheel
from cartwheel.recorder import RecordEpisode, TrajectoryDataset, layouts, trajectory_recorder
from cartwheel.recorder.trajectory_recorder import MAX_WARNINGS
from tests.support.comparison import assert_identical
from tests.support.recordings import read_h5
from tests.support.wrapping import D, N, S

MODES = [N, S, D]
FORMATS = ["maniskill", "minari"]
MAX_INFOS = 24


@pytest.fixture
def few_infos(monkeypatch):
    """Fewer infos are recorded, so that fewer steps show it."""
    monkeypatch.setattr(trajectory_recorder, "MAX_INFOS", MAX_INFOS)


class TellingEnv(gym.Env):
    """An episode of ``length`` steps, whose infos are what a function makes of the step."""

    observation_space = Box(-np.inf, np.inf, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, tell, length=3, space=None, action_space=None):
        self.tell, self.length = tell, length
        self.observation_space = self.observation_space if space is None else space
        self.action_space = self.action_space if action_space is None else action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), self.tell(0)

    def step(self, action):
        self.t += 1
        over = self.t >= self.length
        return self.observation_space.sample(), 1.0, over, False, self.tell(self.t)


def record(folder, form, tell=lambda _: {}, steps=8, mode=N, rows=2, options=None, **of_env):
    """Records steps; returns the names of what the file has, and the warnings."""
    env_fns = [lambda: TellingEnv(tell, **of_env)] * rows
    envs = cartwheel.VectorEnv(env_fns, executor="inline", autoreset_mode=mode)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        envs = RecordEpisode(envs, folder, trajectory_name="demo", save_video=False, format=form)
        envs.reset(seed=3, options=options)
        envs.action_space.seed(3)
        for _ in range(steps):
            over = np.logical_or(*envs.step(envs.action_space.sample())[2:4])
            if mode == D and over.any():
                envs.reset(options={"reset_mask": over})
        envs.close()
    return [str(one.message) for one in told if one.category is UserWarning]


def infos_of(folder):
    return read_h5(folder / "demo-v0" / "data" / "main_data.hdf5")["episode_0"].get("infos", {})


@pytest.mark.parametrize("mode", MODES)
def test_keys_of_every_kind_have_their_names(tmp_path, mode):
    told = record(
        tmp_path,
        "minari",
        lambda t: {
            7: t,
            (1, "a"): t + 0.5,
            "_hidden": t + 1,
            "a/b": t + 2,
            "deep": {"_hidden": t + 3, "x/y": t + 4, 0: t + 5, "none": {}, "restarted": t + 6},
            "nothing": {},
        },
        mode=mode,
    )
    assert told == []
    steps = np.arange(4)
    assert_identical(
        infos_of(tmp_path),
        {
            "7": steps,
            "(1, 'a')": steps + 0.5,
            "_hidden": steps + 1,
            "a": {"b": steps + 2},
            "deep": {
                "_hidden": steps + 3,
                "x": {"y": steps + 4},
                "0": steps + 5,
                "restarted": steps + 6,  # at the top, it would be the pool's
            },
        },
    )


def test_a_final_info_of_another_dtype_leaves_those_of_other_rows_as_they_are(tmp_path):
    def make(length):
        return TellingEnv(lambda t: {"score": 1 if t == length else 0.5} if t else {}, length)

    env_fns = [partial(make, length) for length in (1, 3)]
    envs = cartwheel.VectorEnv(env_fns, executor="inline", autoreset_mode=S)
    envs = RecordEpisode(envs, tmp_path, trajectory_name="demo", save_video=False, format="minari")
    envs.reset(seed=3)
    for _ in range(3):
        envs.step([0, 0])
    envs.close()
    file = read_h5(tmp_path / "demo-v0" / "data" / "main_data.hdf5")
    scores = [episode["infos"]["score"][1:].tolist() for episode in file.values()]
    assert sorted(scores) == [[0.5, 0.5, 1.0], [1.0], [1.0], [1.0]]


LEFT_OUT = {
    "two keys of one name": (
        lambda t: {0: t, "0": t},
        {"0": [0, 1, 2, 3]},
        "the info '0' is left out of the recording, because another info has the same name",
    ),
    "a value by the name of a mask": (
        lambda t: {"x": 1.5, "_x": t},
        None,
        "the info '_x' .* because it has the name of the mask of `x`",
    ),
    "an array and a group": (
        lambda t: {"a": t, "a/b": t},
        {"a": [0, 1, 2, 3]},
        "the info 'a/b' .* because it is a number and a dictionary of numbers in one episode",
    ),
    "a number that becomes a dictionary": (
        lambda t: {"a": t} if t < 2 else {"a": {"b": t}},
        {"a": [0, 1, 0, 0]},
        "the info 'a/b' .* because it is a number and a dictionary",
    ),
    "shapes that change": (
        lambda t: {"a": np.zeros(1 + t // 2)},
        None,
        r"the info 'a' .* because it has the shape \(2,\), and \(1,\) before",
    ),
    "ragged": (
        lambda t: {"a": [[1], [1, 2]], "b": t},
        {"b": [0, 1, 2, 3]},
        "the info 'a' .* because its values have no common shape",
    ),
    "no name": (lambda t: {"": t, "b": t}, {"b": [0, 1, 2, 3]}, "the info '' .* no such name"),
    "a dot": (lambda t: {"b/./c": t}, {}, "the info 'b/./c' .* no such name"),
    "a zero": (lambda t: {"b\0": t}, {}, "because a file has no such name"),
    "half a pair": (lambda t: {"\ud83d": t}, {}, "because a file has no such name"),
}


@pytest.mark.parametrize("case", LEFT_OUT)
@pytest.mark.parametrize("mode", [N, S])
def test_what_is_left_out_is_named_once(tmp_path, mode, case):
    tell, expected, message = LEFT_OUT[case]
    told = record(tmp_path, "minari", tell, mode=mode)
    assert len(told) == 1
    with pytest.warns(UserWarning, match=message):
        warnings.warn(told[0], stacklevel=1)
    if expected is not None:
        assert {name: array.tolist() for name, array in infos_of(tmp_path).items()} == expected


@pytest.mark.usefixtures("few_infos")
@pytest.mark.parametrize("mode", [N, S])
def test_keys_that_change_from_episode_to_episode_cost_no_memory(tmp_path, mode):
    """Each episode has its own; the recorder forgets those of earlier ones."""
    episodes = MAX_INFOS

    class Renaming(TellingEnv):
        played = 0

        def reset(self, **keywords):
            self.played += 1
            return super().reset(**keywords)

        def step(self, action):
            return *super().step(action)[:4], {f"key {self.played}/{k}": self.t for k in range(3)}

    made = cartwheel.VectorEnv(
        [lambda: Renaming(lambda _: {}, 2)], executor="inline", autoreset_mode=mode
    )
    keywords = {"trajectory_name": "demo", "save_video": False, "format": "minari"}
    envs = RecordEpisode(made, tmp_path, **keywords)
    envs.reset(seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while envs.unwrapped.call("played")[0] <= episodes:
            envs.step(np.zeros(1, np.int64))
    assert len(envs._trajectories._present) <= MAX_INFOS
    assert len(envs._trajectories._buffer._tracks) <= MAX_INFOS + 4
    envs.close()
    recorded = read_h5(tmp_path / "demo-v0" / "data" / "main_data.hdf5")
    assert len(recorded) >= episodes
    for number, episode in enumerate(recorded[f"episode_{n}"] for n in range(episodes)):
        (group,) = episode["infos"]
        assert group == f"key {number + 1}"
        assert {name: array.tolist() for name, array in episode["infos"][group].items()} == {
            str(k): [0, 1, 2] for k in range(3)
        }


@pytest.mark.usefixtures("few_infos")
def test_keys_that_change_in_every_step_are_bounded_and_the_warnings_too(tmp_path):
    told = record(
        tmp_path,
        "minari",
        lambda t: {f"key {t}": t, "always": t},
        steps=MAX_INFOS + 40,
        rows=1,
        length=MAX_INFOS + 30,
    )
    assert len(told) == MAX_WARNINGS
    assert f"because the present episodes have {MAX_INFOS} others" in told[0]
    assert "further ones are left out without a warning" in told[-1]
    recorded = infos_of(tmp_path)
    assert len(recorded) == MAX_INFOS
    assert recorded["always"].tolist() == list(range(MAX_INFOS + 31))


def test_refused_names_that_change_in_every_step_are_bounded_too(tmp_path):
    told = record(tmp_path, "minari", lambda t: {f"{t}\0": t}, steps=50, length=40)
    assert len(told) == MAX_WARNINGS


EMPTY = {
    "dictionary": Dict(extra=Dict({}), state=Box(-1, 1, (2,))),
    "tuple": Tuple([Tuple([]), Box(-1, 1, (2,)), Dict({})]),
    "deep": Dict(a=Dict(b=Tuple([Dict({})]), c=Discrete(3)), z=Dict({})),
    "nothing else": Dict(extra=Dict({})),
}


#: Gymnasium cannot iterate over actions of the last one.
PLACES = [("space", kind) for kind in EMPTY] + [("action_space", kind) for kind in [*EMPTY][:-1]]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("where", "kind"), PLACES)
@pytest.mark.parametrize("mode", MODES)
def test_parts_without_a_part_are_empty_groups(tmp_path, mode, kind, form, where):
    space = EMPTY[kind]
    assert record(tmp_path, form, mode=mode, **{where: space}) == []
    name = "demo.h5" if form == "maniskill" else "demo-v0"
    dataset = TrajectoryDataset(tmp_path / name)
    assert len(dataset) >= 6
    found = dataset.obs if where == "space" else dataset.actions

    def nested(space):
        """The structure of a space as it is read."""
        if isinstance(space, Dict):
            return {key: nested(part) for key, part in space.spaces.items()}
        if isinstance(space, Tuple):
            parts = [nested(part) for part in space.spaces]
            if form == "minari":
                return tuple(parts)
            return {str(place): part for place, part in enumerate(parts)}
        return (len(dataset), *space.shape)

    def shapes(tree):
        if isinstance(tree, dict):
            return {key: shapes(part) for key, part in tree.items()}
        return tuple(map(shapes, tree)) if isinstance(tree, tuple) else tree.shape

    assert shapes(found) == nested(space)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("mode", MODES)
def test_arrays_without_an_element_are_recorded_with_their_shapes(tmp_path, mode, form):
    space = Dict(none=Box(-1, 1, (0,)), flat=Box(0, 255, (4, 0, 3), np.uint8), some=Discrete(3))
    told = record(
        tmp_path,
        form,
        lambda t: {"none": np.zeros((0, 2)), "t": t},
        mode=mode,
        space=space,
        action_space=Box(-1, 1, (0,), np.float32),
    )
    assert told == []
    dataset = TrajectoryDataset(tmp_path / ("demo.h5" if form == "maniskill" else "demo-v0"))
    size = len(dataset)
    assert size >= 6
    assert {key: array.shape for key, array in dataset.obs.items()} == {
        "none": (size, 0),
        "flat": (size, 4, 0, 3),
        "some": (size,),
    }
    assert dataset.obs["flat"].dtype == np.uint8
    assert dataset.actions.shape == (size, 0)
    if form == "minari":
        assert infos_of(tmp_path)["none"].shape == (4, 0, 2)
        assert infos_of(tmp_path)["t"].tolist() == [0, 1, 2, 3]


def test_minari_reads_empty_parts_and_arrays(tmp_path, monkeypatch):
    space = Dict(extra=Dict({}), none=Box(-1, 1, (0,)), pair=Tuple([Dict({}), Discrete(3)]))
    record(tmp_path, "minari", lambda t: {(1, 2): t, "a/b": t}, space=space)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    episode = minari.load_dataset("demo-v0")[0]
    assert episode.observations["extra"] == {}
    assert episode.observations["none"].shape == (4, 0)
    assert episode.observations["pair"][0] == {}
    assert episode.observations["pair"][1].shape == (4,)
    assert episode.infos["(1, 2)"].tolist() == episode.infos["a"]["b"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("form", FORMATS)
def test_options_of_every_form_are_in_the_metadata(tmp_path, form):
    options = {
        (1, 2): {3: "x", "empty": {}},
        "none": np.zeros((0, 2)),
        "a/b": [1, 2],
        "\0": 1,
        "ragged": [[1], [2, 3]],
    }
    assert record(tmp_path, form, options=options) == []
    if form == "maniskill":
        known = json.loads((tmp_path / "demo.json").read_text())["episodes"][0]
    else:
        with h5py.File(tmp_path / "demo-v0" / "data" / "main_data.hdf5") as file:
            attributes = dict(file["episode_0"].attrs)
        known = json.loads(bytes(attributes["metadata"]))
        assert attributes["options/(1, 2)/3"] == "x"
        assert attributes["options/(1, 2)/empty"] == "{}"
        assert attributes["options/a/b"].tolist() == [1, 2]
    assert known["reset_kwargs"]["options"] == {
        "(1, 2)": {"3": "x", "empty": {}},
        "none": [],
        "a/b": [1, 2],
        "\0": 1,
        "ragged": [[1], [2, 3]],
    }


@pytest.mark.parametrize(
    "key", [3, ("a", 1), "a//b", "/a", "a/", "a/./b", "", ".", "a\0b", "\ud83d"]
)
@pytest.mark.parametrize("form", FORMATS)
def test_keys_of_spaces_that_a_file_cannot_have_are_refused_by_name(tmp_path, form, key):
    class Keyed(TellingEnv):
        observation_space = Dict({key: Discrete(2)})

    envs = cartwheel.VectorEnv([lambda: Keyed(lambda _: {})], executor="inline")
    with pytest.raises(ValueError, match=r"cannot be the name of a group in a file.*Rename it"):
        RecordEpisode(envs, tmp_path, save_video=False, format=form)
    envs.close()


SLASHES = Dict(
    {
        "walker/joints": Box(-1, 1, (2,)),
        "walker": Dict(
            {"height": Box(-1, 1, (1,)), "egocentric/camera": Box(0, 255, (4, 4, 3), np.uint8)}
        ),
        "touch/left/tip": Box(-1, 1, (3,)),
        "pair": Tuple([Dict({"a/b": Discrete(3)})]),
        "none/at all": Dict({}),
    }
)


@pytest.mark.parametrize("where", ["space", "action_space"])
@pytest.mark.parametrize("mode", MODES)
def test_keys_with_slashes_are_groups_that_minari_reads(tmp_path, monkeypatch, mode, where):
    for form in FORMATS:
        assert record(tmp_path, form, mode=mode, **{where: SLASHES}) == []
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    episode = minari.load_dataset("demo-v0")[0]
    theirs = episode.observations if where == "space" else episode.actions
    ours, raw = (
        TrajectoryDataset(tmp_path / name).episode(0)["obs" if where == "space" else "actions"]
        for name in ("demo-v0", "demo.h5")
    )
    assert_identical(ours, theirs)
    assert_identical({**raw, "pair": (raw["pair"]["0"],)}, theirs)
    assert sorted(theirs["walker"]) == ["egocentric", "height", "joints"]
    assert theirs["pair"][0]["a"]["b"].dtype == np.int64
    assert theirs["none"] == {"at all": {}}
    with h5py.File(tmp_path / "demo.h5") as file:
        group = file["traj_0"]["obs" if where == "space" else "actions"]
        assert group["touch/left/tip"].shape == (4 if where == "space" else 3, 3)
    if where == "space":
        SLASHES.seed(3)
        first = SLASHES.sample()
        np.testing.assert_array_equal(theirs["walker"]["joints"][0], first["walker/joints"])
        np.testing.assert_array_equal(
            theirs["walker"]["egocentric"]["camera"][0], first["walker"]["egocentric/camera"]
        )


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "rivals",
    [
        {"a/b": Discrete(2), "a": Discrete(2)},
        {"a/b": Discrete(2), "a": Dict({"b": Discrete(2)})},
        {"a/0": Discrete(2), "a": Tuple([Discrete(2)])},
        {"a/b": Dict({}), "a/b/c": Discrete(2), "a": Dict({"b": Discrete(3)})},
    ],
)
def test_keys_that_would_have_one_place_are_refused(tmp_path, form, rivals):
    class Keyed(TellingEnv):
        observation_space = Dict(rivals)

    envs = cartwheel.VectorEnv([lambda: Keyed(lambda _: {})], executor="inline")
    with pytest.raises(ValueError, match=r"two parts of Dict.* would have the place 'a.*rename"):
        RecordEpisode(envs, tmp_path, save_video=False, format=form)
    assert not [*tmp_path.glob("*")]
    envs.close()


@pytest.mark.parametrize("shape", [(0, 0, 3), (4, 0, 3)])
def test_frames_without_a_pixel_are_refused_by_name(tmp_path, shape):
    class Blank(TellingEnv):
        metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - Gymnasium's attribute
        render_mode = "rgb_array"

        def render(self):
            return np.zeros(shape, np.uint8)

    envs = cartwheel.VectorEnv([lambda: Blank(lambda _: {})] * 2, executor="inline")
    envs = RecordEpisode(envs, tmp_path, video_envs=[1])
    with pytest.raises(ValueError, match=r"the frame of row 1 has the shape .* without a pixel"):
        envs.reset(seed=1)
    envs.close()


def test_options_that_are_too_large_for_an_attribute_are_shortened_or_left_out():
    flat = layouts._flat({"short": np.zeros(9), "long": np.zeros(9_000), "in": {"x": "y"}}, "o")
    assert flat["o/short"].tolist() == [0] * 9
    assert len(flat["o/long"]) == 4096
    assert flat["o/in/x"] == "y"
    kept = {"episode_id": 2, "reset_kwargs": {"seed": 3}}
    for text, is_kept in (("a", True), ("a" * layouts.ATTRIBUTE_BYTES, False)):
        reset = {"seed": 3, "options": {"text": text}}
        found = json.loads(layouts.episode_attribute({**kept, "reset_kwargs": reset}))
        assert found == ({**kept, "reset_kwargs": reset} if is_kept else kept)
