"""What the monitor decides: lag, objectives, alerts, its file, its rules."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from moldau.metrics.history import decode, encode, key_of
from moldau.metrics.parsing import Line, parse
from moldau.monitoring.machine.alerts import Alerts, Condition
from moldau.monitoring.machine.conditions import conditions_of
from moldau.monitoring.machine.config import MonitorConfigError, read_config
from moldau.monitoring.machine.dashboards import DASHBOARDS, as_grafana
from moldau.monitoring.machine.lag import GroupState, LagTracker, PartitionLag, Place
from moldau.monitoring.machine.objectives import Objective, Tracker
from moldau.monitoring.machine.troubles import TROUBLES, at_pace, rules

ORDERS = Place("orders", 0)


def group(position: int, *, members: str = "a", state: str = "Stable") -> GroupState:
    return GroupState("g", "consumer", state, frozenset(members), {ORDERS: position})


def observe(
    rounds: list[tuple[float, int, int]], *, stuck_after_s: float = 60
) -> list[PartitionLag]:
    """Times, ends and committed offsets; the lag after each round."""
    tracker = LagTracker(stuck_after_s=stuck_after_s)
    return [
        tracker.observe({ORDERS: end}, [group(position)], time_s)[0]
        for time_s, end, position in rounds
    ]


def test_a_group_at_the_end_has_no_lag() -> None:
    lag = observe([(0, 10, 10), (100, 10, 10)], stuck_after_s=5)[-1]
    assert (lag.records, lag.seconds, lag.trend, lag.clears_in, lag.stuck) == (0, 0, 0, 0, False)


def test_seconds_are_the_age_of_the_first_end_not_reached() -> None:
    found = observe([(0, 10, 10), (10, 20, 10), (20, 30, 10), (30, 40, 20), (40, 40, 40)])
    # At 30 it has what was there at 10; what came by 20 is 10 s old.
    assert [each.seconds for each in found] == [0, 0, 10, 10, 0]
    assert [each.records for each in found] == [0, 10, 20, 20, 0]


def test_what_is_older_than_the_first_round_has_the_age_of_its_record() -> None:
    tracker = LagTracker()
    for now_s in (1_000, 1_010):
        tracker.observe({ORDERS: 50}, [group(10)], now_s)
        assert tracker.unknown == {(ORDERS, 10)}
    tracker.learn(ORDERS, 10, 400)
    (lag,) = tracker.observe({ORDERS: 50}, [group(10)], 1_010)
    assert (lag.seconds, tracker.unknown) == (610, frozenset())
    (lag,) = tracker.observe({ORDERS: 60}, [group(50)], 1_020)
    assert (lag.seconds, tracker.unknown) == (0, frozenset())
    tracker.observe({ORDERS: 60}, [group(12)], 1_030)
    assert tracker.unknown == {(ORDERS, 12)}, "another record, whose age is not known"
    assert tracker._ends[ORDERS].older == {}, "what no group needs is forgotten"


def test_the_trend_says_when_the_lag_is_gone() -> None:
    shrinking = observe([(0, 100, 0), (10, 100, 20), (20, 100, 40), (30, 100, 60)])[-1]
    assert shrinking.trend == pytest.approx(-2)
    assert shrinking.clears_in == pytest.approx(20)
    growing = observe([(0, 100, 0), (10, 200, 10)])[-1]
    assert growing.trend == pytest.approx(9)
    assert growing.clears_in is None


def test_stuck_is_who_has_records_and_commits_nothing() -> None:
    found = observe([(0, 10, 5), (30, 20, 5), (60, 30, 5), (61, 30, 6)])
    assert [each.stuck for each in found] == [False, False, True, False]


def test_a_topic_that_begins_again_is_not_behind() -> None:
    found = observe([(0, 100, 100), (10, 5, 0), (20, 6, 5)])
    assert [each.records for each in found] == [0, 5, 1]
    assert found[-1].seconds == 0


def test_a_share_group_counts_what_its_coordinator_says() -> None:
    state = GroupState("s", "share", "Stable", frozenset(), {ORDERS: 5}, {ORDERS: 2})
    (lag,) = LagTracker().observe({ORDERS: 10}, [state], 0)
    assert lag.records == 2


def test_rebalances_are_changes_of_members() -> None:
    tracker = LagTracker()
    for members, state in (
        ("a", "Stable"), ("ab", "PreparingRebalance"), ("ab", "Stable"), ("b", "Stable"),
    ):  # fmt: skip
        tracker.observe({ORDERS: 1}, [group(1, members=members, state=state)], 0)
    assert tracker.rebalances("g") == 2
    tracker.observe({}, [], 1)
    assert tracker.rebalances("g") == 0


def test_memory_is_bounded() -> None:
    tracker = LagTracker()
    for second in range(5_000):
        (lag,) = tracker.observe({ORDERS: second + 1}, [group(4_000)], second)
    # Older ends are thinned out, newer ones are exact.
    assert lag.seconds == pytest.approx(999, abs=10)
    assert len(tracker._ends[ORDERS]._offsets) <= 500


def test_an_objective_uses_up_its_budget() -> None:
    tracker = Tracker(Objective("writes", "availability", 0.99, period_s=1_000,
                                long_window_s=100, short_window_s=10))  # fmt: skip
    for second in range(1_000):
        tracker.record(second >= 5, second)
    report = tracker.report(999.5)
    assert (report.good, report.total) == (995, 1_000)
    assert report.budget == pytest.approx(0.5)
    assert report.long_burn_rate == 0
    assert not report.burning
    for tenth in range(200):
        tracker.record(False, 1_000 + tenth / 10)
    report = tracker.report(1_020)
    assert report.short_burn_rate == pytest.approx(100)
    assert report.burning
    assert report.budget < 0


def test_windows_are_exact_however_long_the_period_is() -> None:
    tracker = Tracker(Objective("writes", "availability", 0.99, long_window_s=5, short_window_s=2))
    for tenth in range(600):
        # Fifty seconds of good events, then ten of bad ones.
        tracker.record(tenth < 500, tenth / 10)
    report = tracker.report(60)
    assert report.short_burn_rate == pytest.approx(100)
    assert report.long_burn_rate == pytest.approx(100)
    assert report.burning
    for tenth in range(600, 700):
        tracker.record(True, tenth / 10)
    assert not tracker.report(70).burning


def test_an_alert_is_announced_once_and_once_as_resolved() -> None:
    alerts = Alerts(holds_s=10)
    trouble = Condition("Trouble", "critical", "it is wrong", (("topic", "orders"),))
    assert alerts.observe([trouble], 0) == []
    assert alerts.observe([], 5) == []
    assert alerts.observe([trouble], 6) == []
    assert [each.status for each in alerts.observe([trouble], 16)] == ["firing"]
    assert alerts.observe([trouble], 20) == []
    assert alerts.firing == [trouble]
    (ended,) = alerts.observe([], 30)
    assert (ended.status, ended.since_s, ended.at_s) == ("resolved", 6, 30)


def test_conditions_name_the_runbooks_troubles() -> None:
    lag = PartitionLag("g", "consumer", ORDERS, 7, 400.0, 1.0, None, True)
    burning = Tracker(Objective("writes", "availability", 0.999))
    burning.record(False, 0)
    found = conditions_of(
        lags=[lag],
        lag_seconds_max=300,
        reports=[burning.report(1)],
        pipelines={"lake": "failed", "other": "running"},
        problem="no broker answers",
    )
    names = [each.name for each in found]
    assert names == [
        "ClusterUnreachable", "ConsumerStuck", "ConsumerTooSlow", "ErrorBudgetBurning",
        "PipelineFailed",
    ]  # fmt: skip
    anchors = {trouble.anchor for trouble in TROUBLES}
    assert {each.runbook.partition("#")[2] for each in found} <= anchors


def test_the_file_in_the_docstring_is_right() -> None:
    import yaml

    from moldau.monitoring.machine import config

    assert config.__doc__ is not None
    found = read_config(yaml.safe_load(config.__doc__.partition("\n\n")[2]))
    assert [each.kind for each in found.objectives] == ["availability", "latency", "lag"]
    assert found.targets.email is not None
    assert found.history_nodes == ("http://127.0.0.1:9644/metrics",)
    assert read_config(None).interval_s == 10


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "write a mapping"),
        ({"intervall_seconds": 1}, "unknown: intervall_seconds"),
        ({"interval_seconds": "often"}, "monitor.interval_seconds"),
        ({"interval_seconds": True}, "monitor.interval_seconds"),
        ({"lag": {"exclude": "("}}, "not a pattern"),
        ({"objectives": [{"name": "a", "kind": "speed", "target": 9}]}, "availability, latency"),
        ({"objectives": [{"name": "a", "kind": "lag", "target": 100}]}, "below 100"),
        ({"objectives": [{"name": "a", "kind": "lag", "target": 99}]}, "threshold_seconds"),
        ({"objectives": [{"name": "a", "kind": "availability", "target": 99}]}, "canary"),
        ({"alerts": {"email": {"host": "x"}}}, "alerts.email.to is missing"),
        ({"alerts": {"command": {"run": "rm"}}}, "write list"),
    ],
)
def test_mistakes_in_the_file_are_explained(data: Any, message: str) -> None:
    with pytest.raises(MonitorConfigError, match=message):
        read_config(data)


def test_slots_of_the_history_are_used_again() -> None:
    def key(at_s: float) -> bytes:
        return key_of("n", at_s, interval_s=60, slots=3)

    assert key(0) == key(180) != key(60)
    lines = [Line("a_total", (("topic", "t"),), 1.0), Line("b", (("partition", "0"),), 2.0)]
    assert decode(encode("n", 5.0, lines))["values"] == {'a_total{topic="t"}': 1.0}
    with pytest.raises(ValueError):
        decode(b"[]")


def test_rules_keep_their_form_at_another_pace() -> None:
    assert at_pace("rate(a[5m]) > 5", 50) == "rate(a[6s]) > 5"
    assert at_pace("2m", 60) == "2s"
    assert at_pace("0s", 60) == "0s"
    (found,) = rules()["groups"]  # type: ignore[misc]
    assert {rule["alert"] for rule in found["rules"]} == {each.name for each in TROUBLES}


def test_generated_files_are_current() -> None:
    path = Path(__file__).parents[3] / "tools" / "generate_monitoring.py"
    spec = importlib.util.spec_from_file_location("generate_monitoring", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for file, text in module.files().items():
        assert file.read_text() == text, f"{file} is stale: run tools/generate_monitoring.py"


def test_dashboards_are_grafanas_json() -> None:
    for dashboard in DASHBOARDS:
        found = json.loads(json.dumps(as_grafana(dashboard)))
        assert found["uid"] == dashboard.uid
        for panel in found["panels"]:
            assert panel["targets"], panel["title"]
            assert all(each["expr"] for each in panel["targets"])


def test_prometheus_text_is_read_back() -> None:
    text = '# HELP a x\na_total{topic="a\\"b",p="1"} 5\nb NaN\nnonsense\nc 1e3\n'
    found = {line.text: line for line in parse(text)}
    assert found['a_total{topic="a"b",p="1"}'].label("topic") == 'a"b'
    assert found["c"].value == 1000
    assert len(found) == 3


@pytest.mark.skipif(shutil.which("promtool") is None, reason="Prometheus is not installed")
@pytest.mark.parametrize(
    ("check", "file"), [("rules", "moldau-alerts.yml"), ("config", "prometheus.yml")]
)
def test_promtool_accepts_the_shipped_files(check: str, file: str) -> None:
    folder = Path(__file__).resolve().parents[3] / "deploy/monitoring/prometheus"
    ended = subprocess.run(
        ["promtool", "check", check, str(folder / file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "SUCCESS" in ended.stdout
