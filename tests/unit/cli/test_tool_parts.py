"""What the tools are made of: tables, filters, values on the command line, Java's numbers."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from moldau.cli.admin.configs import parse_added
from moldau.cli.support import connecting
from moldau.cli.support.client_options import client_config, parse_properties
from moldau.cli.support.config_files import read_config_file
from moldau.cli.support.connecting import wait_until_reachable
from moldau.cli.support.failures import ToolError
from moldau.cli.support.machine.errors import Refused
from moldau.cli.support.machine.java_text import java_double
from moldau.cli.support.progress import progress
from moldau.cli.support.reporting import message_of, reporting_as
from moldau.cli.support.tables import Table
from moldau.cli.topics.machine.topic_filter import TopicFilter, partition_filter, partition_rules
from moldau.cli.topics.topic_descriptions import Filters, PartitionView
from moldau.cli.topics.topics import parse_replica_assignment
from moldau.client.admin import PartitionReassignment, TopicPartitionInfo
from moldau.client.errors import TopicExistsError
from moldau.client.topics import Node
from moldau.config import ConfigError

Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """A screen that somebody looks at."""

    def isatty(self) -> bool:
        return True


def open_screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """To be called in the test itself: pytest sets its own between a fixture and the test."""
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    return screen


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1024.0, "1024.0"),
        (0.5, "0.5"),
        (-2.5, "-2.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (20971520.0, "2.097152E7"),
        (-2.5e8, "-2.5E8"),
        (1.5e300, "1.5E300"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_printed_as_by_java(value: float, text: str) -> None:
    assert java_double(value) == text


def test_a_table_in_a_pipe_has_kafkas_columns(capsys: Capture) -> None:
    table = Table("A", "Long")
    table.add("value", 1)
    table.add("x", "long value")
    table.show()
    assert capsys.readouterr().out == (
        "A    \tLong      \t\nvalue\t1         \t\nx    \tlong value\t\n"
    )


def test_a_table_on_a_terminal_is_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen(monkeypatch)
    table = Table("Name", "Count", title="All of them")
    table.add("a", 1)
    table.add("[b]", 20, style="red")
    table.show()
    shown = screen.getvalue()
    assert "All of them" in shown
    assert "\x1b[" in shown
    assert "[b]" in shown  # no markup of a user's names
    assert "\t" not in shown


def test_progress_appears_after_a_second_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from moldau.cli.support import progress_bar as _progress

    screen = open_screen(monkeypatch)
    with progress("Sending", total=10) as bar:
        bar.advance(5)
    assert screen.getvalue() == ""
    monkeypatch.setattr(_progress, "_APPEARS_AFTER_SECONDS", 0.0)
    with progress("Sending", total=10) as bar:
        bar.advance(5)
        bar.update(8)
    assert "Sending" in screen.getvalue()
    assert "80%" in screen.getvalue()
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    with progress("Sending", total=10) as bar:
        bar.advance(5)
        bar.update(8)
    assert pipe.getvalue() == ""


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a", ["a"]),
        ("a|b", ["a", "b"]),
        ("a,b", ["a", "b"]),
        ("a, b", ["a", "b"]),
        ("'a.*'", ["a", "ab"]),
        ('"b"', ["b"]),
        (".*", ["a", "ab", "b", "__consumer_offsets"]),
        ("", []),
    ],
)
def test_topics_by_pattern(pattern: str, names: list[str]) -> None:
    assert TopicFilter(pattern).of(["a", "ab", "b", "__consumer_offsets"]) == names


def test_internal_topics_may_be_left_out() -> None:
    assert TopicFilter(".*").of(["a", "__transaction_state"], exclude_internal=True) == ["a"]


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ("t:1", {("t", 1)}),
        ("t", {("t", 0), ("t", 1), ("t", 2), ("t", 3)}),
        ("t:1-3", {("t", 1), ("t", 2)}),
        ("t:2-", {("t", 2), ("t", 3)}),
        ("t:-2", {("t", 0), ("t", 1)}),
        (":3", {("t", 3), ("u", 3)}),
        ("t:0,u:1", {("t", 0), ("u", 1)}),
        ("u:", {("u", 0), ("u", 1), ("u", 2), ("u", 3)}),
    ],
)
def test_partitions_by_rules(rules: str, allowed: set[tuple[str, int]]) -> None:
    wanted = partition_rules(rules)
    assert {(t, n) for t in "tu" for n in range(4) if wanted(t, n)} == allowed


@pytest.mark.parametrize("rules", ["t:x", "t:1-2-3", "t:1:2"])
def test_bad_rules(rules: str) -> None:
    with pytest.raises(Refused, match="Invalid rule specification"):
        partition_rules(rules)


def test_bad_patterns_and_numbers() -> None:
    with pytest.raises(Refused, match=r"\(a is an invalid regex"):
        TopicFilter("(a")
    with pytest.raises(Refused, match="numeric partition ids, but received: 1,x"):
        partition_filter(None, "1,x")
    assert partition_filter("a", None)("a", 7)
    assert not partition_filter("a", "1,2")("a", 7)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=[1,2],b=3", {"a": "1,2", "b": "3"}),
        ("a = x ", {"a": "x"}),
        ("a=", {"a": ""}),
        ("a=[k=v,l=w]", {"a": "k=v,l=w"}),
    ],
)
def test_values_to_add(text: str, values: dict[str, str]) -> None:
    assert parse_added(text) == values


@pytest.mark.parametrize("text", ["a", "a,b=1", "a=b=c", ""])
def test_bad_values_to_add(text: str) -> None:
    with pytest.raises(Refused, match="Invalid entity config"):
        parse_added(text)


def test_replica_assignments() -> None:
    assert parse_replica_assignment(None) == {}
    assert parse_replica_assignment("1:2, 2:3") == {0: [1, 2], 1: [2, 3]}
    for text, words in (
        ("1:1", "duplicate entries: 1"),
        ("1,1:2", "Partition 1 has different replication factor"),
        ("a:b", "numbers"),
    ):
        with pytest.raises(Refused, match=words):
            parse_replica_assignment(text)


def view(isr: int, replicas: int = 3, *, leader: int | None = 1, **more: object) -> PartitionView:
    nodes = [Node(number, "h", 1) for number in range(1, 6)]
    info = TopicPartitionInfo(
        0,
        None if leader is None else nodes[leader - 1],
        tuple(nodes[:replicas]),
        tuple(nodes[:isr]),
    )
    return PartitionView("t", info, 2, frozenset({1, 2, 3}), **more)  # type: ignore[arg-type]


def test_which_partitions_are_ill() -> None:
    assert not view(3).is_under_replicated
    assert view(2).is_under_replicated
    assert view(2).is_at_min_isr
    assert not view(2).is_under_min_isr
    assert view(1).is_under_min_isr
    assert view(3, leader=None).is_under_min_isr
    assert view(3, leader=None).is_unavailable
    assert view(3, leader=5).is_unavailable
    assert not view(3).is_unavailable
    filters = Filters(unavailable=True, under_min_isr=True)
    assert filters.show(view(1))
    assert not filters.show(view(3))
    assert Filters().show(view(3))


def test_replicas_on_their_way_do_not_count() -> None:
    moving = PartitionReassignment((1, 2, 3, 4), (4,), (1,))
    assert view(3, 4, reassignment=moving).replication_factor == 3
    assert not view(3, 4, reassignment=moving).is_under_replicated
    # It ended between the two questions.
    assert view(1, 1, reassignment=PartitionReassignment((2, 3), (3,), ())).replication_factor == 1
    line = view(3, 4, reassignment=moving).line()
    assert "\tIsr: 1,2,3\tAdding Replicas: 4\tRemoving Replicas: 1\tElr: N/A\t" in line


def test_errors_are_told_in_the_brokers_words() -> None:
    assert message_of(TopicExistsError("Topic 'a'  already\n exists.")) == (
        "Topic 'a'  already exists."
    )
    assert "TOPIC_ALREADY_EXISTS" in message_of(TopicExistsError(""))
    assert "TOPIC_ALREADY_EXISTS: orders" in message_of(TopicExistsError("orders"))
    told = reporting_as("Told: ", to_stdout=True)
    with pytest.raises(ToolError, match=r"^Told: not here$") as raised, told:
        raise TopicExistsError("not here")
    assert raised.value.to_stdout


def test_where_the_cluster_is(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=old:1\nclient.id=me\n")
    given = argparse.Namespace(
        command_config=str(file), bootstrap_server=None, bootstrap_controller="c:1"
    )
    assert client_config(given) == {"client.id": "me", "bootstrap.controllers": "c:1"}
    given.bootstrap_server, given.bootstrap_controller = "a:1,b:2", None
    assert client_config(given) == {"client.id": "me", "bootstrap.servers": "a:1,b:2"}
    with pytest.raises(ToolError, match=r"cannot read .*nothing: No such file"):
        read_config_file(str(tmp_path / "nothing"))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ToolError, match="is not a properties file"):
        read_config_file(str(file))


def test_key_value_options() -> None:
    assert parse_properties("--x", ["a=1", "b", "c=d=e"]) == {"a": "1", "b": "", "c": "d=e"}
    with pytest.raises(ToolError, match="--x =1: expected key=value"):
        parse_properties("--x", ["=1"])


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "REACHABLE_SECONDS_MAX", 0.2)
    words = "no broker can be reached at 127.0.0.1:1: connection refused. Check that it is running"
    with pytest.raises(ToolError, match=words):
        wait_until_reachable({"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(ToolError, match="no controller can be reached"):
        wait_until_reachable({"bootstrap.controllers": "127.0.0.1:1"}, seconds_max=0)
    with pytest.raises(ConfigError, match="host:port"):
        wait_until_reachable({"bootstrap.servers": "nonsense"})
