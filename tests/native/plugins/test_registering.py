"""Plugins are accepted once, or refused with what is wrong and what to do."""

import datetime as dt
import importlib
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import cartwheel
from cartwheel._cartwheel import native_envs
from cartwheel._cli.envs import page, unknown

ROOT = Path(__file__).parents[3]
IDS = [
    "test_plugin/Corridor-v0",
    "test_plugin/LongCorridor-v0",
    "test_plugin/Chase-v0",
    "test_plugin/Effort-v0",
    "test_plugin/Faulty-v0",
    "test_plugin/Misfit-v0",
    "test_plugin/Relay-v0",
    "test_plugin/Team-v0",
    "test_plugin/Teller-v0",
    "test_plugin/Unwritten-v0",
]


def known():
    return [env_id for env_id, *_ in native_envs()]


# Modules


def test_a_module_its_name_and_its_capsule_are_the_same_plugin(plugin):
    module = plugin._test_plugin
    before = known()
    for same in (module, module.__name__, module.__cartwheel__):
        assert cartwheel.register(same) == IDS
    assert known() == before


def test_a_plugin_leaves_the_gil_as_it_is(run_fresh):
    """A module that does not say that it needs no GIL would switch it on for the whole process."""
    program = """
        import sys, warnings
        warnings.simplefilter("error")
        has_gil = getattr(sys, "_is_gil_enabled", lambda: True)
        before = has_gil()
        import test_plugin
        print(before, has_gil())
    """
    has_gil = str(not sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert run_fresh(program).split() == [has_gil, has_gil]


def test_a_module_that_is_imported_once_more_is_the_same_plugin(plugin, monkeypatch):
    module, before = plugin._test_plugin, known()
    monkeypatch.setattr(plugin, "_test_plugin", module)  # imports replace it
    monkeypatch.delitem(sys.modules, module.__name__)
    again = importlib.import_module(module.__name__)
    assert again is not module
    assert (cartwheel.register(again), known()) == (IDS, before)


@pytest.mark.usefixtures("plugin")
def test_every_id_is_in_the_registry_with_its_limit_and_threshold():
    spec = gym.spec("test_plugin/Corridor-v0")
    assert (spec.max_episode_steps, spec.reward_threshold) == (20, 4.0)
    spec = gym.spec("test_plugin/LongCorridor-v0")
    assert (spec.max_episode_steps, spec.reward_threshold) == (None, None)
    assert set(IDS) <= gym.registry.keys() & set(known())


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (np, "and numpy has none"),
        ("json", "and json has none"),
        (3, "got 3"),
        (dt.datetime_CAPI, 'got <capsule object "datetime.datetime_CAPI" at 0x'),
    ],
    ids=["module", "name", "number", "capsule"],
)
def test_what_is_no_plugin_is_refused(given, got):
    with pytest.raises(TypeError, match=f"a capsule named 'cartwheel.plugin'.*, {got}"):
        cartwheel.register(given)


def test_a_module_that_does_not_exist_is_an_import_error():
    with pytest.raises(ModuleNotFoundError, match="no_such_game"):
        cartwheel.register("no_such_game")
    for name in ("", ".game"):  # `importlib` raises ValueError and TypeError
        with pytest.raises(ModuleNotFoundError, match=rf"'{name}' is not the full name of a mod"):
            cartwheel.make_vec(f"{name}:cartwheel/CartPole-v1", 1)
    with pytest.raises(ModuleNotFoundError, match=r"no_such_game.*registration via importing"):
        cartwheel.NativeVectorEnv("no_such_game:no_such_game/Maze-v0", 2)


def test_an_id_whose_plugin_is_not_loaded_names_both_ways_to_load_it():
    with pytest.raises(ValueError, match=r"as in 'game:game/Maze-v0', .*load_plugin\(path\)"):
        cartwheel.NativeVectorEnv("game/Maze-v0", 2)


# Libraries


@pytest.mark.parametrize(
    ("compiler", "flags", "name"),
    [("cc", ["-std=c11"], "c"), ("c++ -x c++", ["-std=c++20"], "cpp")],
    ids=["C", "C++"],
)
def test_a_library_in_c_is_loaded_from_its_file(compile_counter, compiler, flags, name):
    env_id = f"{name}/Counter-v0"
    library = compile_counter(compiler=compiler, flags=flags, ID=f'"{env_id}"')
    before = set(known())
    assert cartwheel.load_plugin(library) == [env_id]
    assert cartwheel.load_plugin(str(library)) == [env_id]
    assert set(known()) == before | {env_id}
    envs = gym.make_vec(env_id, 2)
    envs.reset(seed=1)
    for step in range(1, 4):
        observations, rewards, terminations, _, infos = envs.step(np.array([0, 1]))
        assert observations.tolist() == [[step], [step]]
        assert rewards.tolist() == [0, 1]
        assert terminations.tolist() == [step == 3] * 2
        assert infos["steps"].tolist() == [step] * 2
    envs.close()


