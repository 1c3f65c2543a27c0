"""How Java prints numbers, where scripts compare what Kafka's tools print."""

from __future__ import annotations

import math

__all__ = ["java_double"]


def java_double(value: float) -> str:
    """`Double.toString`: as short as Python's, in scientific notation from ten million on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(float(value))
        return text if "e" not in text else f"{value:f}"
    digits, _, exponent = f"{value:.17e}".partition("e")
    # The shortest digits that mean the same number are those of repr.
    shortest = repr(float(value))
    mantissa = shortest.partition("e")[0].replace(".", "").lstrip("-0").rstrip("0") or "0"
    sign = "-" if digits.startswith("-") else ""
    return f"{sign}{mantissa[0]}.{mantissa[1:] or '0'}E{int(exponent)}"
