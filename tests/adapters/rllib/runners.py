"""Environment runners of RLlib in the process of the test, and what they sample."""

import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner


def single(env, mode, num_envs, env_config=None):
    """A runner of environments with one agent."""
    config = (
        PPOConfig()
        .environment(env, env_config=env_config or {})
        .env_runners(
            num_env_runners=0, num_envs_per_env_runner=num_envs, gym_env_vectorize_mode=mode
        )
        .debugging(seed=3)
    )
    return SingleAgentEnvRunner(config=config)


def multi(runner_class, env, num_envs, *, check=True, env_config=None, **fault_tolerance):
    """A runner of environments with several agents."""
    config = (
        PPOConfig()
        .environment(env, env_config=env_config or {}, disable_env_checking=not check)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=num_envs)
        .multi_agent(policies={"all"}, policy_mapping_fn=lambda *_, **__: "all")
        .fault_tolerance(**fault_tolerance)
        .debugging(seed=3)
    )
    return runner_class(config=config)


def sampled(runner, num_timesteps=40, fragments=3):
    """The episodes, and parts of episodes, of some calls of ``sample``; closes the runner."""
    try:
        found = [runner.sample(num_timesteps=num_timesteps) for _ in range(fragments)]
    finally:
        runner.stop()
    return [[contents(episode) for episode in fragment] for fragment in found]


def contents(episode):
    """The arrays, infos and flags of an episode, of each agent if there are several."""
    agents = getattr(episode, "agent_episodes", None)
    if agents is not None:
        parts = {agent: contents(part) for agent, part in agents.items()}
        return parts, episode.is_terminated, episode.is_truncated
    return (
        np.asarray(episode.get_observations()),
        np.asarray(episode.get_actions()),
        np.asarray(episode.get_rewards()),
        list(episode.get_infos()),
        episode.is_terminated,
        episode.is_truncated,
    )
