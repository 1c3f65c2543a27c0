"""The pytest plugin: fixtures for a broker and a cluster, per test and per session.

It is loaded wherever Moldau is installed. Invariant: without one of its fixtures it imports nothing
of Moldau and starts nothing. With one, the template process starts while pytest
still collects, and each worker of pytest-xdist has its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from moldau.testing.cluster import Broker, Cluster
    from moldau.testing.cluster_base import Topic

_FIXTURES = ("moldau_cluster", "moldau_session_cluster", "moldau_session_broker", "moldau_broker")
_CLUSTER_SIZE = 3
_SHARED = pytest.StashKey["list[Cluster]"]()
_MARKED = ("brokers", "config", "topics", "seed", "log_dirs", "security", "users")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("moldau", "Kafka brokers for tests (Moldau)")
    group.addoption(
        "--moldau-brokers",
        type=int,
        default=None,
        metavar="N",
        help="how many brokers the fixtures start (default: 1 for moldau_broker, 3 for "
        "moldau_cluster)",
    )
    group.addoption(
        "--moldau-seed",
        type=int,
        default=None,
        metavar="N",
        help="the seed of random faults (default: another one for each test, shown when it fails)",
    )
    group.addoption(
        "--moldau-data",
        default=None,
        metavar="DIR",
        help="where brokers keep their data (default: in memory if there is enough)",
    )
    group.addoption(
        "--moldau-log-level", default="INFO", metavar="LEVEL", help="what brokers log (INFO)"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "moldau(brokers=N, config={...}, topics={...}, seed=N, log_dirs=N, security=..., "
        "users={...}): how the broker or cluster of a test is made",
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """The template is ready by the time that the first test needs it."""
    if session.config.option.collectonly:
        return
    for item in session.items:
        if any(name.startswith("moldau_") for name in getattr(item, "fixturenames", ())):
            from moldau.testing.template import start_template

            start_template()
            return


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    registry = sys.modules.get("moldau.testing.registry")
    if registry is not None:
        registry.forget_closed()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """What a test did to a cluster that others share is undone, also when it failed."""
    yield
    for cluster in item.config.stash.get(_SHARED, []):
        if cluster.folder and cluster.disturbed:
            cluster.heal()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    registry = sys.modules.get("moldau.testing.registry")
    if registry is not None and report.failed:
        with suppress(OSError):
            report.sections += registry.reports()
    return report


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """From the command line, and for one test also from its marker."""
    config = request.config
    options: dict[str, Any] = {
        "seed": config.getoption("--moldau-seed"),
        "data": config.getoption("--moldau-data"),
        "log_level": config.getoption("--moldau-log-level"),
    }
    brokers = config.getoption("--moldau-brokers")
    if brokers is not None:
        options["brokers"] = brokers
    if request.scope == "function":
        marker = request.node.get_closest_marker("moldau")
        if marker is not None:
            options |= _marked(marker, seed_given=options["seed"] is not None)
    return options


def _marked(marker: pytest.Mark, *, seed_given: bool) -> dict[str, Any]:
    if marker.args:
        raise pytest.UsageError(f"pytest.mark.moldau takes keyword arguments: {', '.join(_MARKED)}")
    for name in marker.kwargs:
        if name not in _MARKED:
            from moldau.config.suggestions import did_you_mean

            guess = did_you_mean(name, _MARKED) or f" It takes {', '.join(_MARKED)}"
            raise pytest.UsageError(f"pytest.mark.moldau: {name} is unknown.{guess}")
    # Who asks for a seed on the command line repeats a run.
    return {
        name: value for name, value in marker.kwargs.items() if not (seed_given and name == "seed")
    }


def _broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    from moldau.testing.cluster import Broker

    with Broker(**_options(request)) as broker, _shared(request, broker):
        yield broker


def _cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    from moldau.testing.cluster import Cluster

    options = {"brokers": _CLUSTER_SIZE} | _options(request)
    with Cluster(**options) as cluster, _shared(request, cluster):
        yield cluster


@contextmanager
def _shared(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[None]:
    """One for the session is looked after between tests."""
    shared = request.config.stash.setdefault(_SHARED, [])
    if request.scope == "session":
        shared.append(cluster)
    try:
        yield
    finally:
        if cluster in shared:
            shared.remove(cluster)


@pytest.fixture
def moldau_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker of this test's own; its data is gone afterwards."""
    yield from _broker(request)


@pytest.fixture(scope="session")
def moldau_session_broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """One broker for all tests that ask for it: data that they leave stays, faults do not."""
    yield from _broker(request)


@pytest.fixture
def moldau_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of this test's own, of three brokers unless something else says so."""
    yield from _cluster(request)


@pytest.fixture(scope="session")
def moldau_session_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One cluster for all tests that ask for it; faults that a test leaves are healed after it."""
    yield from _cluster(request)


@pytest.fixture
def moldau_topic(request: pytest.FixtureRequest) -> Iterator[Callable[..., Topic]]:
    """Makes topics by name in the test's broker or cluster: moldau_topic("orders", partitions=3).

    Without a name it makes one up. Those in a broker of the session are deleted after the test.
    """
    used = next((name for name in _FIXTURES if name in request.fixturenames), "moldau_broker")
    cluster: Cluster = request.getfixturevalue(used)
    shared = "session" in used
    with ExitStack() as stack:
        count = 0

        def make(
            name: str | None = None,
            partitions: int = 1,
            *,
            replication_factor: int | None = None,
            config: Mapping[str, Any] | None = None,
        ) -> Topic:
            nonlocal count
            count += 1
            topic = cluster.create_topic(
                name or f"{request.node.originalname or 'topic'}-{count}",
                partitions,
                replication_factor=replication_factor,
                config=config,
            )
            if shared:
                stack.callback(topic.delete)
            return topic

        yield make
