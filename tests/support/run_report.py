"""A pytest plugin that measures tests and prints the slowest at the end of a run.

Time in fixtures that several tests share counts for none of them: whichever test came first would
be named for the start of a server.

Beside the time of a file stands the processor time of its tests and of the programs that they
started and waited for. A busy machine changes the first, hardly the second.
"""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from support import forks, timings
from support.timings import FileTime, Timing

REASONED: Final = ("long", "slow")


def reason_of(item: pytest.Item, marker: str) -> str | None:
    """The reason in a marker of a test; a marker without one is a mistake in the test."""
    found = item.get_closest_marker(marker)
    if found is None:
        return None
    if len(found.args) != 1 or not isinstance(found.args[0], str) or not found.args[0]:
        raise pytest.UsageError(f"{item.nodeid}: write the reason, as in {marker}('reason')")
    return found.args[0]


class RunReport:
    """A pytest plugin, for the process that prints and for xdist's workers alike."""

    def __init__(self, config: pytest.Config) -> None:
        # Programs under test that run pytest themselves leave nothing there.
        directory = os.environ.pop(timings.DIRECTORY, None)
        self._directory = Path(directory) if directory else None
        self._is_worker = hasattr(config, "workerinput")
        self._seconds: dict[str, float] = defaultdict(float)
        self._files: dict[str, FileTime] = defaultdict(FileTime)
        self._reasons: dict[str, str] = {}
        self._shared_seconds = 0.0
        self._cpu_seconds = _cpu_seconds()

    # Where tests run.

    def pytest_runtest_logstart(self) -> None:
        self._cpu_seconds = _cpu_seconds()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for marker in REASONED:
                if reason := reason_of(item, marker):
                    item.user_properties.append(("slow", reason))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._shared_seconds += time.perf_counter() - began

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report: Any = yield
        if self._shared_seconds:
            report.user_properties.append(("shared", self._shared_seconds))
            self._shared_seconds = 0.0
        used, self._cpu_seconds = _cpu_seconds() - self._cpu_seconds, _cpu_seconds()
        report.user_properties.append(("cpu", used))
        return report

    # Where results are printed.

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        file = report.nodeid.partition("::")[0]
        self._files[file] += FileTime(report.duration, float(properties.get("cpu", 0.0)))
        if report.when == "teardown":
            # What modules and sessions stop at their end is part of the last test's teardown.
            return
        self._seconds[report.nodeid] += report.duration - float(properties.get("shared", 0.0))
        if "slow" in properties:
            self._reasons[report.nodeid] = str(properties["slow"])

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._is_worker or not self._seconds:
            return
        measured = [
            Timing(test, seconds, self._reasons.get(test))
            for test, seconds in self._seconds.items()
        ]
        if self._directory is not None:
            timings.write(self._directory, measured, self._files)
        elif terminalreporter.config.getoption("verbose") >= 0:
            for line in timings.lines(measured):
                terminalreporter.write_line(line)


def _cpu_seconds() -> float:
    """Of this process and of all that it has waited for, until now."""
    measured = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in measured) + forks.ended_cpu_seconds()
