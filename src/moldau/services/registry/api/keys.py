"""/dek-registry: keys for encrypting fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moldau.http.request import Answer, Request
from moldau.services.registry.api.parameters import (
    json_body,
    key_subject,
    paged,
    prefix_of,
    version_of,
)
from moldau.services.registry.key_services import KeyServices
from moldau.services.registry.machine.decision import Decision
from moldau.services.registry.machine.json_fields import text_field
from moldau.services.registry.machine.key_records import Dek, Kek
from moldau.services.registry.machine.keys import algorithm_of
from moldau.services.registry.machine.schemas import LATEST
from moldau.services.registry.service import RegistryService

__all__ = ["KeysApi"]


class KeysApi:
    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._keys = service.keys
        self._services = KeyServices(service.config.kms_params)

    def _page(self, request: Request, items: list[Any], kind: str) -> list[Any]:
        return paged(request, items, self._service.config.limits[kind])

    # KEKs.

    def list_keks(self, request: Request) -> list[str]:
        prefixes = [prefix_of(request, "")] if "context" in request.path else []
        prefixes = prefixes or request.query.get("subjectPrefix", [])
        names = self._keys.kek_names(prefixes, deleted=request.flag("deleted"))
        return self._page(request, names, "kek")

    def get_kek(self, request: Request) -> dict[str, Any]:
        return self._keys.kek(request.path["name"], deleted=request.flag("deleted")).to_json()

    async def create_kek(self, request: Request) -> Answer:
        body = await json_body(request)
        await self._test_sharing(request, lambda: self._keys.create_kek(body))
        return await self._write(request, lambda: self._keys.create_kek(body))

    async def update_kek(self, request: Request) -> Answer:
        body, name = await json_body(request), request.path["name"]
        await self._test_sharing(request, lambda: self._keys.update_kek(name, body))
        return await self._write(request, lambda: self._keys.update_kek(name, body))

    async def _test_sharing(self, request: Request, decide: Callable[[], Decision[Kek]]) -> None:
        if request.flag("testSharing"):
            kek = decide().response
            if kek.shared:
                await self._services.check(kek)

    async def delete_kek(self, request: Request) -> Answer:
        name, permanent = request.path["name"], request.flag("permanent")
        return await self._change(request, lambda: self._keys.delete_kek(name, permanent=permanent))

    async def undelete_kek(self, request: Request) -> Answer:
        name = request.path["name"]
        return await self._change(request, lambda: self._keys.undelete_kek(name))

    async def test_kek(self, request: Request) -> dict[str, Any]:
        kek = self._keys.shared_kek(request.path["name"])
        await self._services.check(kek)
        return kek.to_json()

    # DEKs.

    def list_subjects(self, request: Request) -> list[str]:
        subjects = self._keys.dek_subjects(request.path["name"], deleted=request.flag("deleted"))
        return self._page(request, subjects, "dek.subject")

    def list_versions(self, request: Request) -> list[int]:
        versions = self._keys.dek_versions(*self._address(request), deleted=request.flag("deleted"))
        return self._page(request, versions, "dek.version")

    async def get_dek(self, request: Request) -> dict[str, Any]:
        version = version_of(request) if "version" in request.path else LATEST
        dek = self._keys.dek(*self._address(request), version, deleted=request.flag("deleted"))
        return await self._opened(dek)

    async def _opened(self, dek: Dek) -> dict[str, Any]:
        """With the key in the clear, if its KEK is shared."""
        kek = self._keys.kek(dek.id.kek_name, deleted=True)
        if not kek.shared or not dek.encrypted_key_material:
            return dek.to_json()
        return {**dek.to_json(), "keyMaterial": await self._services.opened(kek, dek)}

    async def create_dek(self, request: Request) -> Answer:
        body = await json_body(request)
        given = request.path.get("subject") or text_field(body, "subject") or ""
        subject = key_subject(self._service, request, given)
        name, rewrap = request.path["name"], request.flag("rewrap")
        missing = self._keys.missing_material(name, subject, body, rewrap=rewrap)
        key_material = None
        # Another instance that writes makes a key itself.
        if missing is not None and self._service.leadership.is_primary:
            kek, id, old = missing
            if old is None:
                material = await self._services.new_material(kek, id.algorithm)
            else:
                material = await self._services.rewrapped(kek, old)
            body = {**body, "encryptedKeyMaterial": material}
            made = Dek(id=id, encrypted_key_material=material)
            key_material = (await self._opened(made)).get("keyMaterial")

        def shown(dek: Dek) -> dict[str, Any]:
            found = dek.to_json()
            return found if key_material is None else {**found, "keyMaterial": key_material}

        return await self._service.write(
            request,
            lambda: self._keys.create_dek(name, subject, body, rewrap=rewrap),
            shown,
            log=self._service.leadership.keys_log,
        )

    async def delete_dek(self, request: Request) -> Answer:
        version = version_of(request) if "version" in request.path else None
        address, permanent = self._address(request), request.flag("permanent")
        return await self._change(
            request,
            lambda: self._keys.delete_deks(*address, version, permanent=permanent),
        )

    async def undelete_dek(self, request: Request) -> Answer:
        version = version_of(request) if "version" in request.path else None
        address = self._address(request)
        return await self._change(request, lambda: self._keys.undelete_deks(*address, version))

    def _address(self, request: Request) -> tuple[str, str, str]:
        """KEK, subject and algorithm."""
        subject = key_subject(self._service, request, request.path["subject"])
        return request.path["name"], subject, algorithm_of(request.text("algorithm"))

    # Writing.

    async def _write(self, request: Request, decide: Any) -> Answer:
        return await self._service.write(
            request,
            decide,
            lambda key: key.to_json(),
            log=self._service.leadership.keys_log,
        )

    async def _change(self, request: Request, decide: Any) -> Answer:
        """For what has no body."""

        def decided() -> Decision[None]:
            found: Decision[None] = decide()
            return found

        answer = await self._service.write(
            request, decided, lambda _: None, log=self._service.leadership.keys_log
        )
        return Answer(status=204) if answer.status == 200 else answer
