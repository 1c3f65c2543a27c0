"""Answers in the form of Jolokia, the usual way to read MBeans over HTTP.

`GET /jolokia/read/<mbean>[/<attribute>]`, `/jolokia/search/<pattern>`, `/jolokia/list` and
`/jolokia/version`, and a POST with the same as JSON (one request or a list of them). In a path `/`
is written `!/` and `!` is `!!`, as in Jolokia. Reading only: nothing can be set or executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from moldau.metrics.names import mbean_pattern
from moldau.metrics.registry import Sample, attributes_of

__all__ = ["answer", "answer_path"]

AGENT: Final = {"product": "moldau", "agent": "2.0.0", "protocol": "7.2", "config": {}}
_NOT_FOUND: Final = "javax.management.InstanceNotFoundException"
_NO_ATTRIBUTE: Final = "javax.management.AttributeNotFoundException"
_MALFORMED: Final = "javax.management.MalformedObjectNameException"

Beans = dict[str, dict[str, float | int | str]]


def answer_path(path: str, samples: Callable[[], Iterable[Sample]], now_s: int) -> dict[str, Any]:
    """The answer to a GET; `path` is what follows `/jolokia/`, decoded."""
    words = [re.sub("!(.)", r"\1", word) for word in re.split(r"(?<!!)/", path)]
    verb, rest = words[0] or "version", [word for word in words[1:] if word]
    request: dict[str, Any] = {"type": verb}
    if rest:
        request["mbean"] = rest[0]
    if len(rest) > 1:
        names = rest[1].split(",")
        request["attribute"] = names[0] if len(names) == 1 else names
    return answer(request, samples, now_s)


def answer(request: Any, samples: Callable[[], Iterable[Sample]], now_s: int) -> dict[str, Any]:
    """The answer to one request."""
    if not isinstance(request, dict):
        return _error(request, 400, "java.lang.IllegalArgumentException", "not a request", now_s)
    try:
        value = _value(request, samples)
    except _Refused as refused:
        return _error(request, refused.status, refused.kind, str(refused), now_s)
    return {"request": request, "value": value, "timestamp": now_s, "status": 200}


class _Refused(Exception):
    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def _error(request: Any, status: int, kind: str, message: str, now_s: int) -> dict[str, Any]:
    return {
        "request": request,
        "status": status,
        "error_type": kind,
        "error": f"{kind} : {message}",
        "timestamp": now_s,
    }


def _value(request: dict[str, Any], samples: Callable[[], Iterable[Sample]]) -> Any:
    verb = str(request.get("type", "")).lower()
    if verb == "version":
        return AGENT
    if verb == "list":
        return _listing(samples())
    if verb not in ("read", "search"):
        raise _Refused(
            403, "java.lang.SecurityException", f"{verb}: only read, search, list and version"
        )
    name = request.get("mbean")
    try:
        pattern = mbean_pattern(str(name))
    except ValueError as error:
        raise _Refused(400, _MALFORMED, str(error)) from None
    found = _beans(samples(), pattern)
    if verb == "search":
        return sorted(found)
    is_pattern = "*" in str(name) or "?" in str(name)
    if not found and not is_pattern:
        raise _Refused(404, _NOT_FOUND, str(name))
    wanted = request.get("attribute")
    if is_pattern:
        return {bean: _chosen(bean, found[bean], wanted) for bean in sorted(found)}
    chosen = _chosen(str(name), found[next(iter(found))], wanted)
    return chosen[wanted] if isinstance(wanted, str) else chosen


def _beans(samples: Iterable[Sample], pattern: re.Pattern[str]) -> Beans:
    found: Beans = {}
    for spec, values, reading in samples:
        bean = spec.mbean(values)
        if pattern.fullmatch(bean):
            found.setdefault(bean, {}).update(attributes_of(spec, reading))
    return found


def _chosen(
    bean: str, attributes: dict[str, float | int | str], wanted: Any
) -> dict[str, float | int | str]:
    if wanted is None:
        return attributes
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in attributes:
            raise _Refused(404, _NO_ATTRIBUTE, f"{bean} has no attribute {name}")
    return {name: attributes[name] for name in names}


def _listing(samples: Iterable[Sample]) -> dict[str, Any]:
    domains: dict[str, Any] = {}
    for spec, values, reading in samples:
        bean = spec.mbean(values)
        domain, _, properties = bean.partition(":")
        known = domains.setdefault(domain, {}).setdefault(
            properties, {"desc": spec.help, "attr": {}}
        )
        for name, value in attributes_of(spec, reading).items():
            kind = "java.lang.String" if isinstance(value, str) else "double"
            known["attr"][name] = {"rw": False, "type": kind, "desc": spec.help}
    return domains
