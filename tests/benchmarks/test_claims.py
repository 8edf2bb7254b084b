"""A claim holds if the measured ratio, or the extra time, keeps its bound."""

import pytest

from benchmarks.harness.claim import Claim, OverheadClaim
from cartwheel.bench.contenders import Contender
from cartwheel.bench.race import Measurement

RATES = {
    "cartwheel native": [4000.0, 4000.0, 5000.0],
    "native ceiling": [5000.0, 8000.0, 10_000.0],
}
MEASUREMENT = Measurement(4, RATES)


def contender(name):
    return Contender(name, lambda _env_fns: pytest.fail("a line needs no race"))


@pytest.mark.parametrize(("bound", "holds"), [(0.5, "holds"), (0.51, "MISSED")])
def test_a_claim_holds_at_its_bound(bound, holds):
    claim = Claim(contender("cartwheel native"), contender("native ceiling"), bound)
    assert claim.result_line(MEASUREMENT).split()[-4:] == ["0.50", "≥", f"{bound}", holds]


@pytest.mark.parametrize(("bound_us", "holds"), [(501, "holds"), (499, "MISSED")])
def test_an_overhead_is_the_extra_time_per_batch(bound_us, holds):
    claim = OverheadClaim(contender("cartwheel native"), contender("native ceiling"), bound_us)
    measurement = Measurement(4, {"cartwheel native": [4000.0], "native ceiling": [8000.0]})
    line = claim.result_line(measurement).split()
    assert line[-5:] == ["+500.00µs", "≤", f"{bound_us}", "µs", holds]
