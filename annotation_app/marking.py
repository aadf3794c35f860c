"""How well somebody rates the training's anchors: agreement, error and bias against the experts' consensus."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from study.records import Metric
from study.store.training import Anchor, Attempt

KAPPA, ERROR, BIAS, WITHIN = 0.6, 0.6, 0.5, 0.8  # gate: (kappa or error) and bias and share within one point
TESTS = 3  # a test and two retries; after that the coordinator decides


@dataclass(frozen=True)
class Marks:
    """Weighted kappa, mean absolute error, mean bias (rater minus consensus), and share within one point.

    All in points of a five-point scale; other scales are stretched to it.
    """

    kappa: float
    error: float
    bias: float
    within: float
    n: int

    @property
    def passed(self) -> bool:
        close = self.kappa >= KAPPA or self.error <= ERROR
        return close and abs(self.bias) <= BIAS and self.within >= WITHIN

    @property
    def tendency(self) -> str:
        """In one word what a rater who did not pass should mind: high, low or wide."""
        if abs(self.bias) > BIAS:
            return "high" if self.bias > 0 else "low"
        return "wide"


def form_of(attempt: int, forms: Sequence[str]) -> str:
    """The first form is for practice, the others in turn for the tests."""
    tests = forms[1:] or forms
    return forms[0] if attempt == 1 else tests[(attempt - 2) % len(tests)]


def marks(given: Sequence[float], consensus: Sequence[float]) -> Marks:
    """How answers on five-point scales agree with the consensus.

    Kappa is quadratically weighted: one minus the squared disagreement found over that expected if the two
    were independent. With no spread on either side it is 1 for identical answers and 0 otherwise.

    References
    ----------
    Cohen (1968), Psychological Bulletin 70:213
    """
    n = len(given)
    pairs = list(zip(given, consensus, strict=True))
    found = sum((g - c) ** 2 for g, c in pairs) / n
    expected = sum((g - c) ** 2 for g in given for c in consensus) / n**2
    kappa = 1 - found / expected if expected else float(found == 0)
    return Marks(
        kappa=kappa,
        error=sum(abs(g - c) for g, c in pairs) / n,
        bias=sum(g - c for g, c in pairs) / n,
        within=sum(abs(g - c) <= 1 for g, c in pairs) / n,
        n=n,
    )


def marked(
    number: int,
    form: str,
    answers: Mapping[tuple[int, str], float],
    anchors: Sequence[Anchor],
    metrics: Sequence[Metric],
) -> Attempt:
    """An attempt with its marks; the first is practice, which nobody fails."""
    scales = {m.metric_id: m for m in metrics}
    given, consensus = [], []
    for anchor in anchors:
        if anchor.form == form:
            for metric_id, value in anchor.consensus.items():
                given.append(_stretched(answers[anchor.number, metric_id], scales[metric_id]))
                consensus.append(_stretched(value, scales[metric_id]))
    found = marks(given, consensus)
    stage = "pre" if number == 1 else "post"
    result = asdict(found) | {"tendency": found.tendency}
    return Attempt(number, form, stage, result, stage == "post" and found.passed)


def _stretched(value: float, metric: Metric) -> float:
    return 1 + 4 * (value - metric.low) / (metric.high - metric.low)
