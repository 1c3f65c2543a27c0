"""Tables on narrow terminals stay readable."""

from __future__ import annotations

from moldau.cli.support.machine.table_layout import Layout, fitted, lines_of

HEADERS = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID"]
HEADERS += ["HOST", "CLIENT-ID"]
MEMBER = "console-consumer-e5f05b52-a55b-4176-9823-a5238296c44e"


def row(partition: int, member: str = MEMBER, host: str = "/127.0.0.1") -> list[str]:
    return ["billing-service", "orders", str(partition), "-", "100", "-", member, host, "billing"]


def names(layout: Layout) -> list[str]:
    return [HEADERS[column.index] for column in layout.columns]


def test_a_table_that_fits_stays_as_it_is() -> None:
    layout = fitted(HEADERS, [row(0), row(1)], 200)
    assert (layout.shared, names(layout)) == ((), HEADERS)
    assert [column.header for column in layout.columns] == HEADERS
    assert {column.width for column in layout.columns} == {None}


def test_what_all_rows_share_is_said_once() -> None:
    layout = fitted(HEADERS, [row(0), row(1)], 80)
    assert dict(layout.shared)["CONSUMER-ID"] == MEMBER
    assert dict(layout.shared)["GROUP"] == "billing-service"
    assert names(layout) == ["PARTITION", "LOG-END-OFFSET"]
    assert lines_of(layout.shared, 80) == [
        "  GROUP billing-service   TOPIC orders   CURRENT-OFFSET -   LAG -",
        f"  CONSUMER-ID {MEMBER}",
        "  HOST /127.0.0.1   CLIENT-ID billing",
    ]


def test_numbers_are_whole_and_headers_are_broken_between_words() -> None:
    rows = [row(0), row(1, "sarama-0b7e5df1-1f7c-4a63-8e46-3d2d70ef0ee3", "/10.20.30.40")]
    rows[0][3:6] = "1234567890", "1234567899", "9"
    layout = fitted(HEADERS, rows, 80)
    wanted = ["PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST"]
    assert names(layout) == wanted
    headers = {HEADERS[column.index]: column.header for column in layout.columns}
    assert headers["CURRENT-OFFSET"] == "CURRENT-\nOFFSET"
    assert headers["LOG-END-OFFSET"] == "LOG-END-\nOFFSET"
    limits = {HEADERS[column.index]: column.width for column in layout.columns}
    member = limits.pop("CONSUMER-ID")
    assert member is not None
    assert 16 <= member < len(MEMBER)
    assert set(limits.values()) == {None}


def test_camel_case_is_broken_too() -> None:
    headers = ["Feature", "SupportedMinVersion", "SupportedMaxVersion", "FinalizedVersionLevel"]
    rows = [["eligible.leader.replicas.version", "0", "1", "1"], ["group.version", "1", "2", "2"]]
    layout = fitted(headers, rows, 75)
    assert [column.header for column in layout.columns] == [
        "Feature",
        "Supported\nMin\nVersion",
        "Supported\nMax\nVersion",
        "Finalized\nVersion\nLevel",
    ]


def test_what_cannot_be_a_table_is_a_list() -> None:
    assert fitted(HEADERS, [row(0), row(1, "other", "/10.0.0.1")], 20).columns == ()
