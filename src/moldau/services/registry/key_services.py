"""KeyServices: the registry's access to the KMS of KEKs that are shared with it.

Settings of a KMS are those of the KEK (`kmsProps`), then those of the registry's properties file
behind `rule.executors._default_.param.`, then what its library finds in the environment. A KMS is
asked in a thread.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any

from moldau.serde.rules.machine.errors import RuleError
from moldau.services.registry.machine.errors import RegistryError
from moldau.services.registry.machine.key_records import Dek, Kek

__all__ = ["KeyServices"]


class KeyServices:
    def __init__(self, params: Mapping[str, str]) -> None:
        self._params = params

    async def new_material(self, kek: Kek, algorithm: str) -> str:
        """A new key, encrypted."""

        def make(kms: Any) -> bytes:
            from moldau.serde.rules.encryption import new_key_message

            return bytes(kms.encrypt(new_key_message(algorithm)))

        return await self._asked(kek, make)

    async def rewrapped(self, kek: Kek, dek: Dek) -> str:
        """The same key, encrypted with what is the KMS's key now."""
        return await self._asked(kek, lambda kms: kms.encrypt(kms.decrypt(_material(dek))))

    async def opened(self, kek: Kek, dek: Dek) -> str:
        """The key in the clear."""
        return await self._asked(kek, lambda kms: kms.decrypt(_material(dek)))

    async def check(self, kek: Kek) -> None:
        """Raises RegistryError if the KMS cannot be used."""
        probe = b"moldau"

        def ask(kms: Any) -> bytes:
            if bytes(kms.decrypt(kms.encrypt(probe))) != probe:
                raise RuleError("it does not decrypt what it encrypted")
            return probe

        await self._asked(kek, ask)

    async def _asked(self, kek: Kek, ask: Callable[[Any], bytes]) -> str:
        def run() -> str:
            from moldau.serde.rules.kms import kms_for

            params = {**self._params, **dict(kek.kms_props)}
            return base64.b64encode(ask(kms_for(kek.kms_type, kek.kms_key_id, params))).decode()

        try:
            return await asyncio.to_thread(run)
        except Exception as error:  # Each library has errors of its own.
            raise RegistryError(
                500, 50070, f"Could not use the kms of kek {kek.name}, {kek.kms_type}: {error}"
            ) from error


def _material(dek: Dek) -> bytes:
    return base64.b64decode(dek.encrypted_key_material or "")
