"""How a number is written. The only place that rounds."""

import math
from collections.abc import Sequence

MISSING = "—"
_SMALLEST_P = 0.001
_MINUS = "−"


def number(value: float | None, digits: int = 2) -> str:
    """A rating, a difference, an agreement: fixed decimals, never a negative zero.

    >>> number(0.714), number(-0.001), number(None)
    ('0.71', '0.00', '—')
    """
    if _absent(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{_MINUS}∞"
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", _MINUS)


def printed(value: float, digits: int = 2) -> float:
    """The number that a reader of the print has.

    >>> printed(4.8431)
    4.84
    """
    return float(f"{value:.{digits}f}")


def estimate(value: float | None, low: float | None, high: float | None, digits: int = 2) -> str:
    """An estimate with its interval, all to the same digits.

    >>> estimate(0.714, 0.423, 0.878)
    '0.71 [0.42, 0.88]'
    """
    if _absent(value):
        return MISSING
    if _absent(low) and _absent(high):
        return number(value, digits)
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def p_value(p: float | None) -> str:
    """
    >>> p_value(0.0124), p_value(1e-9)
    ('0.012', '< 0.001')
    """
    if _absent(p):
        return MISSING
    return f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.3f}"


def df(value: float | None) -> str:
    """Degrees of freedom: one decimal below 100, whole above.

    >>> df(16.24), df(5891.7), df(float("inf"))
    ('16.2', '5892', '∞')
    """
    if _absent(value) or math.isinf(value):
        return number(value)
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}"


def share(part: int, whole: int) -> str:
    """A count with its percentage.

    >>> share(12, 40), share(0, 0)
    ('12/40 (30%)', '0/0')
    """
    return f"{part:,}/{whole:,} ({percent(part / whole)})" if whole else f"{part}/{whole}"


def percent(ratio: float | None) -> str:
    """A share of one as a percentage, with a decimal near none and near all.

    >>> percent(0.3), percent(0.0042), percent(0.0), percent(0.9972), percent(1.0)
    ('30%', '0.4%', '0%', '99.7%', '100%')
    """
    if _absent(ratio):
        return MISSING
    digits = 1 if 0 < abs(ratio) < 0.0995 or 0.985 < ratio < 1 else 0
    return f"{100 * ratio:.{digits}f}%"


def count(value: int | None) -> str:
    return MISSING if _absent(value) else f"{int(value):,}"


def several(names: Sequence[str], shown: int = 6) -> str:
    """Names in a row, the tail counted where it is long."""
    listed = [str(n) for n in names]
    if len(listed) <= shown:
        return ", ".join(listed)
    return f"{', '.join(listed[:shown])} and {len(listed) - shown} more"


def _absent(value: float | None) -> bool:
    return value is None or value != value
