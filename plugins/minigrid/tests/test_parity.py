"""Every id has the values of ``minigrid``'s environment, its random numbers and its frames."""

import gymnasium as gym
import numpy as np
import pytest
from comparison import CHAINS, IDS, MODES, differences, in_turn, unlike

import cartwheel
from cartwheel import testing


def test_every_id_of_the_package_is_there():
    natives = [spec for spec in gym.registry if spec.startswith("cartwheel_minigrid/")]
    assert len(natives) == 172
    assert {f"cartwheel_minigrid/{env_id}" for env_id in IDS} == set(natives)


@pytest.mark.parametrize(("env_id", "mode"), in_turn(MODES), ids=str)
def test_values_equal_those_of_the_original(env_id, mode):
    assert differences(env_id, mode, episodes=3, seed=1, max_steps=40).differing == 0


@pytest.mark.parametrize(("env_id", "mode", "chain"), in_turn(MODES, CHAINS), ids=str)
def test_observations_equal_those_of_wrapped_originals(env_id, mode, chain):
    keywords = {"observation": chain, "max_steps": 8, "maxStrLen": 340}
    count = differences(env_id, mode, episodes=3, seed=1, **keywords)
    assert count.differing == 0


@pytest.mark.parametrize("chain", CHAINS, ids=str)
def test_wrappers_meet_the_keywords_of_levels_and_of_themselves(chain):
    count = differences(
        "MiniGrid-LavaCrossingS9N3-v0",
        gym.vector.AutoresetMode.SAME_STEP,
        episodes=3,
        seed=3,
        observation=chain,
        observation_tile_size=5,
        maxStrLen=50,
        size=7,
        agent_view_size=5,
        highlight=False,
        agent_pov=True,
        tile_size=9,
        max_steps=20,
    )
    assert count.differing == 0


def test_a_difference_is_counted():
    image = np.zeros((2, 3), np.uint8)
    other = image.copy()
    other[1, 2] = 1
    assert unlike((image, {"mission": ("go", "do")}), (other, {"mission": ("go", "to")})) == (2, 8)
    assert unlike(image, image.astype(np.int64)) == (6, 6)
    assert unlike({}, {"final_obs": image}) == (1, 1)
    nothing = np.array([None, {"image": image}], dtype=object)
    assert unlike(nothing, np.array([None, {"image": other}], dtype=object)) == (1, 7)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_mission_that_is_too_long_fails_as_that_of_the_original_does(mode):
    keywords = {"observation": "flat", "maxStrLen": 20}
    envs = cartwheel.make_vec(
        "cartwheel_minigrid/BabyAI-GoToLocal-v0", 8, autoreset_mode=mode, **keywords
    )
    with envs, pytest.raises(cartwheel.EnvFailedError, match="letters, more than `maxStrLen`, 20"):
        envs.reset(seed=0)


@pytest.mark.parametrize(
    "keywords",
    [
        {"agent_view_size": 3},
        {"agent_view_size": 9, "see_through_walls": True},
        {"max_steps": 5},
    ],
    ids=str,
)
def test_keywords_of_all_levels_are_those_of_the_original(keywords):
    for mode in ("next_step", "same_step"):
        mode = gym.vector.AutoresetMode[mode.upper()]
        assert differences("MiniGrid-FourRooms-v0", mode, episodes=4, **keywords).differing == 0


@pytest.mark.parametrize(
    ("env_id", "keywords"),
    [
        ("MiniGrid-Empty-8x8-v0", {"size": 6, "agent_start_pos": (2, 3), "agent_start_dir": 1}),
        ("MiniGrid-LavaGapS7-v0", {"size": 9}),
        ("MiniGrid-SimpleCrossingS9N1-v0", {"obstacle_type": "lava", "num_crossings": 3}),
        ("MiniGrid-MultiRoom-N6-v0", {"minNumRooms": 2, "maxNumRooms": 4}),
        ("MiniGrid-Fetch-8x8-N3-v0", {"numObjs": 5}),
        ("MiniGrid-KeyCorridorS3R1-v0", {"obj_type": "box"}),
        ("BabyAI-GoTo-v0", {"num_rows": 2, "num_cols": 1, "doors_open": True}),
        ("BabyAI-OpenTwoDoors-v0", {"first_color": "grey", "strict": True}),
    ],
    ids=str,
)
def test_keywords_of_a_level_are_those_of_the_original(env_id, keywords):
    mode = gym.vector.AutoresetMode.SAME_STEP
    assert differences(env_id, mode, episodes=4, **keywords).differing == 0


