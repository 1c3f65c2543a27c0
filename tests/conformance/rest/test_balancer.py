"""Two proxies behind a balancer (haproxy): v3 on any of them, instances of v2 by their base_uri."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from support.http_service import running
from support.ports import free_port
from support.processes import BrokerProcess
from support.rest import JSON_V2, V2, Proxy, proxy_of
from support.waiting import eventually

pytestmark = pytest.mark.long("a scenario with two proxies and haproxy")

HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
RECORDS = 40


@contextmanager
def balancer(folder: Path, urls: list[str]) -> Iterator[str]:
    """In turns among the proxies whose /health answers."""
    if HAPROXY is None:
        pytest.skip("haproxy is not installed: make tools")
    port = free_port()
    servers = "".join(
        f"  server proxy{number} {urlsplit(url).netloc} check inter 200ms fall 1 rise 1\n"
        for number, url in enumerate(urls)
    )
    file = folder / "haproxy.cfg"
    file.write_text(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n"
        f"frontend front\n  bind 127.0.0.1:{port}\n  default_backend proxies\n"
        "backend proxies\n  balance roundrobin\n  option httpchk GET /health\n"
        f"  option redispatch\n{servers}"
    )
    with (folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen([HAPROXY, "-db", "-f", str(file)], stdout=log, stderr=log)
        try:
            url = f"http://127.0.0.1:{port}"
            eventually(lambda: _is_up(url), what="haproxy answers")
            yield url
        finally:
            process.terminate()
            process.wait(10)


def _is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").status_code == 200
    except httpx.HTTPError:
        return False


def test_two_proxies_behind_a_balancer(broker: BrokerProcess, proxy: Proxy, tmp_path: Path) -> None:
    """Clients know the balancer's address alone; then one of the proxies goes."""
    topic = proxy.topic(1)
    ports = [free_port(), free_port()]
    with ExitStack() as second, ExitStack() as first:
        for number, (stack, port) in enumerate(zip((first, second), ports, strict=True)):
            address = f"http://127.0.0.1:{port}"
            settings = {"listeners": address, "advertised_listeners": address, "id": f"p{number}"}

            def make(settings: dict[str, str] = settings) -> object:
                return proxy_of(broker.bootstrap, **settings)

            stack.enter_context(running(make))  # type: ignore[arg-type]
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        with balancer(tmp_path, urls) as url, httpx.Client(base_url=url, timeout=60) as client:
            instances = [_instance(client, topic, number) for number in range(4)]
            # Created in turns, so that both proxies have some, and each says which.
            assert {urlsplit(each).port for each in instances} == set(ports)
            # The balancer takes a request to either of them: only one knows the instance.
            statuses = {
                client.get(urlsplit(instances[0]).path + "/subscription").status_code
                for _ in range(4)
            }
            assert statuses == {200, 404}
            assert sorted(_produced(client, topic, 0)) == list(range(RECORDS))
            for each in instances:
                assert _read(each) == list(range(RECORDS))
            assert _paged(client, topic) == list(range(RECORDS))

            first.close()
            eventually(
                lambda: all(client.get("/health").status_code == 200 for _ in range(4)),
                what="haproxy leaves out the proxy that has gone",
            )
            # Nothing of v3 was in the proxy that has gone: cursors go on, and producing.
            assert _paged(client, topic) == list(range(RECORDS))
            assert sorted(_produced(client, topic, RECORDS)) == list(range(RECORDS, 2 * RECORDS))
            left = [each for each in instances if urlsplit(each).port == ports[1]]
            assert len(left) == 2
            for each in left:
                assert _read(each) == list(range(RECORDS, 2 * RECORDS))


def _instance(client: httpx.Client, topic: str, number: int) -> str:
    """The base_uri of a new one that reads the topic in a group of its own."""
    body = {"format": "json", "auto.offset.reset": "earliest", "fetch.min.bytes": 1}
    headers = {"Content-Type": V2}
    made = client.post(f"/consumers/balanced-{number}", json=body, headers=headers)
    assert made.status_code == 200, made.text
    uri: str = made.json()["base_uri"]
    # From here on at the proxy itself.
    answer = httpx.post(f"{uri}/subscription", json={"topics": [topic]}, headers=headers)
    assert answer.status_code == 204, answer.text
    return uri


def _produced(client: httpx.Client, topic: str, start: int) -> list[int]:
    """The offsets of so many records, each of a request of its own."""
    found = []
    for number in range(start, start + RECORDS):
        answer = client.post(
            f"/topics/{topic}",
            content=json.dumps({"records": [{"value": number}]}),
            headers={"Content-Type": JSON_V2},
        )
        found.append(answer.json()["offsets"][0]["offset"])
    return found


def _read(uri: str) -> list[int]:
    """The next values of an instance."""
    values: list[int] = []

    def read() -> bool:
        headers = {"Accept": JSON_V2}
        answer = httpx.get(f"{uri}/records?timeout=3000", headers=headers, timeout=60)
        values.extend(each["value"] for each in answer.json())
        return len(values) >= RECORDS

    eventually(read, what=f"{RECORDS} records")
    return values


def _paged(client: httpx.Client, topic: str) -> list[int]:
    """The first values by v3, page by page through the balancer."""
    cluster = client.get("/v3/clusters").json()["data"][0]["cluster_id"]
    path = f"/v3/clusters/{cluster}/topics/{topic}/partitions/-/records"
    page = client.get(path, params={"value_format": "JSON", "max_records": 7}).json()
    values: list[int] = []
    while page["data"] and len(values) < RECORDS:
        values += [each["value"]["data"] for each in page["data"]]
        link = urlsplit(page["metadata"]["next"])
        page = client.get(f"{link.path}?{link.query}").json()
    return values[:RECORDS]