def test_a_file_that_is_no_library_of_environments_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"there is no library '{tmp_path}/no.so'"):
        cartwheel.load_plugin(tmp_path / "no.so")
    (tmp_path / "text.so").write_text("text")
    with pytest.raises(ImportError, match=r"text.so cannot be loaded: .*`cc -shared -fPIC`$"):
        cartwheel.load_plugin(tmp_path / "text.so")
    with pytest.raises(ImportError, match=r"\.so has no symbol `cartwheel_plugin`: it must export"):
        cartwheel.load_plugin(cartwheel._cartwheel.__file__)


# Versions


BOTH = r"^plugin counter 1\.2\.3 "
REFUSED = {
    "an older major": (
        {"MAJOR": "CARTWHEEL_MAJOR-1"},
        r"was built for version 1\.3 of the interface, and this cartwheel has 2\.3: build the plu",
    ),
    "a newer major": (
        {"MAJOR": "CARTWHEEL_MAJOR+1"},
        r"was built for version 3\.3 of the interface, and this cartwheel has 2\.3: install a new",
    ),
    "a need of a newer minor": (
        {"MINOR": "CARTWHEEL_MINOR+1", "NEEDS_MINOR": "CARTWHEEL_MINOR+1"},
        r"needs version 2\.4 of the interface, and this cartwheel has 2\.3: install a newer cartwh",
    ),
    "a short plugin": (
        {"PLUGIN_SIZE": "offsetof(struct cartwheel_plugin,num_envs)"},
        r"has a table of \d+ bytes, which lacks its environments",
    ),
    "a short environment": (
        {"ENV_SIZE": "offsetof(struct cartwheel_env,run)"},
        r"has a table of \d+ bytes for an environment, .* needs at least \d+: build it against",
    ),
    "a null function": ({"RUN": "NULL"}, r"has no function run for counter/Counter-v0"),
    "no id": ({"ID": "NULL"}, r"has no id for one of its environments"),
    "no default options": (
        {"DEFAULT_OPTIONS": '"[]"'},
        r"has default options of counter/Counter-v0 that are not a JSON obj",
    ),
}


@pytest.mark.parametrize(("definitions", "text"), REFUSED.values(), ids=REFUSED)
def test_a_plugin_that_does_not_fit_is_refused_with_both_versions(
    compile_counter, definitions, text
):
    library = compile_counter(**definitions)
    before, registered = known(), set(gym.registry)
    with pytest.raises(ImportError, match=BOTH + text):
        cartwheel.load_plugin(library)
    assert (known(), set(gym.registry)) == (before, registered)


@pytest.mark.parametrize(
    "definitions",
    [
        {"MINOR": "CARTWHEEL_MINOR+1"},
        {"PLUGIN_SIZE": "sizeof(struct cartwheel_plugin)+8"},
        {"ENV_SIZE": "offsetof(struct cartwheel_env,reset_options_new)"},
        {"ENV_SIZE": "offsetof(struct cartwheel_env,row_save)"},
    ],
    ids=["a newer minor", "fields that came later", "no optional functions", "a few of them"],
)
def test_a_plugin_of_another_minor_version_works(compile_counter, definitions):
    """The host reads only fields that the plugin's size covers."""
    name = f"skew{abs(hash(str(definitions)))}/Counter-v0"
    (env_id,) = cartwheel.load_plugin(compile_counter(ID=f'"{name}"', **definitions))
    envs = cartwheel.NativeVectorEnv(env_id, 3)
    envs.reset(seed=1)
    assert envs.step(np.ones(3, int))[0].tolist() == [[1]] * 3
    with pytest.raises(ValueError, match="has no option 'speed' of a reset, and has none"):
        envs.reset(options={"speed": 3})
    envs.close()


def test_an_environment_that_cannot_draw_is_not_told_to_pass_a_render_mode(make_counter, counter):
    envs = make_counter(2)
    envs.reset(seed=1)
    expected = rf"render\(\) of {counter} does nothing: it cannot draw\."
    with pytest.warns(UserWarning, match=expected):
        assert envs.render() == (None, None)


