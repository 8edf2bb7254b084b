"""The example of a robot of one's own learns."""

import pytest

from examples.own_robot import LIMIT, train


@pytest.mark.slow
def test_the_pole_is_balanced_after_a_few_updates():
    means = train(updates=10)
    assert means[0] < 0.3 * LIMIT
    assert means[-1] > 3 * means[0]
