"""A hosted application as data: which program, how many instances, with which settings."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from moldau.spark.runtime.machine.errors import SparkRuntimeError

__all__ = ["INSTANCES_MAX", "HostedApplication", "process_id"]

INSTANCES_MAX: Final = 1_000
_NAMESPACE: Final = uuid.UUID("6f0c61f4-5b36-4f53-9c0e-0a6d2d0b7f1e")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedApplication:
    """`program` is `package.module:function`; the function is called with a `HostedContext`."""

    name: str
    program: str
    instances: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        module, colon, function = self.program.partition(":")
        if not (module and colon and function.isidentifier()):
            raise SparkRuntimeError(
                f"the program {self.program!r} of {self.name}: expected package.module:function"
            )
        if not 1 <= self.instances <= INSTANCES_MAX:
            raise SparkRuntimeError(
                f"{self.name}: {self.instances} instances: choose between 1 and {INSTANCES_MAX}"
            )

    def to_json(self) -> str:
        return json.dumps(
            {
                "name": self.name,
                "program": self.program,
                "instances": self.instances,
                "settings": dict(self.settings),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> HostedApplication:
        fields = json.loads(text)
        return cls(
            name=fields["name"],
            program=fields["program"],
            instances=fields["instances"],
            settings=fields["settings"],
        )


def process_id(application: str, instance: int) -> str:
    """The identity of an instance: the same on every worker and after every restart.

    Group members and transactional ids are made from it. So a successor takes the partitions over
    without waiting for a session to time out, and fences a predecessor that is still alive.
    """
    return str(uuid.uuid5(_NAMESPACE, f"{application}/{instance}"))
