"""Figures as a reader likes them: percent, spreads, bytes, durations, lists in words."""

from collections.abc import Iterable
from typing import Any

from calmfed.study.summary import Spread

DASH = "–"  # noqa: RUF001 - a real dash, for a figure that there is not
MINUS = "−"  # noqa: RUF001 - a real minus sign


def percent(share: float, digits: int = 1) -> str:
    """A share in percent, without the sign.

    >>> percent(0.4567)
    '45.7'
    """
    return f"{100 * share:.{digits}f}"


def points(difference: float) -> str:
    """A difference of shares in percentage points, always signed.

    >>> points(0.0213), points(-0.0213), points(-0.0001)
    ('+2.1', '−2.1', '0.0')
    """
    text = f"{100 * abs(difference):.1f}"
    if text == "0.0":
        return text
    return (MINUS if difference < 0 else "+") + text


def fraction(value: float | None) -> str:
    """A figure in [0, 1] with three digits and no leading zero, as AUROCs are written.

    >>> fraction(0.9701), fraction(1.0), fraction(None)
    ('.970', '1.000', '–')
    """
    return DASH if value is None else f"{value:.3f}".removeprefix("0")


def compact(number: float) -> str:
    r"""A count in about three digits.

    >>> compact(0), compact(950), compact(36615), compact(1_234_567)
    ('0', '950', '36.6\xa0k', '1.23\xa0M')
    """
    return _scaled(number, ["", "k", "M", "G", "T"])


def in_bytes(number: float) -> str:
    r"""An amount of bytes in decimal units.

    >>> in_bytes(0), in_bytes(1_730_000)
    ('0\xa0B', '1.73\xa0MB')
    """
    return _scaled(number, ["B", "kB", "MB", "GB", "TB"])


def duration(seconds: float) -> str:
    """A time span in the unit that suits it.

    >>> duration(9.13), duration(75), duration(5400)
    ('9.1 s', '1 min 15 s', '1 h 30 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min"


def mean_count(spread: Spread) -> str:
    """A mean of small counts, with a decimal only where it is needed."""
    return f"{spread.mean:,.0f}" if spread.mean == round(spread.mean) else f"{spread.mean:,.1f}"


def listed(words: Iterable[str], joint: str = "and") -> str:
    """Words as a list in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = list(words) or [""]
    return f"{', '.join(first)} {joint} {last}" if first else last


def setting(value: Any) -> str:
    """A setting's value as text."""
    if isinstance(value, list | tuple):
        return ", ".join(str(v) for v in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return DASH if value is None else str(value)


def plural(count: int, noun: str) -> str:
    """A count and its noun.

    >>> plural(1, "seed"), plural(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _scaled(number: float, units: list[str]) -> str:
    size, place = float(number), 0
    while abs(size) >= 999.5 and place < len(units) - 1:
        size /= 1000
        place += 1
    digits = 0 if place == 0 or abs(size) >= 99.95 else 1 if abs(size) >= 9.995 else 2
    return f"{size:.{digits}f}\N{NO-BREAK SPACE}{units[place]}".strip()
