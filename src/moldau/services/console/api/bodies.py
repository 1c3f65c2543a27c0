"""Reads the JSON bodies of requests, with errors that name the field."""

from __future__ import annotations

from typing import Any

from moldau.http.request import Request
from moldau.services.console.machine.errors import bad_request
from moldau.services.console.machine.paging import Paging

__all__ = ["Body", "body_of", "paging_of"]


class Body:
    """The fields of a JSON object. Raises HttpError with 400."""

    def __init__(self, fields: dict[str, Any], where: str = "") -> None:
        self.fields = fields
        self._where = where

    def __contains__(self, name: str) -> bool:
        return self.fields.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        found = self.fields.get(name, default)
        if not isinstance(found, str):
            raise bad_request(f"The field {self._where}{name} must be a text.")
        return found

    def integer(self, name: str, default: int | None = None) -> int:
        found = self.fields.get(name, default)
        if isinstance(found, bool) or not isinstance(found, int):
            raise bad_request(f"The field {self._where}{name} must be a whole number.")
        return found

    def optional_integer(self, name: str) -> int | None:
        return None if self.fields.get(name) is None else self.integer(name)

    def flag(self, name: str, default: bool = False) -> bool:
        found = self.fields.get(name, default)
        if not isinstance(found, bool):
            raise bad_request(f"The field {self._where}{name} must be true or false.")
        return found

    def items(self, name: str, default: list[Any] | None = None) -> list[Any]:
        found = self.fields.get(name, default)
        if not isinstance(found, list):
            raise bad_request(f"The field {self._where}{name} must be a list.")
        return found

    def objects(self, name: str) -> list[Body]:
        found = []
        for index, each in enumerate(self.items(name)):
            where = f"{self._where}{name}[{index}]"
            if not isinstance(each, dict):
                raise bad_request(f"{where} must be an object.")
            found.append(Body(each, f"{where}."))
        return found

    def mapping(self, name: str) -> dict[str, Any]:
        found = self.fields.get(name, {})
        if not isinstance(found, dict):
            raise bad_request(f"The field {self._where}{name} must be an object.")
        return found


async def body_of(request: Request) -> Body:
    found = await request.json()
    if not isinstance(found, dict):
        raise bad_request("The body must be a JSON object.")
    return Body(found)


def paging_of(request: Request) -> Paging:
    return Paging.of(
        search=request.text("search"),
        page=request.number("page"),
        size=request.number("size"),
        sort=request.text("sort"),
    )
