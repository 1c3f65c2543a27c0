"""What is wrong in the monitor's sight, by the names of the runbook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from moldau.monitoring.machine.alerts import Condition
from moldau.monitoring.machine.lag import PartitionLag
from moldau.monitoring.machine.objectives import Report

__all__ = ["conditions_of"]

_RUNBOOK: Final = "docs/runbook.md#"


def conditions_of(
    *,
    lags: Iterable[PartitionLag],
    lag_seconds_max: float | None,
    reports: Iterable[Report],
    pipelines: Mapping[str, str],
    problem: str,
) -> list[Condition]:
    """All that hold now."""
    found: list[Condition] = []
    if problem:
        found.append(
            Condition(
                "ClusterUnreachable",
                "critical",
                f"the cluster cannot be reached: {problem}",
                runbook=_RUNBOOK + "canary-failing",
            )
        )
    found += _lag_conditions(lags, lag_seconds_max)
    found += [
        Condition(
            "ErrorBudgetBurning",
            "critical",
            f"objective {report.objective.name} burns its error budget "
            f"{report.short_burn_rate:.1f} times too fast; {report.budget:.0%} of it is left",
            (("objective", report.objective.name),),
            _RUNBOOK + "error-budget",
        )
        for report in reports
        if report.burning
    ]
    found += [
        Condition(
            "PipelineFailed",
            "critical",
            f"pipeline {name} has failed",
            (("pipeline", name),),
            _RUNBOOK + "failed-pipeline",
        )
        for name, state in pipelines.items()
        if state == "failed"
    ]
    return found


def _lag_conditions(
    lags: Iterable[PartitionLag], lag_seconds_max: float | None
) -> list[Condition]:
    found: list[Condition] = []
    for lag in lags:
        labels = (
            ("consumergroup", lag.group_id),
            ("topic", lag.place.topic),
            ("partition", str(lag.place.partition)),
        )
        where = f"partition {lag.place.partition} of {lag.place.topic}"
        if lag.stuck:
            found.append(
                Condition(
                    "ConsumerStuck",
                    "critical",
                    f"group {lag.group_id} does not advance in {where}: {lag.records} records wait",
                    labels,
                    _RUNBOOK + "stuck-consumer",
                )
            )
        if lag_seconds_max is not None and lag.seconds > lag_seconds_max:
            clears = "and does not catch up"
            if lag.clears_in is not None:
                clears = f"and needs {lag.clears_in:.0f} s to catch up"
            found.append(
                Condition(
                    "ConsumerTooSlow",
                    "warning",
                    f"group {lag.group_id} is {lag.seconds:.0f} s behind in {where} {clears}",
                    labels,
                    _RUNBOOK + "slow-consumer",
                )
            )
    return found
