"""Hosted applications in the registry: a definition whose only part is `application`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.spark.hosting.machine.application import HostedApplication

__all__ = ["ApplicationDefinition", "is_application"]

_KEY: Final = "application"


def is_application(definition: Mapping[str, Any]) -> bool:
    return _KEY in definition


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationDefinition:
    """What users want to run: `kind` is who made it (`streams`, `connect`), for lists.

    `digest` is that of the program's file: with other code it is another revision.
    """

    name: str
    kind: str
    program: str
    instances: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            _KEY: {
                "kind": self.kind,
                "program": self.program,
                "instances": self.instances,
                "settings": dict(self.settings),
                "digest": self.digest,
            },
        }

    @classmethod
    def from_json(cls, definition: Mapping[str, Any]) -> ApplicationDefinition:
        fields = definition[_KEY]
        return cls(
            name=definition["name"],
            kind=fields["kind"],
            program=fields["program"],
            instances=fields["instances"],
            settings=fields["settings"],
            digest=fields.get("digest", ""),
        )

    def hosted(self, connection: Mapping[str, Any]) -> HostedApplication:
        """With the deployment's way into the cluster where it has none of its own."""
        return HostedApplication(
            name=self.name,
            program=self.program,
            instances=self.instances,
            settings={**connection, **self.settings},
        )
