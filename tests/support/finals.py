"""Dense final observations as expected: from final observations that are objects."""

from copy import deepcopy

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array, iterate


def dense(envs, result):
    """The result of a step of ``envs`` with dense final observations, from one with objects."""
    observations, rewards, terminations, truncations, infos = deepcopy(result)
    over = terminations | truncations
    rows = list(iterate(envs.observation_space, observations))
    for row in np.flatnonzero(over):
        rows[row] = infos["final_obs"][row]
    space = envs.single_observation_space
    finals = concatenate(space, rows, create_empty_array(space, len(rows)))
    infos |= {"final_obs": finals, "_final_obs": over, "_final_info": over.copy()}
    infos.setdefault("final_info", {})
    return observations, rewards, terminations, truncations, infos
