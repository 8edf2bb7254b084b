"""Normalizers by hand: every number ever counted is kept, and moments are computed from all."""

import numpy as np

from cartwheel.wrappers.base import VectorWrapper
from cartwheel.wrappers.batch import FAILED, INCOMPLETE, RESET, TRANSITION
from tests.support.wrapping import N, S

#: A result is rounded to ``float32`` once (6e-8); beyond that, the order of additions differs.
CLOSE = {"rtol": 2e-7, "atol": 1e-9}


class Witness(VectorWrapper):
    """Keeps copies of the last batch, before other wrappers see it."""

    def transform(self, batch):
        finals = batch.finals(self.single_observation_space)
        copies = ("kinds", "observations", "rewards", "terminations", "truncations")
        self.batch = {name: np.copy(getattr(batch, name)) for name in copies}
        self.batch["rows"] = batch.rows.copy()
        self.batch["finals"] = {}
        if finals is not None:
            pairs = zip(finals.places.tolist(), finals.observations.copy(), strict=True)
            self.batch["finals"] = dict(pairs)


def moments(numbers, shape=()):
    """Mean, variance and count of all numbers and of the row with which Gymnasium begins."""
    numbers = np.array(numbers, np.float64).reshape(len(numbers), *shape)
    count = 1e-4 + len(numbers)
    mean = numbers.sum(0) / count
    return mean, (((numbers - mean) ** 2).sum(0) + 1e-4 * (1 + mean**2)) / count, count


class Observations:
    """The results of ``NormalizeObservation``, from the batches of a witness."""

    def __init__(self, witness, epsilon):
        self.witness, self.epsilon = witness, epsilon
        self.mode = witness.metadata["autoreset_mode"]
        self.counted, self.shown, self.known = [], {}, 0
        self.shape = witness.single_observation_space.shape

    def emit(self, observation):
        if self.known != len(self.counted):
            self.known = len(self.counted)
            self.mean, self.variance, _ = moments(self.counted, self.shape)
        return (observation - self.mean) / np.sqrt(self.variance + self.epsilon)

    def check(self, result, _rows):
        """Fails unless the result of a call is that of the witness's last batch."""
        batch, shown, infos = self.witness.batch, result[0], result[-1]
        rows, kinds, raw = batch["rows"], batch["kinds"], batch["observations"]
        assert shown.dtype == np.float32
        is_reset = batch["rewards"].dtype == object
        over = np.zeros(len(rows), bool)
        if self.mode == S and not is_reset:
            over = batch["terminations"] | batch["truncations"]
        stepped = np.isin(kinds, (TRANSITION, INCOMPLETE))
        begun = (kinds == RESET) | over
        now = stepped & ~over | (begun if self.mode == N else False)
        for place in range(len(rows)):
            if now[place]:
                self.counted.append(raw[place])
            elif over[place] and stepped[place]:
                self.counted.append(batch["finals"][place])
        for place in range(len(rows)):
            if now[place]:
                np.testing.assert_allclose(shown[place], self.emit(raw[place]), **CLOSE)
            elif over[place] and kinds[place] == FAILED:
                assert infos["final_obs"][place].tobytes() == self.shown[rows[place]]
            elif over[place]:
                final = infos["final_obs"][place]
                assert final.dtype == np.float32
                np.testing.assert_allclose(final, self.emit(batch["finals"][place]), **CLOSE)
        later = begun & ~now
        self.counted.extend(raw[later])
        for place in range(len(rows)):
            if later[place]:
                np.testing.assert_allclose(shown[place], self.emit(raw[place]), **CLOSE)
            elif not now[place]:
                assert shown[place].tobytes() == self.shown[rows[place]], "not as it was shown"
            self.shown[rows[place]] = shown[place].tobytes()


class Rewards:
    """The results of ``NormalizeReward``, from the batches of a witness."""

    def __init__(self, witness, gamma, epsilon):
        self.witness, self.gamma, self.epsilon = witness, gamma, epsilon
        self.counted, self.returns = [], np.zeros(witness.num_envs)

    def check(self, result, _rows):
        """Fails unless the result of a call is that of the witness's last batch."""
        batch = self.witness.batch
        rows, kinds, raw = batch["rows"], batch["kinds"], batch["rewards"]
        begun = kinds == RESET
        if raw.dtype == object:
            self.returns[rows[begun]] = 0
            return
        for row, kind, reward in zip(rows, kinds, raw, strict=True):
            self.returns[row] = self.gamma * self.returns[row] + reward if kind == TRANSITION else 0
            if kind == TRANSITION:
                self.counted.append(self.returns[row])
        variance = moments(self.counted)[1]
        stepped = np.isin(kinds, (TRANSITION, INCOMPLETE))
        expected = np.where(stepped, raw / np.sqrt(variance + self.epsilon), 0.0)
        np.testing.assert_allclose(result[1], expected, rtol=1e-12)
        self.returns[rows[batch["terminations"] | batch["truncations"]]] = 0
