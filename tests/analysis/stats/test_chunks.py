import numpy as np
import pytest

from analysis.stats.chunks import in_chunks
from study.errors import StudyError


def draw(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(n)


def test_two_processes_give_the_numbers_of_one():
    one = np.concatenate(in_chunks(draw, 23, seed=5, size=4))
    two = np.concatenate(in_chunks(draw, 23, seed=5, size=4, jobs=2))
    assert len(one) == 23
    np.testing.assert_array_equal(one, two)


def test_chunks_do_not_share_their_random_numbers():
    values = np.concatenate(in_chunks(draw, 100, seed=5, size=10))
    assert len(np.unique(values)) == 100


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"n": 0}, "at least 1"),
        ({"n": 1, "backend": "spark"}, "unknown"),
        ({"n": 1, "backend": "dask"}, "address"),
    ],
)
def test_what_cannot_run_is_refused(options, reason):
    if options.get("backend") == "dask":
        pytest.importorskip("distributed")
    with pytest.raises(StudyError, match=reason):
        in_chunks(draw, seed=1, **options)


@pytest.mark.filterwarnings("ignore")
def test_a_dask_cluster_of_two_processes_gives_the_same_numbers():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = {"jobs": -1, "backend": "dask", "scheduler": cluster.scheduler_address}
        spread = np.concatenate(in_chunks(draw, 23, seed=5, size=4, **there))
    np.testing.assert_array_equal(np.concatenate(in_chunks(draw, 23, seed=5, size=4)), spread)
