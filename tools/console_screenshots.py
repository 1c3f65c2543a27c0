"""Takes the pictures of docs/control-center*.md: `python tools/console_screenshots.py [--to DIR]`.

Starts `moldau up` in a directory of its own, gives every page something to show, and opens pages
in Debian's chromium, in light, in dark and as wide as a phone. Look at the pictures afterwards.
`--every DIR` takes every page in all three, to be looked at.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import sync_playwright

from moldau.client import Admin, Consumer, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from moldau.streams import KafkaStreams, State, StreamsBuilder, Topology
from moldau.streams.hosts.query_server import QueryServer

ROOT = Path(__file__).parent.parent
SIZE: Any = {"width": 1280, "height": 860}
PHONE: Any = {"width": 390, "height": 800}
DLQ = "orders-dlq"
SQL = (
    "CREATE STREAM orders (id INT, customer VARCHAR, amount DOUBLE) "
    "WITH (kafka_topic = 'orders', value_format = 'json');"
    "CREATE STREAM big_orders AS SELECT * FROM orders WHERE amount > 80;"
)
#: Name of the picture, path of the page, theme, size.
PICTURES: tuple[tuple[str, str, Any, Any], ...] = (
    ("overview", "", "light", SIZE),
    ("topics", "/topics", "light", SIZE),
    ("topic-settings", "/topics/orders?view=settings", "light", SIZE),
    ("brokers", "/brokers", "light", SIZE),
    ("messages", "/topics/orders/messages", "light", SIZE),
    ("groups", "/groups", "light", SIZE),
    ("group", "/groups/billing", "light", SIZE),
    ("dead-letters", f"/dead-letters/{DLQ}", "light", SIZE),
    ("audit", "/audit", "light", SIZE),
    ("balancer", "/balancer", "light", SIZE),
    ("lineage", "/lineage", "light", SIZE),
    ("streams", "/streams/word-count", "light", SIZE),
    ("sql", "/sql", "light", SIZE),
    ("connector", "/connectors/broken", "dark", SIZE),
    ("phone", "/topics/orders/messages", "light", PHONE),
)


def word_count() -> Topology:
    builder = StreamsBuilder()
    text: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
    words = builder.stream("comments", **text).flat_map_values(str.split, name="split")
    counted = words.group_by(lambda _, word: word, **text).count(store="words")
    counted.to_stream().to("words", key_serde="string", value_serde="long")
    return builder.build()


def fill(servers: str, console: httpx.Client) -> None:
    topics = ("orders", "payments", "clicks", "comments", "words", DLQ)
    with Admin(bootstrap_servers=servers) as admin, Producer(bootstrap_servers=servers) as producer:
        many = {"orders": (6, 2), "clicks": (3, 2)}
        admin.create_topics([NewTopic(name, *many.get(name, (1, 1))) for name in topics])
        for number in range(2_000):
            order = {"id": number, "customer": f"c{number % 40}", "amount": number * 7 % 120}
            headers = [("region", b"eu" if number % 2 else b"us")]
            key = f"c{number % 40}".encode()
            producer.send("orders", json.dumps(order).encode(), key, headers=headers)
        for number in range(12):
            kind = "NumberFormatException" if number % 3 else "TimeoutException"
            headers = [
                ("__connect.errors.topic", b"orders"),
                ("__connect.errors.stage", b"VALUE_CONVERTER"),
                ("__connect.errors.connector.name", b"archive"),
                ("__connect.errors.exception.class.name", f"java.lang.{kind}".encode()),
                ("__connect.errors.exception.message", f"bad value {number}".encode()),
            ]
            producer.send(DLQ, b'{"id": %d}' % number, b"k", headers=headers)
        offsets = {TopicPartition("orders", place): OffsetAndMetadata(300) for place in range(6)}
        admin.alter_consumer_group_offsets("billing", offsets)
    schema = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "int"}]}
    newer = {"name": "note", "type": "string", "default": ""}
    for path, body in (
        ("/schemas/orders-value/versions", {"schema": json.dumps(schema)}),
        (
            "/schemas/orders-value/versions",
            {"schema": json.dumps({**schema, "fields": [*schema["fields"], newer]})},
        ),
        ("/sql/statements", {"sql": SQL}),
        ("/topics", {"name": "returns", "partitions": 3}),
    ):
        console.post(f"/api/clusters/default{path}", json=body).raise_for_status()
    for name, file, topic in (("archive", "/dev/null", "orders"), ("broken", "/no/file", "clicks")):
        config = {"connector.class": "FileStreamSink", "topics": topic, "file": file}
        config |= {"key.converter": "StringConverter", "value.converter": "StringConverter"}
        path = f"/api/clusters/default/connectors/{name}"
        console.put(path, json={"config": config}).raise_for_status()


def flow(servers: str, stopping: threading.Event) -> None:
    """A few records a second until the end."""
    with Producer(bootstrap_servers=servers) as producer:
        for number in itertools.count():
            if stopping.wait(0.02):
                return
            producer.send("comments", b"so much water in the river")
            order = {"id": number, "customer": "c1", "amount": number % 120}
            producer.send("orders", json.dumps(order).encode(), b"c1")


def read_along(servers: str, stopping: threading.Event) -> None:
    """A group with a member, so that a group has something to show."""
    with Consumer(bootstrap_servers=servers, group_id="fraud-check") as consumer:
        consumer.subscribe(["orders"])
        while not stopping.is_set():
            consumer.poll(0.5)


def all_pages(url: str) -> list[tuple[str, str, Any, Any]]:
    query = httpx.get(f"{url}/api/clusters/default/sql").json()["queries"][0]["id"]
    names = {
        "topic": "orders", "group": "billing", "broker": "1", "subject": "orders-value",
        "connector": "archive", "pipeline": "none", "application": "word-count", "query": query,
        "source": "none",
    }  # fmt: skip
    found = []
    for each in httpx.get(f"{url}/api/session").json()["pages"]:
        path = each["path"].format(**names) if "{" in each["path"] else each["path"]
        if "{pipeline}" in each["path"] or "{source}" in each["path"]:
            continue
        path = path.replace("/dead-letters/orders", f"/dead-letters/{DLQ}")
        name = path.strip("/").replace("/", "-") or "overview"
        found += [
            (f"{name}-light", path, "light", SIZE),
            (f"{name}-dark", path, "dark", SIZE),
            (f"{name}-phone", path, "light", PHONE),
        ]
    return found


def take(url: str, folder: Path, pictures: Sequence[tuple[str, str, Any, Any]]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for name, path, theme, size in pictures:
            context = browser.new_context(viewport=size, color_scheme=theme)
            page = context.new_page()
            page.goto(f"{url}/clusters/default{path}")
            page.locator("main[data-ready]").wait_for()
            ready(page, path)
            page.screenshot(path=folder / f"console-{name}.png")
            print(f"console-{name}.png")
            context.close()
        browser.close()


def ready(page: Any, path: str) -> None:
    if path.endswith("/messages"):
        page.get_by_text("records read").wait_for()
    elif path.startswith("/streams/"):
        page.get_by_text("node by node").wait_for()
        # Two refreshes: the rates are those of now.
        page.wait_for_timeout(5_000)
    elif path == "/sql":
        page.get_by_label("Statements").fill("SELECT * FROM big_orders EMIT CHANGES LIMIT 8;")
        page.get_by_role("button", name="Run").click()
        page.get_by_text("8 rows.").wait_for()
    elif path == "/connectors/broken":
        page.get_by_text("FAILED", exact=True).first.wait_for()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "docs/images")
    parser.add_argument("--every", type=Path, help="every page, into this directory")
    arguments = parser.parse_args()
    folder = arguments.every or arguments.to
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        data = f"{scratch}/platform"
        moldau = [sys.executable, "-m", "moldau.cli"]
        up = ["up", "--detach", "--port", "0", "--brokers", "3", "--without", "rest", "--data"]
        subprocess.run([*moldau, *up, data], check=True)
        stopping = threading.Event()
        threads = []
        try:
            status = json.loads(Path(data, "status.json").read_text())
            url = {one["name"]: one["address"] for one in status["services"]}["console"]
            servers = status["bootstrapServers"]
            with httpx.Client(base_url=url, timeout=60) as console:
                fill(servers, console)
            threads = [
                threading.Thread(target=work, args=(servers, stopping))
                for work in (flow, read_along)
            ]
            for thread in threads:
                thread.start()
            application = KafkaStreams(
                word_count(),
                application_id="word-count",
                bootstrap_servers=servers,
                state_dir=f"{scratch}/state",
                application_server="127.0.0.1:7071",
            )
            with application, QueryServer(application):
                application.wait_for(State.RUNNING, 120)
                time.sleep(15)
                take(url, folder, all_pages(url) if arguments.every else PICTURES)
        finally:
            stopping.set()
            for thread in threads:
                thread.join()
            subprocess.run([*moldau, "destroy", "--yes", "--data", data], check=True)


if __name__ == "__main__":
    main()