@pytest.mark.usefixtures("plugin")
def test_the_page_of_an_environment_that_cannot_be_made_says_why_and_has_its_keywords():
    text = page("test_plugin/Faulty-v0", None)
    assert "cannot be made" not in text
    text = page("test_plugin/Misfit-v0", None)
    reason = "test_plugin/Misfit-v0: the observation type sees"
    assert f"cannot be made without keywords: {reason}" in text
    assert 'keywords: cartwheel.make_vec("test_plugin/Misfit-v0", num_envs, name=value)' in text
    assert "parameters" not in text
    with pytest.raises(TypeError, match="`color` is not a keyword of test_plugin/Misfit-v0"):
        cartwheel.NativeVectorEnv("test_plugin/Misfit-v0", 1, color=3)


def test_a_default_that_is_not_json_is_not_shown(compile_counter):
    options = r'"fault\tnone\tThe rule that is broken.\n"'
    library = compile_counter(ID='"undocumented/Counter-v0"', OPTIONS=options)
    (env_id,) = cartwheel.load_plugin(library)
    assert re.search(r"  fault  –  The rule that is broken\.", page(env_id, None))


def test_an_id_that_a_loaded_package_lacks_gets_those_that_it_has(counter):
    package = counter.partition("/")[0]
    assert f"; {package} has {counter}" in unknown(f"{package}/Maze-v7")


@pytest.mark.slow
def test_a_library_that_would_end_the_program_when_it_panics_is_not_compiled():
    command = ["cargo", "rustc", "--locked", "-p", "test-plugin", "--", "-Cpanic=abort"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert 'error: a plugin must unwind: remove `panic = "abort"` from the profile' in done.stderr


# Ids


def test_one_id_in_two_libraries_is_refused_naming_both(compile_counter):
    first, second = compile_counter(ID='"twice/A-v0"'), compile_counter(ID='"twice/A-v0"')
    cartwheel.load_plugin(first)
    with pytest.raises(
        ValueError, match=rf"{second} offers the environment twice/A-v0, which {first} "
    ):
        cartwheel.load_plugin(second)
    with pytest.raises(ValueError, match="twice/A-v0"):
        cartwheel.load_plugin(second)


def test_two_plugins_may_have_one_name(compile_counter):
    for env_id in ("one_name/A-v0", "one_name/B-v0"):
        assert cartwheel.load_plugin(compile_counter(ID=f'"{env_id}"')) == [env_id]


@pytest.mark.parametrize(
    ("env_id", "text"),
    [
        (
            "CartPole-v1",
            r'environment "CartPole-v1": an id has a namespace, as in my_game/CartPole-v1',
        ),
        ("Counter-v0", "an id has a namespace, as in my_game/Counter-v0"),
        ("Counter", "an id has a namespace, as in my_game/Counter-v0"),
        ("cartwheel/Counter-v0", "the namespace cartwheel/ is that of cartwheel itself"),
        ("a b/C-v0", "a namespace consists of letters, digits, and the signs"),
        ("a/C", r"a name ends with its version, as in a/C-v0"),
        ("a/C-v01", r"a name ends with its version, as in a/C-v0$"),
        ("a/C-v+1", r"a name ends with its version, as in a/C-v0$"),
        ("C-v01", "an id has a namespace, as in my_game/C-v0$"),
        ("a:b/C-v0", "a namespace consists of letters, digits, and the signs"),
        ("a.b/C-v0", "a namespace consists of letters, digits, and the signs _ -$"),
    ],
)
def test_ids_that_could_be_confused_are_refused(compile_counter, env_id, text):
    with pytest.raises(ValueError, match=text):
        cartwheel.load_plugin(compile_counter(ID=f'"{env_id}"'))
    assert env_id not in set(known()) - {"CartPole-v1"}


def test_a_namespace_may_begin_with_an_underscore(compile_counter):
    (env_id,) = cartwheel.load_plugin(compile_counter(ID='"_mine/Counter-v0"'))
    with cartwheel.make_vec(env_id, 2) as envs:
        assert envs.reset(seed=1)[0].tolist() == [[0], [0]]


def test_an_id_that_the_user_registered_keeps_its_entry(compile_counter):
    mine = "mine/Counter-v0"
    gym.register(mine, entry_point="gymnasium.envs.classic_control:CartPoleEnv")
    cartwheel.load_plugin(compile_counter(ID=f'"{mine}"'))
    assert gym.spec(mine).entry_point == "gymnasium.envs.classic_control:CartPoleEnv"
    envs = cartwheel.NativeVectorEnv(mine, 2)
    assert envs.env_id == mine
    envs.close()
