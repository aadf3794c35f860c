"""How fast power is: a thousand studies of the published design."""

from time import perf_counter, process_time

import pytest

from analysis.stats import power_simulation as ps
from analysis.stats.power import Size, Variances, power_grid

pytestmark = pytest.mark.benchmark_only
SIZE = Size(sources=5, prompts=70, raters=17)
SPREAD = Variances(source_prompt=0.16, source_rater=0.01, residual=0.4225, prompt=0.0365, rater=0.02)


def test_a_thousand_complete_studies_take_under_a_second():
    start = process_time()
    ps.simulate_balanced(SPREAD, SIZE, [0.2], n_sim=1000)
    taken = process_time() - start
    start = process_time()
    power_grid(SPREAD, 5, range(20, 220, 20), range(3, 23, 2), [0.2])
    print(f"\n1,000 complete studies {taken:.2f} CPU s; a grid of 100 designs {process_time() - start:.2f} CPU s")
    assert taken < 1


def test_a_thousand_refits_take_under_a_minute_on_two_cores():
    formula = "score ~ source + (1|rater) + (1|prompt) + (1|source:rater) + (1|source:prompt)"
    start = perf_counter()
    found = ps.simulate_refits(
        ps.crossed_frame(SIZE), formula, {"source2": 1}, coefficients={"source2": 0.2},
        variances={"rater": 0.02, "prompt": 0.0365, "source:rater": 0.01, "source:prompt": 0.16},
        residual=0.4225, n_sim=1000, jobs=2,
    )  # fmt: skip
    taken = perf_counter() - start
    print(f"\n1,000 refits of 5,950 rows, two processes: {taken:.1f} s; power {found.power[0]:.3f}")
    assert taken < 60
