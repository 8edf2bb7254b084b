"""Runs the tests of trainers for their own vector environments, with cartwheel's in their place.

``python -m tools.trainers_tests agilerl CHECKOUT`` needs AgileRL, which ``make test-trainers``
installs in ``.venv-agilerl``, and a clone of https://github.com/AgileRL/AgileRL. ``torchrl`` needs
``.venv-torch`` and a clone of https://github.com/pytorch/rl; ours has one row there. Clones are not
changed. Options of pytest may follow. Tests that cannot run are skipped, each with its reason.
"""

import importlib
import os
import pkgutil
import re
import sys
from pathlib import Path

import pytest

_PARTS = "of the pipes, states and shared arrays that AgileRL's class is made of"
#: Tests of AgileRL, by their class or name, that ask for something other than an interface.
AGILERL = {
    "test_create_async_pz_vector_env": _PARTS,
    "test_get_observations_no_copy": "of `copy=False`: arrays are never overwritten",
    "test_env_order_preserved": _PARTS,
    "test_async_vector_subenv_init_error": "an environment that cannot be made is an error at once",
    "test_reset_async_exception": _PARTS,
    "test_reset_wait_exception": _PARTS,
    "test_step_async_exception": _PARTS,
    "test_call_async_exception": _PARTS,
    "test_set_attr_exception": _PARTS,
    "TestAsyncPettingZooVecEnvCloseExtras": _PARTS,
    "TestAsyncPettingZooVecEnvPollPipeEnvs": _PARTS,
    "TestAsyncPettingZooVecEnvAssertIsRunning": _PARTS,
    "test_step_wait_timeout_async_pz_vector_env": _PARTS,
    "TestAsyncPettingZooVecEnvCallWait": _PARTS,
    "TestAsyncPettingZooVecEnvAddInfo": "of a method that merges infos",
    "TestAsyncWorker": "of AgileRL's function of worker processes",
    "TestObservations": _PARTS,
    "test_delete_async_pz_vec_env": "the processes of an environment that is closed are closed",
}
#: TorchRL's words for agents that ended before others.
DEAD_AGENTS = "Dead agents found in the environment, you need to set use_mask=True to allow this."
#: Tests of TorchRL.
TORCHRL = {
    "TestSmacv2": "of another environment",
    "TestMeltingpot": "of another environment",
    "test_vec_env": "of an environment in each process of TorchRL; ours has rows instead",
    "test_reset_parallel_env": "of an environment in each process of TorchRL",
}


class Replaced:
    """A plugin of pytest that skips tests."""

    def __init__(self, skipped):
        self.skipped = skipped

    def pytest_collection_modifyitems(self, items):
        unknown = set(self.skipped)
        for item in items:
            names = {item.originalname, item.cls.__name__ if item.cls else ""}
            unknown -= names
            for name in names & self.skipped.keys():
                item.add_marker(pytest.mark.skip(reason=self.skipped[name]))
        if unknown:
            raise pytest.UsageError(f"the trainer has no tests {sorted(unknown)} any more")


def agilerl():
    """Puts our class into AgileRL's modules; returns the file of tests and those to skip."""
    ours = importlib.import_module("cartwheel.agilerl").CartwheelPettingZooVecEnv
    for name in ("agilerl.vector", "agilerl.vector.pz_async_vec_env"):
        importlib.import_module(name).AsyncPettingZooVecEnv = ours
    return "tests/test_vector/test_vector.py", AGILERL


def torchrl():
    """Puts our environment into TorchRL's module; returns the file of tests and those to skip."""
    pettingzoo = importlib.import_module("torchrl.envs.libs.pettingzoo")
    pettingzoo.PettingZooWrapper, pettingzoo.PettingZooEnv = rows_of_torchrl()
    return "test/libs/test_multiagent.py", TORCHRL


