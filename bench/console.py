"""Control Center's pages: `python -m bench.console [--topics 1000 10000] [--views 3]`.

A broker and the console (`moldau console start`) each run in a process of their own; the requests
of a page are those that its script sends. Before each view the console rests for longer than it
keeps lists, as between two clicks. Printed for each page: the CPU time of the console, which does
not depend on the machine's other work, the median of a view, and the slowest view while the console
reads the whole cluster at the same time for its charts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator

import httpx
import psutil

from bench.services import service
from moldau.client import Admin, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from moldau.testing import Broker

LISTS_KEPT_S = 1.1
AIM_MS = {1_000: 200}
AT_ONCE = 500
WITH_RECORDS = 1_000
#: What the script of each page asks for, below the cluster.
PAGES = {
    "overview": ("", "/series"),
    "brokers": ("/brokers",),
    "broker": ("/brokers/1", "/brokers/1/settings"),
    "controllers": ("/quorum",),
    "topics": ("/topics?size=50",),
    "topics, largest first": ("/topics?size=50&sort=-size",),
    "topics, searched": ("/topics?size=50&search=topic-77",),
    "topic": ("/topics/topic-77", "/topics/topic-77/groups"),
    "settings of a topic": ("/topics/topic-77/settings",),
    "groups": ("/groups?size=50",),
    "group": ("/groups/group-7",),
    "dead letters": ("/dead-letters",),
    "transactions": ("/transactions",),
    "streams": ("/streams",),
    "pipelines": ("/pipelines",),
    "mirrors": ("/mirrors",),
    "balancer": ("/balancer", "/balancer/plan"),
    "lineage": ("/lineage",),
    "lineage of a topic": ("/lineage?around=topic:topic-7",),
    "users": ("/users",),
}


def fill(servers: str, topics: int) -> None:
    """Topics, a group for each fifty of them, and records in some of the topics."""
    names = [f"topic-{number}" for number in range(topics)]
    with Admin(bootstrap_servers=servers) as admin:
        for start in range(0, topics, AT_ONCE):
            chunk = names[start : start + AT_ONCE]
            admin.create_topics([NewTopic(name, 1, 1) for name in chunk], timeout=120)
        with Producer(bootstrap_servers=servers) as producer:
            for name in names[:WITH_RECORDS]:
                producer.send(name, b"{}", partition=0)
        for number in range(topics // 50):
            place = TopicPartition(names[number], 0)
            admin.alter_consumer_group_offsets(
                f"group-{number}", {place: OffsetAndMetadata(0)}, timeout=60
            )


def cpu_ms(process: psutil.Process) -> float:
    return 1000 * float(sum(process.cpu_times()[:2]))


def view(client: httpx.Client, requests: tuple[str, ...]) -> float:
    """How long a page's requests take, in milliseconds."""
    began = time.perf_counter()
    for path in requests:
        answer = client.get(f"/api/clusters/default{path}")
        if answer.status_code != 200:
            raise RuntimeError(f"{path}: {answer.status_code} {answer.text[:200]}")
    return 1000 * (time.perf_counter() - began)


def quiet(
    client: httpx.Client, process: psutil.Process, views: int
) -> Iterator[tuple[str, float, float]]:
    """Of each page: CPU and median, in milliseconds. The charts were read once before."""
    for name, requests in PAGES.items():
        view(client, requests)
        times, used = [], 0.0
        for _ in range(views):
            time.sleep(LISTS_KEPT_S)
            before = cpu_ms(process)
            times.append(view(client, requests))
            used += cpu_ms(process) - before
        yield name, used / views, statistics.median(times)


def busy(client: httpx.Client, seconds: float) -> dict[str, float]:
    """The slowest view of each page while the cluster is read again and again."""
    slowest = dict.fromkeys(PAGES, 0.0)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for name, requests in PAGES.items():
            slowest[name] = max(slowest[name], view(client, requests))
    return slowest


def measure(servers: str, topics: int, views: int, seconds: float) -> None:
    resting = ("--override", "refresh.ms=3600000")
    with (
        service("console", servers, *resting) as (host, port, process),
        httpx.Client(base_url=f"http://{host}:{port}", timeout=120) as client,
    ):
        while client.get("/api/clusters/default/series").json()["error"] is not None:
            time.sleep(0.2)
        read_ms = cpu_ms(process)
        print(f"\n{topics:,} topics, start and first reading {read_ms:,.0f} ms of CPU", flush=True)
        print(f"{'':24}  {'CPU ms':>7}  {'ms':>7}")
        for name, used, median in quiet(client, process, views):
            mark = "  over the aim" if median > AIM_MS.get(topics, float("inf")) else ""
            print(f"{name:24}  {used:7.0f}  {median:7.0f}{mark}", flush=True)
        print(f"{process.memory_info().rss / 2**20:.0f} MB")
    # As busy as it can be: nine times as long as a reading took, the next one begins.
    with (
        service("console", servers, "--override", "refresh.ms=500") as (host, port, process),
        httpx.Client(base_url=f"http://{host}:{port}", timeout=120) as client,
    ):
        print("the slowest view while the cluster is read")
        for name, slowest in busy(client, seconds).items():
            print(f"{name:24}  {slowest:7.0f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--views", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    for topics in options.topics:
        with Broker() as broker:
            fill(broker.bootstrap_servers, topics)
            measure(broker.bootstrap_servers, topics, options.views, options.seconds)


if __name__ == "__main__":
    main()
