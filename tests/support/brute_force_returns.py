"""Return estimators by their definitions: sums over an episode's transitions, no recursion."""

from math import prod

import numpy as np


class Run:
    """Consecutive transitions of one episode in a rollout.

    Rewards and states come from the episode itself, not from the rollout's arrays. ``kept`` is the
    factor, 0 or 1, of the value after each transition.
    """

    def __init__(self, rollout, run, bootstrap, *, value="value", after="value"):
        episode = run[0][1][0]
        steps = [k for _, (_, _, k) in run]
        now = [episode.states[k] for k in steps]
        then = [episode.states[k + 1] for k in steps]
        table = rollout.table
        self.rewards = [episode.rewards[k] for k in steps]
        self.values = [table[value][state] for state in now]
        self.next_values = [table[after][state] for state in then]
        self.ratios, self.gammas, self.lams = (
            [table[kind][state] for state in now] for kind in ("ratio", "gamma", "lam")
        )
        self.kept = [1] * len(run)
        if steps[-1] == len(episode) - 1:
            kept = {"truncated": not episode.terminated, "always": 1, "never": 0}
            self.kept[-1] = kept[bootstrap]

    def __len__(self):
        return len(self.rewards)

    def delta(self, i):
        after = self.kept[i] * self.next_values[i]
        return self.rewards[i] + self.gammas[i] * after - self.values[i]

    def n_step(self, i, n):
        """The reward sum, the discount of the value after it, the target, the number of steps."""
        m = min(n, len(self) - i)
        rewards = sum(prod(self.gammas[i : i + k]) * self.rewards[i + k] for k in range(m))
        discount = prod(self.gammas[i : i + m]) * self.kept[i + m - 1]
        return rewards, discount, rewards + discount * self.next_values[i + m - 1], m

    def gae(self, i):
        return sum(
            prod(self.gammas[i:j]) * prod(self.lams[i:j]) * self.delta(j)
            for j in range(i, len(self))
        )

    def lambda_return(self, i):
        longest = len(self) - i
        mixed = sum(
            prod(self.lams[i : i + n - 1]) * (1 - self.lams[i + n - 1]) * self.n_step(i, n)[2]
            for n in range(1, longest)
        )
        return mixed + prod(self.lams[i : i + longest - 1]) * self.n_step(i, longest)[2]

    def gae_normalized(self, i):
        weights = [prod(self.lams[i : i + n]) for n in range(len(self) - i)]
        returns = [self.n_step(i, n + 1)[2] for n in range(len(weights))]
        return np.dot(weights, returns) / sum(weights) - self.values[i]

    def vtrace(self, i, rho_bar, c_bar):
        traces = [lam * min(c_bar, w) for lam, w in zip(self.lams, self.ratios, strict=True)]
        return self.values[i] + sum(
            prod(self.gammas[i:j])
            * prod(traces[i:j])
            * min(rho_bar, self.ratios[j])
            * self.delta(j)
            for j in range(i, len(self))
        )

    def vtrace_advantage(self, i, rho_bar, c_bar, pg_rho_bar):
        after = self.kept[i] * self.next_values[i]
        if i + 1 < len(self):
            after *= 1 - self.lams[i]
            after += self.lams[i] * self.vtrace(i + 1, rho_bar, c_bar)
        return min(pg_rho_bar, self.ratios[i]) * (
            self.rewards[i] + self.gammas[i] * after - self.values[i]
        )

    def retrace(self, i, c_bar):
        traces = [lam * min(c_bar, w) for lam, w in zip(self.lams, self.ratios, strict=True)]
        return self.values[i] + sum(
            prod(self.gammas[i:j]) * prod(traces[i + 1 : j + 1]) * self.delta(j)
            for j in range(i, len(self))
        )


def expected(rollout, bootstrap, of, **kinds):
    """``of(run, i)`` for each row of a rollout; NaN in stale rows."""
    result = np.full(rollout.rewards.shape, np.nan)
    for env, steps in rollout.runs():
        run = Run(rollout, steps, bootstrap, **kinds)
        for i, (t, _) in enumerate(steps):
            result[t, env] = of(run, i)
    return result
