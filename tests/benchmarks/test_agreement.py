"""How fast reliability is, as ratios in one run. `make bench` prints them."""

from time import process_time

import krippendorff
import numpy as np
import pandas as pd
import pytest

from analysis.stats.agreement_intervals import agreement_intervals
from analysis.stats.icc_bootstrap import icc_bootstrap

pytestmark = pytest.mark.benchmark_only


@pytest.fixture(scope="module")
def ratings() -> np.ndarray:
    """Simulated: 350 responses by 17 raters on a scale of five."""
    rng = np.random.default_rng(1)
    latent = rng.normal(3.7, 0.6, (350, 1)) + rng.normal(0, 0.4, 17) + rng.normal(0, 0.8, (350, 17))
    return np.clip(np.rint(latent), 1, 5)


def fastest(call, times: int = 5) -> float:
    """CPU seconds of the quickest of several calls."""
    seconds = []
    for _ in range(times):
        start = process_time()
        call()
        seconds.append(process_time() - start)
    return min(seconds)


def test_alphas_bootstrap_is_25_times_faster_than_a_loop_over_krippendorff(ratings):
    rng = np.random.default_rng(2)

    def loop():
        for _ in range(1000):
            drawn = ratings[rng.integers(0, 350, 350)]
            krippendorff.alpha(drawn.T, level_of_measurement="ordinal")

    theirs = fastest(loop, times=2)
    ours = fastest(lambda: agreement_intervals(ratings, over="items", n_boot=1000))
    both = fastest(lambda: agreement_intervals(ratings, over="both", n_boot=1000))
    print(
        f"\nalpha, 1,000 bootstraps: krippendorff {theirs:.3f} s; items {ours:.4f} s ({theirs / ours:.0f}x); "
        f"items and raters {both:.4f} s ({theirs / both:.1f}x), percent agreement and AC2 included"
    )
    assert theirs > 25 * ours


# pingouin calls pandas in a way that pandas 3.1 warns of.
@pytest.mark.filterwarnings("ignore")
def test_iccs_bootstrap_is_1000_times_faster_than_a_loop_over_pingouin(ratings):
    pingouin = pytest.importorskip("pingouin")
    item, rater = (part.ravel() for part in np.indices(ratings.shape))
    long = pd.DataFrame({"item": item, "rater": rater, "score": ratings.ravel()})

    def once():
        pingouin.intraclass_corr(long, targets="item", raters="rater", ratings="score")

    theirs = 1000 * fastest(once, times=5)
    ours = fastest(lambda: icc_bootstrap(ratings, n_boot=1000))
    print(f"\nICC, 1,000 bootstraps: 1,000 x pingouin {theirs:.1f} s; ours {ours:.4f} s ({theirs / ours:.0f}x)")
    assert theirs > 1000 * ours
