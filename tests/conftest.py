"""What holds for all tests: no property fails because the machine was slow, CI tries the same
examples of a property each time, programs under test can be interrupted, and a run ends with its
slowest tests. `--list-long` prints what `make test-long` adds to `make test`."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

from support.examples import IN_CI, PROFILE, examples
from support.run_report import RunReport, reason_of

settings.register_profile(
    "moldau", deadline=None, print_blob=True, derandomize=IN_CI, max_examples=examples(100)
)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile(PROFILE)

# Programs under test that compile all their modules again take twice as long to start. Container
# images set this variable to keep their layers small.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Brokers of a test are not to be found by other tests, nor by the commands of whoever runs them.
_STATE = tempfile.TemporaryDirectory(prefix="moldau-state-")
os.environ["XDG_STATE_HOME"] = _STATE.name

# A shell that runs the tests in the background makes them, and what they start, ignore SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A run that is terminated, by `make` or by hand, ends like an interrupted one: its servers stop.
signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--list-long", action="store_true", help="print the tests marked long, with their reasons"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RunReport(config), "moldau-run-report")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Thousands of tests and their modules stay until the end: the collector of garbage would look
    through them again and again, first while there are more and more, then in each test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    if not session.config.getoption("--list-long"):
        return None
    for item in session.items:
        if reason := reason_of(item, "long"):
            print(f"{item.nodeid}\n    {reason}")
    return True
