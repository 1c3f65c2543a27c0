"""The sections of the services beside the cluster: registry, Connect, SQL, pipelines and others."""

from __future__ import annotations

from typing import Final

from moldau.services.console.api.balancer import BalancerHandlers
from moldau.services.console.api.connectors import ConnectorHandlers
from moldau.services.console.api.lineage import LineageHandlers
from moldau.services.console.api.mirrors import MirrorHandlers
from moldau.services.console.api.pipelines import PipelineHandlers
from moldau.services.console.api.platform import PlatformHandlers
from moldau.services.console.api.schemas import SchemaHandlers
from moldau.services.console.api.sql import SqlHandlers
from moldau.services.console.api.streams import StreamsHandlers

__all__ = ["SERVICE_SECTIONS"]

SERVICE_SECTIONS: Final = (
    BalancerHandlers,
    ConnectorHandlers,
    LineageHandlers,
    MirrorHandlers,
    PipelineHandlers,
    PlatformHandlers,
    SchemaHandlers,
    SqlHandlers,
    StreamsHandlers,
)
