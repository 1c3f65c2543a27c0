"""Offline replicas in metadata responses."""

from __future__ import annotations

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.broker.metadata.machine.model import Partition


def offline_replicas(partition: Partition, image: MetadataImage) -> list[int]:
    """Replicas on brokers that are gone or fenced, or in a log directory that failed."""
    offline = []
    for node, directory in zip(partition.replicas, partition.directories, strict=True):
        broker = image.brokers.get(node)
        if broker is None or broker.fenced or not broker.has_online(directory):
            offline.append(node)
    return offline
