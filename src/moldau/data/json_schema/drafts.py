"""The drafts of JSON Schema that the registry knows, found by `$schema`."""

from __future__ import annotations

from enum import Enum
from typing import Any


class Draft(Enum):
    """A draft, by the address of its meta-schema."""

    DRAFT_4 = "http://json-schema.org/draft-04/schema"
    DRAFT_6 = "http://json-schema.org/draft-06/schema"
    DRAFT_7 = "http://json-schema.org/draft-07/schema"
    DRAFT_2019_09 = "https://json-schema.org/draft/2019-09/schema"
    DRAFT_2020_12 = "https://json-schema.org/draft/2020-12/schema"

    @property
    def id_keyword(self) -> str:
        return "id" if self is Draft.DRAFT_4 else "$id"

    @property
    def is_modern(self) -> bool:
        """Whether keywords beside a `$ref` count, and items have `prefixItems`."""
        return self in (Draft.DRAFT_2019_09, Draft.DRAFT_2020_12)


#: What a schema without `$schema`, or with one that is not known, is read as.
DEFAULT_DRAFT = Draft.DRAFT_7

_BY_ADDRESS = {
    "json-schema.org/schema": Draft.DRAFT_4,
    **{draft.value.partition("://")[2]: draft for draft in Draft},
}


def draft_named(address: Any) -> Draft | None:
    """The draft of this `$schema`, with http or https, with or without a `#` at its end."""
    if not isinstance(address, str):
        return None
    scheme, _, rest = address.partition("://")
    if scheme not in ("http", "https"):
        return None
    return _BY_ADDRESS.get(rest.removesuffix("#"))


def draft_of(document: Any, default: Draft = DEFAULT_DRAFT) -> Draft:
    """The draft that a document says it is written in."""
    named = draft_named(document.get("$schema")) if isinstance(document, dict) else None
    return named or default
