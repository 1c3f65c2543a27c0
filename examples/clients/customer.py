"""Made from Avro schemas by `moldau schemas generate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(slots=True, kw_only=True)
class Customer:
    """Somebody who buys."""

    id: int
    name: str
    email: str | None = None

    SCHEMA: ClassVar[str] = '{"type":"record","name":"Customer","namespace":"shop","doc":"Somebody who buys.","fields":[{"name":"id","type":"int"},{"name":"name","type":"string"},{"name":"email","type":["null","string"],"default":null}]}'
    FIELDS: ClassVar[frozenset[str]] = frozenset({'id', 'name', 'email'})

    def to_dict(self) -> dict[str, Any]:
        return {
            'id': self.id,
            'name': self.name,
            'email': self.email,
        }

    @classmethod
    def from_dict(cls, data: Any) -> Customer:
        return cls(
            id=data['id'],
            name=data['name'],
            email=data['email'],
        )