def row_class(torchrl):
    """Returns a class with the interface of TorchRL's, which is imported where it is needed."""

    class Row(torchrl.EnvBase):
        """The only row of an environment of ours, without the dimension of rows."""

        def __init__(self, env, seed):
            super().__init__(batch_size=[])
            self.rows, self.group_map, self._env = env, env.group_map, env._envs.envs[0]
            self.has_action_mask = {name: env._masks_in(name) for name in env.group_map}
            for kind in ("observation", "action", "reward", "done"):
                setattr(self, f"{kind}_spec", getattr(env, f"full_{kind}_spec")[0])
            if seed is not None:
                self.set_seed(seed)

        def _reset(self, tensordict=None, **keywords):
            if tensordict is not None:
                tensordict = tensordict.unsqueeze(0)
            return self.rows._reset(tensordict, **keywords)[0]

        def _step(self, tensordict):
            try:
                return self.rows._step(tensordict.unsqueeze(0))[0]
            except ValueError as error:
                if "pass use_mask=True" in str(error):
                    error.args = (DEAD_AGENTS,)  # a test asks for TorchRL's words
                raise

        def _set_seed(self, seed):
            self.rows.set_seed(seed)

        def close(self, *, raise_if_closed=True):
            self.rows.close(raise_if_closed=raise_if_closed)
            super().close(raise_if_closed=raise_if_closed)

    return Row


def rows_of_torchrl():
    """Returns functions with the signatures of TorchRL's classes."""
    torchrl, ours = (
        importlib.import_module(name) for name in ("torchrl.envs", "cartwheel.torchrl")
    )
    make_row = row_class(torchrl)

    def wrapper(
        env, *, return_state=False, group_map=None, seed=None, done_on_any=None, **keywords
    ):
        if done_on_any is None:
            done_on_any = not hasattr(env, "agent_iter")
        if isinstance(group_map, torchrl.MarlGroupMapType):
            group_map = group_map.get_group_map(env.possible_agents)
        rows = ours.CartwheelAgentsEnv(
            [lambda: env],
            group_map=group_map,
            done_on_any=done_on_any,
            executor="inline",
            state=return_state,
            **keywords,
        )
        return make_row(rows, seed)

    def named(task, parallel, **keywords):
        own = {"return_state", "group_map", "use_mask", "categorical_actions", "seed"}
        own.add("done_on_any")
        more = {name: keywords.pop(name) for name in keywords.keys() - own}
        try:
            module = _module_of(task)
            env = (module.parallel_env if parallel else module.env)(**more)
        except ImportError as error:
            pytest.skip(f"{task} is not installed: {error}")
        return wrapper(env, **keywords)

    return wrapper, named


def _module_of(task):
    """The module of an environment of PettingZoo or MPE2, of any version."""
    for name in ("mpe2", *(f"pettingzoo.{kind}" for kind in ("butterfly", "classic", "sisl"))):
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            if re.fullmatch(rf"{name}.{re.sub('[0-9]+$', '', task)}[0-9]+", module.name):
                return importlib.import_module(module.name)
    raise ImportError(f"neither PettingZoo nor MPE2 has {task}")


TRAINERS = {"agilerl": agilerl, "torchrl": torchrl}


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in TRAINERS:
        sys.exit(
            f"usage: python -m tools.trainers_tests {{{','.join(TRAINERS)}}} CHECKOUT [options]"
        )
    trainer, checkout, *options = sys.argv[1:]
    top = Path(checkout).resolve()
    file, skipped = TRAINERS[trainer]()
    if not (top / file).is_file():
        sys.exit(f"{checkout} has no {file}: it must be a clone of the repository of {trainer}")
    os.chdir(top)
    sys.path = [
        str(top),
        *(path for path in sys.path if Path(path).resolve() != Path(__file__).parents[1]),
    ]
    plain = ["--noconftest", "-c", os.devnull, f"--rootdir={top}", "-p", "no:cacheprovider"]
    sys.exit(pytest.main([*plain, "-rs", file, *options], plugins=[Replaced(skipped)]))


if __name__ == "__main__":
    main()
