"""A REST Proxy in a test, and requests to it."""

from __future__ import annotations

import itertools
from typing import Any

import httpx

from moldau.client import Admin, NewTopic
from moldau.services.rest.config import RestConfig
from moldau.services.rest.service import RestService
from support.http_service import Running
from support.processes import BrokerProcess

#: Of topics; proxies of one test file share a broker.
_numbers = itertools.count(1)
V2 = "application/vnd.kafka.v2+json"
JSON_V2 = "application/vnd.kafka.json.v2+json"
BINARY_V2 = "application/vnd.kafka.binary.v2+json"


def proxy_of(bootstrap: str, **properties: str) -> RestService:
    texts = {name.replace("_", "."): value for name, value in properties.items()}
    return RestService(
        RestConfig.of(
            {
                "bootstrap.servers": bootstrap,
                "listeners": "http://127.0.0.1:0",
                "producer.max.block.ms": "3000",
                **texts,
            }
        )
    )


class Proxy:
    """Requests to a proxy: `ask` checks the status and returns the body."""

    def __init__(self, service: Running, broker: BrokerProcess) -> None:
        self.service = service
        self.url = service.url
        self.bootstrap = broker.bootstrap
        self._client = httpx.Client(base_url=service.url, timeout=60)
        self._cluster = ""

    @property
    def cluster(self) -> str:
        """The path of the cluster in v3."""
        if not self._cluster:
            found = self.ask("GET", "/v3/clusters")["data"][0]["cluster_id"]
            self._cluster = f"/v3/clusters/{found}"
        return self._cluster

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str | None = None,
        **options: Any,
    ) -> httpx.Response:
        headers = {"Accept": accept} if accept is not None else {}
        if isinstance(body, bytes | str):
            options["content"] = body
        elif body is not None:
            options["json"] = body
        if body is not None:
            headers["Content-Type"] = content_type
        return self._client.request(method, path, headers=headers, **options)

    def ask(
        self, method: str, path: str, body: Any = None, *, status: int = 200, **how: Any
    ) -> Any:
        answer = self.send(method, path, body, **how)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def v2(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        return self.ask(method, path, body, **{"content_type": V2, **how})

    def topic(self, partitions: int = 1, **config: str) -> str:
        """A new one."""
        name = f"topic-{next(_numbers)}"
        with Admin({"bootstrap.servers": self.bootstrap}) as admin:
            configs = {key.replace("_", "."): value for key, value in config.items()}
            admin.create_topics([NewTopic(name, partitions, 1, configs=configs)])
        # Kafka answers before every part of the broker knows the topic.
        for _ in range(100):
            if self.send("GET", f"/topics/{name}/partitions/{partitions - 1}/offsets").is_success:
                break
        return name
