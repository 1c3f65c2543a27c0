"""Java's patterns for dates and times, with what java.time and SimpleDateFormat give."""

from __future__ import annotations

import pytest

from moldau.data.java_time import civil
from moldau.data.java_time.formatter import formatter, timestamp_text
from moldau.data.java_time.parsing import ParseFailed, parser
from moldau.data.java_time.simple import simple_format
from moldau.data.java_time.zones import UTC_ZONE, zone

MOMENT = 1_600_000_000_123  # 2020-09-13T12:26:40.123Z, a Sunday


@pytest.mark.parametrize(
    ("pattern", "zone_name", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "Z", "2020-09-13T12:26:40.123"),
        ("yy-M-d H:m:s", "Z", "20-9-13 12:26:40"),
        ("EEE EEEE MMM MMMM", "Z", "Sun Sunday Sep September"),
        ("hh:mm a", "Z", "12:26 PM"),
        ("K k D", "Z", "0 12 257"),
        ("SSSSSS n", "Z", "123000 123000000"),
        ("X XX XXX x xxx Z ZZZZ O", "Z", "Z Z Z +00 +00:00 +0000 GMT GMT"),
        ("X XX XXX Z ZZZZ O", "+05:30", "+0530 +0530 +05:30 +0530 GMT+05:30 GMT+5:30"),
        ("HH:mm VV z", "Europe/Prague", "14:26 Europe/Prague CEST"),
        ("''yyyy'' 'o''clock'", "Z", "'2020' o'clock"),
        ("QQQ G uuuu", "Z", "Q3 AD 2020"),
        ("ppppd|", "Z", "  13|"),
    ],
)
def test_a_moment_is_printed_by_a_pattern(pattern: str, zone_name: str, expected: str) -> None:
    assert formatter(pattern).timestamp(MOMENT, zone(zone_name)) == expected


@pytest.mark.parametrize("pattern", ["yyyy-bb", "ddd", "'open", "HHH", "x]", "V", "{"])
def test_a_pattern_that_java_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError):
        formatter(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "2020-09-13T12:26:40.123", MOMENT),
        ("yyyyMMddHHmmssSSS", "20200913122640123", MOMENT),
        ("dd MMM yyyy", "13 sEp 2020", 1_599_955_200_000),
        ("yyyy-MM-dd", "2021-02-30", 1_614_470_400_000),  # smart: the last of February
        ("yyyy", "2020", 1_577_836_800_000),
        ("HH:mm", "01:02", 3_720_000),
        ("yyyy-MM-dd HH:mm XXX", "2020-09-13 14:26 +02:00", 1_599_999_960_000),
        ("yyyy-MM-dd hh:mm a", "2020-09-13 12:26 am", 1_599_956_760_000),
        ("yyyy-DDD", "2020-257", 1_599_955_200_000),
        ("yyyy-MM-dd[ HH:mm]", "2020-09-13", 1_599_955_200_000),
        ("yyyy-MM-dd HH:mm", "2020-09-13 24:00", 1_600_041_600_000),
        ("yy-MM-dd", "20-09-13", 1_599_955_200_000),
        ("EEE, dd MMM yyyy", "Sun, 13 Sep 2020", 1_599_955_200_000),
    ],
)
def test_a_text_is_read_by_a_pattern(pattern: str, text: str, expected: int) -> None:
    assert parser(pattern).timestamp_ms(text, UTC_ZONE) == expected


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd", "2020-9-13"),
        ("yyyy-MM-dd", "2020-09-13x"),
        ("yyyy-MM-dd", "20200-09-13"),
        ("HH:mm", "25:00"),
        ("dd", "32"),
        ("EEE dd.MM.yyyy", "Mon 13.09.2020"),
        ("yyyy-DDD", "2021-366"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(pattern: str, text: str) -> None:
    with pytest.raises(ParseFailed):
        parser(pattern).timestamp_ms(text, UTC_ZONE)


def test_local_times_in_gaps_and_overlaps_are_those_of_java() -> None:
    prague = zone("Europe/Prague")
    read = parser("yyyy-MM-dd HH:mm").timestamp_ms
    assert read("2021-03-28 02:30", prague) == read("2021-03-28 03:30", prague)
    assert read("2021-10-31 02:30", prague) == read("2021-10-31 00:30", UTC_ZONE)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("yyyy-MM-dd", "2020-09-13", 1_599_955_200_000),
        ("yyyy-MM-dd", "2020-9-3 and more", 1_599_091_200_000),
        ("yyyyMMdd", "20200913", 1_599_955_200_000),
        ("yyyy-MM-dd", "2020-13-01", 1_609_459_200_000),
        ("dd MMMM yyyy HH:mm:ss.SSS z", "13 September 2020 12:26:40.123 GMT", MOMENT),
        ("yyyy-MM-dd'T'HH:mm:ssZ", "2020-09-13T14:26:40+0200", 1_600_000_000_000),
    ],
)
def test_simple_formats_read_leniently(pattern: str, text: str, expected: int) -> None:
    assert simple_format(pattern).parse(text) == expected


def test_simple_formats_write() -> None:
    shown = simple_format("yyyy-MM-dd HH:mm:ss.SSS Z u", "Europe/Prague").format(MOMENT)
    assert shown == "2020-09-13 14:26:40.123 +0200 7"
    with pytest.raises(ValueError, match="Illegal pattern character 'b'"):
        simple_format("bb")
    with pytest.raises(ValueError, match="Unparseable date"):
        simple_format("yyyy-MM-dd").parse("x")


@pytest.mark.parametrize("days", [-719_528, -1, 0, 59, 60, 18_000, 2_932_896, 5_000_000])
def test_days_and_dates_convert_both_ways(days: int) -> None:
    assert civil.days_from_civil(*civil.civil_from_days(days)) == days


def test_years_outside_of_datetime_are_printed() -> None:
    assert civil.date_text(2_932_897) == "+10000-01-01"
    assert timestamp_text(0) == "1970-01-01T00:00:00.000"
    assert timestamp_text(-1) == "1969-12-31T23:59:59.999"


def test_unknown_zones_are_refused() -> None:
    for name in ("Nowhere/Land", "+25:00", "", "a b"):
        with pytest.raises(ValueError):
            zone(name)
