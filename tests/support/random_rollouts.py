"""Arrays of a small random rollout."""

import numpy as np

STEPS, ENVS = 6, 4


def rollout(steps=STEPS, num_envs=ENVS, dtype=np.float64, seed=0):
    """Arrays of a rollout by argument name."""
    rng = np.random.default_rng(seed)
    floats = ("rewards", "values", "next_values")
    arrays = {name: rng.normal(size=(steps, num_envs)).astype(dtype) for name in floats}
    arrays["ratios"] = rng.lognormal(size=(steps, num_envs)).astype(dtype)
    arrays["terminated"] = rng.random((steps, num_envs)) < 0.2
    arrays["truncated"] = rng.random((steps, num_envs)) < 0.2
    arrays["valid"] = rng.random((steps, num_envs)) < 0.8
    return arrays
