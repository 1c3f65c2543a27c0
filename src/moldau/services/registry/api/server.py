"""What the registry says of itself."""

from __future__ import annotations

from typing import Any

from moldau import __version__
from moldau.http.request import Request
from moldau.services.registry.service import RegistryService

__all__ = ["ServerApi"]


class ServerApi:
    def __init__(self, service: RegistryService) -> None:
        self._service = service

    def root(self, request: Request) -> dict[str, Any]:
        return {}

    def cluster_id(self, request: Request) -> dict[str, Any]:
        clusters = {
            "kafka-cluster": self._service.kafka_cluster_id,
            "schema-registry-cluster": self._service.config.group_id,
        }
        return {"scope": {"path": [], "clusters": clusters}, "id": ""}

    def version(self, request: Request) -> dict[str, Any]:
        return {"version": __version__, "commitId": "moldau"}

    def deployment(self, request: Request) -> dict[str, Any]:
        return {"attributes": []}
