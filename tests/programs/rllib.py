"""Trains with RLlib's PPO in a session of Ray; environments are made in remote runners."""

import hashlib
import importlib

from tests.programs.registry import program, tell


@program
def train_with_rllib():
    """Two updates, by RLlib's own vectorization and by cartwheel's, of one agent and of two."""
    ray = importlib.import_module("ray")
    gym = importlib.import_module("gymnasium")
    cartwheel = importlib.import_module("cartwheel.rllib")
    agents = importlib.import_module("tests.adapters.rllib.agents")
    theirs = importlib.import_module("ray.rllib.env.multi_agent_env_runner").MultiAgentEnvRunner

    class Ours(cartwheel.AsyncMultiAgentEnvRunner):
        vector_kwargs = {"executor": "process", "num_workers": 2}  # noqa: RUF012 - a user's class

    gym.register(
        "OnlyHere-v0",
        entry_point="gymnasium.envs.classic_control.cartpole:CartPoleEnv",
        max_episode_steps=20,
    )
    ray.init(
        address="local",  # not a cluster that runs on this machine already
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=200_000_000,
        log_to_driver=False,
    )
    try:
        ray.tune.register_env("theirs", lambda _config: gym.make(gym.spec("CartPole-v1")))
        cartwheel.register("ours", "CartPole-v1", executor="process", num_workers=2)
        cartwheel.register("only here", "OnlyHere-v0", executor="process", num_workers=2)
        ray.tune.register_env("two poles", agents.two_poles)
        tell(
            one=[_trained("theirs", "sync"), _trained("ours", "vector_entry_point")],
            two=[_trained("two poles", "sync", runner) for runner in (theirs, Ours)],
            only_here=_trained("only here", "vector_entry_point"),
        )
    finally:
        ray.shutdown()


def _trained(env, mode, runner=None):
    """The figures of each update and the final weights, with one remote runner."""
    ppo = importlib.import_module("ray.rllib.algorithms.ppo")
    config = (
        ppo.PPOConfig()
        .environment(env)
        .env_runners(
            env_runner_cls=runner,
            num_env_runners=1,
            num_envs_per_env_runner=4,
            gym_env_vectorize_mode=mode,
            rollout_fragment_length=50,
        )
        .training(train_batch_size=200, minibatch_size=100, num_epochs=1)
        .debugging(seed=3)
    )
    if runner is not None:
        config.multi_agent(policies={"all"}, policy_mapping_fn=lambda *_, **__: "all")
    algorithm = config.build_algo()
    try:
        figures = [algorithm.train()["env_runners"] for _ in range(2)]
        weights = algorithm.get_module("all" if runner else "default_policy").state_dict()
        classes = algorithm.env_runner_group.foreach_env_runner(
            lambda each: type(each.env.unwrapped).__name__, local_env_runner=False
        )
    finally:
        algorithm.stop()
    names = ("episode_return_mean", "episode_len_max", "num_episodes")
    return {
        "class": classes,
        "figures": [{name: float(found[name]) for name in names} for found in figures],
        "weights": hashlib.sha256(
            b"".join(w.numpy().tobytes() for w in weights.values())
        ).hexdigest(),
    }
