"""The proleptic Gregorian calendar over plain integers, without the bounds of `datetime`."""

from __future__ import annotations

from typing import NamedTuple

DAY_MS = 86_400_000
DAY_SECONDS = 86_400
NANOS_PER_MS = 1_000_000
NANOS_PER_DAY = DAY_MS * NANOS_PER_MS

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Civil(NamedTuple):
    year: int
    month: int
    day: int


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def month_length(year: int, month: int) -> int:
    return 29 if month == 2 and is_leap(year) else _MONTH_LENGTHS[month - 1]


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01. The day may lie outside of its month and counts on from there."""
    # Years begin in March here, so that the leap day is the last one of its year.
    year -= month <= 2
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def civil_from_days(days: int) -> Civil:
    days += 719_468
    era = days // 146_097
    day_of_era = days - era * 146_097
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    year = year_of_era + era * 400 + (month <= 2)
    return Civil(year, month, day_of_year - (153 * shifted + 2) // 5 + 1)


def day_of_year(year: int, month: int, day: int) -> int:
    return days_from_civil(year, month, day) - days_from_civil(year, 1, 1) + 1


def weekday(days: int) -> int:
    """1 for Monday to 7 for Sunday."""
    return (days + 3) % 7 + 1


def year_text(year: int) -> str:
    """As java.time prints it: four digits at least, a sign beyond 9999."""
    if 0 <= year <= 9999:
        return f"{year:04d}"
    return f"+{year}" if year > 9999 else f"-{-year:04d}"


def date_text(days: int) -> str:
    """LocalDate.toString."""
    year, month, day = civil_from_days(days)
    return f"{year_text(year)}-{month:02d}-{day:02d}"