@pytest.mark.parametrize(
    "keywords",
    [
        {"tile_size": 9},
        {"tile_size": 8, "agent_pov": True},
        {"tile_size": 6, "highlight": False, "agent_view_size": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "env_id",
    ["MiniGrid-Playground-v0", "MiniGrid-LavaCrossingS9N2-v0", "MiniGrid-LockedRoom-v0"],
)
def test_frames_equal_those_of_the_original(env_id, keywords):
    ours = gym.make(f"cartwheel_minigrid/{env_id}", render_mode="rgb_array", **keywords)
    theirs = gym.make(env_id, render_mode="rgb_array", **keywords)
    assert ours.metadata["render_fps"] == theirs.metadata["render_fps"]
    rng = np.random.default_rng(2)
    with ours, theirs:
        for env in (ours, theirs):
            env.reset(seed=4)
        for _ in range(12):
            np.testing.assert_array_equal(ours.render(), theirs.render())
            action = int(rng.integers(7))
            results = [env.step(action) for env in (ours, theirs)]
            if results[1][2] or results[1][3]:
                break


def test_parameters_are_attributes_as_those_of_the_original():
    names = ["agent_dir", "agent_pos", "max_steps", "mission", "see_through_walls", "step_count"]
    env_id = "MiniGrid-LavaCrossingS9N2-v0"
    ours, theirs = gym.make(f"cartwheel_minigrid/{env_id}"), gym.make(env_id)
    with ours, theirs:
        for env in (ours, theirs):
            env.reset(seed=3)
        for action in (2, 1, 2, 2, 0):
            results = [env.step(action) for env in (ours, theirs)]
            assert results[0][1:4] == results[1][1:4]
            for name in names:
                values = [getattr(env.unwrapped, name) for env in (ours, theirs)]
                np.testing.assert_array_equal(*values)
            if results[0][2]:
                break
        for env in (ours, theirs):
            env.reset(seed=3)
            env.unwrapped.agent_pos = (7, 6)
            env.unwrapped.agent_dir = 1
            env.unwrapped.step_count = 20
            env.unwrapped.max_steps = 40
        (mine, *mine_rest), (other, *other_rest) = (env.step(2) for env in (ours, theirs))
        assert mine_rest == other_rest
        assert mine_rest[0] == 1 - 0.9 * 21 / 40
        assert unlike(mine, other)[0] == 0


@pytest.mark.parametrize("observation", [[], ["flat"]], ids=str)
def test_values_that_do_not_go_with_the_level_are_refused_and_change_nothing(observation):
    env_id = "cartwheel_minigrid/MiniGrid-DoorKey-8x8-v0"
    envs, untouched = (cartwheel.make_vec(env_id, 3, observation=observation) for _ in range(2))
    with envs, untouched:
        for env in (envs, untouched):
            env.reset(seed=3)
        letters = "at most 96 small letters" if observation else "at most 60 small letters"
        for name, value, wanted in [
            ("agent_dir", 4, "an integer from 0 to 3: right, down, left, up, got 4"),
            ("agent_pos", (8, 1), r"a column from 0 to 7 and a row from 0 to 7, got \[8, 1\]"),
            ("agent_pos", (1, -1), r"a row from 0 to 7, got \[1, -1\]"),
            ("max_steps", 0, "positive, got 0"),
            ("mission", "a" * 97, letters),
            ("mission", "Go!", f"{letters}, spaces and commas, got 'Go!'"),
        ]:
            with pytest.raises(ValueError, match=f"`{name}` of row 1 must be .*{wanted}"):
                envs.set_attr(name, [envs.get_attr(name)[0], value, envs.get_attr(name)[2]])
        for _ in range(8):
            assert unlike(envs.step([2, 1, 2]), untouched.step([2, 1, 2]))[0] == 0
        envs.set_attr("mission", "go, now")
        if not observation:
            assert envs.step([0, 0, 0])[0]["mission"] == ("go, now",) * 3


@pytest.mark.parametrize("env_id", IDS[::57])
def test_every_promise_of_a_vector_environment_is_kept(env_id):
    envs = cartwheel.make_vec(f"cartwheel_minigrid/{env_id}", 5, num_workers=2, tile_size=4)
    report = testing.check_vector_env(envs, steps=20)
    assert {"spaces", "same_seed", "rows", "modes", "states"} & set(report.passed)
    envs.close()


@pytest.mark.parametrize(
    ("env_id", "keywords", "text"),
    [
        ("MiniGrid-Empty-8x8-v0", {"agent_view_size": 4}, "odd number from 3 to 63, got 4"),
        ("MiniGrid-Empty-8x8-v0", {"agent_start_pos": (0, 1)}, "within the walls"),
        ("MiniGrid-Empty-8x8-v0", {"sise": 5}, "size"),
        ("MiniGrid-LavaCrossingS9N1-v0", {"size": 8}, "an odd number"),
        ("MiniGrid-LavaCrossingS9N1-v0", {"obstacle_type": "water"}, '"lava" or "wall"'),
        ("MiniGrid-DoorKey-8x8-v0", {"max_steps": 0}, "`max_steps` must be positive"),
        ("MiniGrid-DoorKey-8x8-v0", {"observation": "ful"}, r'"full", .* or only.*got \["ful"\]'),
        ("MiniGrid-DoorKey-8x8-v0", {"observation": ["image", "full"]}, '"symbolic", then one'),
        ("MiniGrid-DoorKey-8x8-v0", {"observation": ["full", "rgb"]}, '"full", "rgb"'),
        ("MiniGrid-DoorKey-8x8-v0", {"observation": 3}, "a wrapper or a list of names"),
        ("MiniGrid-DoorKey-8x8-v0", {"observation": ["symbolic", "flat"]}, "without"),
        ("MiniGrid-DoorKey-8x8-v0", {"observation_tile_size": 0}, "from 1 to 1,024, got 0"),
        ("MiniGrid-DoorKey-8x8-v0", {"maxStrLen": -1}, "not negative, got -1"),
        ("BabyAI-OpenDoor-v0", {"select_by": "name"}, '"color", "loc" or None'),
        ("BabyAI-OpenDoorsOrderN2-v0", {"num_doors": 5}, "from 2 to 4, got 5"),
    ],
    ids=str,
)
def test_keywords_that_no_level_has_are_refused(env_id, keywords, text):
    with pytest.raises((TypeError, ValueError), match=text):
        cartwheel.make_vec(f"cartwheel_minigrid/{env_id}", 2, **keywords)
