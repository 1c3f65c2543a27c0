"""The topics of the metadata image, as the rules see them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from moldau.broker.metadata.machine.image import MetadataImage
from moldau.wire.uuids import ZERO_UUID


class ImageTopicNames:
    """Implements `permissions.TopicNames`."""

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        auto_create: Callable[[], bool] = lambda: False,
    ) -> None:
        self._image = image
        self._auto_create = auto_create

    def name_of(self, topic_id: UUID) -> str | None:
        topic = self._image().topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def id_of(self, name: str) -> UUID:
        topic = self._image().topics_by_name.get(name)
        return ZERO_UUID if topic is None else topic.id

    def names(self) -> Iterable[str]:
        return self._image().topics_by_name

    def __contains__(self, name: object) -> bool:
        return name in self._image().topics_by_name

    @property
    def auto_created(self) -> bool:
        return self._auto_create()
