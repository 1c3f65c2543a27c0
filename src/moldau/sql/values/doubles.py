"""DOUBLE as text, as the Java versions that ksqlDB runs on write it.

Before Java 19, Double.toString did not always give the shortest text: integers beyond 53 bits keep
more of their digits, and the smallest number has two.
"""

from __future__ import annotations

from moldau.data.json_text import double_text as shortest_text

_EXACT_MAX = 2.0**53
_LONG_MAX = 2.0**63
_SMALLEST = 5e-324
#: How many digits at the end are below the precision of a number with so many bits beyond 54.
_INSIGNIFICANT = (0, 0, 0, 0, 1, 1, 1, 2, 2, 2)


def double_text(value: float) -> str:
    """Double.toString."""
    if _EXACT_MAX < value < _LONG_MAX:
        return _integral(int(value))
    if -_LONG_MAX < value < -_EXACT_MAX:
        return "-" + _integral(int(-value))
    if value == _SMALLEST:
        return "4.9E-324"
    return "-4.9E-324" if value == -_SMALLEST else shortest_text(value)


def _integral(number: int) -> str:
    beyond = number.bit_length() - 1 - 53 - 1
    dropped = _INSIGNIFICANT[beyond] if beyond > 1 else 0
    whole, rest = divmod(number, 10**dropped)
    if dropped and rest >= 10**dropped // 2:
        whole += 1
    exponent = len(str(whole)) - 1 + dropped
    digits = str(whole).rstrip("0")
    return f"{digits[0]}.{digits[1:] or '0'}E{exponent}"
