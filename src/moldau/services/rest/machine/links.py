"""URLs and Confluent resource names (CRNs) in the answers of API v3."""

from __future__ import annotations

from urllib.parse import quote

__all__ = ["Links"]


class Links:
    """`base` is scheme, host and prefix as the client used them: `http://host:8082/v3`."""

    __slots__ = ("base", "crn_authority")

    def __init__(self, base: str, crn_authority: str = "") -> None:
        self.base = base
        self.crn_authority = crn_authority

    def url(self, *segments: str | int) -> str:
        """Segments are percent-encoded, so that any name can be followed."""
        encoded = "/".join(quote(str(each), safe="-._~*:@!$&'(),;=+") for each in segments)
        return f"{self.base}/{encoded}"

    def related(self, *segments: str | int) -> dict[str, str]:
        return {"related": self.url(*segments)}

    def crn(self, *pairs: str | int) -> str:
        """`crn("kafka", "c1", "topic", "t")` is `crn:///kafka=c1/topic=t`; a last name without a
        value stands alone."""
        parts = [str(each) for each in pairs]
        named = [
            f"{parts[at]}={quote(parts[at + 1], safe='-._~*:@')}"
            for at in range(0, len(parts) - 1, 2)
        ]
        if len(parts) % 2:
            named.append(parts[-1])
        return f"crn://{self.crn_authority}/" + "/".join(named)
