"""APIs and errors by Kafka's names; the error for a misspelt one has the closest right spelling."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.config.suggestions import did_you_mean
from moldau.wire.apis import API_BY_KEY
from moldau.wire.errors import ErrorCode

__all__ = ["api_keys", "error_number"]


def api_keys(names: Iterable[str]) -> tuple[int, ...]:
    """The numbers of APIs; upper and lower case, underscores and dashes make no difference."""
    known = {_plain(api.name): key for key, api in API_BY_KEY.items()}
    keys = []
    for name in names:
        key = known.get(_plain(name))
        if key is None:
            guess = did_you_mean(name, [api.name for api in API_BY_KEY.values()])
            raise ValueError(f"{name!r} is not a Kafka API such as Produce or Fetch.{guess}")
        keys.append(int(key))
    return tuple(keys)


def error_number(error: str | int) -> int:
    """The code of an error."""
    try:
        return int(ErrorCode[error.upper()] if isinstance(error, str) else ErrorCode(error))
    except (KeyError, ValueError):
        guess = did_you_mean(str(error).upper(), ErrorCode.__members__)
        raise ValueError(
            f"{error!r} is not a Kafka error such as NOT_LEADER_OR_FOLLOWER.{guess}"
        ) from None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
