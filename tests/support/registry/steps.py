"""The steps of the feature files, as requests and checks (see the vectors' README)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from support.registry.client import Response, RestClient, segment
from support.registry.gherkin import Scenario, Step

__all__ = ["UnknownStep", "run_scenario"]

_STEPS: list[tuple[re.Pattern[str], Callable[..., None]]] = []
_STORED = re.compile(r"\{\{(\w+)\}\}")


class UnknownStep(Exception):
    """A step that the runner does not know."""


def step(*patterns: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def add(function: Callable[..., None]) -> Callable[..., None]:
        for pattern in patterns:
            _STEPS.append((re.compile(pattern), function))
        return function

    return add


class World:
    """What a scenario remembers."""

    def __init__(self, client: RestClient) -> None:
        self.client = client
        self.response: Response | None = None
        self.stored: dict[str, Any] = {}
        self.results: list[Response] = []
        self.readers: list[Response] = []
        self.own_subjects: list[str] = []

    def fill(self, text: str) -> str:
        return _STORED.sub(lambda found: str(self.stored[found[1]]), text)

    def ask(self, method: str, path: str, body: Any = None, raw: bytes | None = None) -> None:
        self.response = self.client.ask(method, self.fill(path), body, raw=raw)

    @property
    def last(self) -> Response:
        assert self.response is not None, "no request was sent"
        return self.response

    def field(self, name: str) -> Any:
        found = self.last.json
        assert isinstance(found, dict), f"{found!r} is no object"
        return found.get(name)


def run_scenario(scenario: Scenario, client: RestClient) -> None:
    world = World(client)
    for each in scenario.steps:
        try:
            _run(world, each)
        except AssertionError as error:
            shown = "" if world.response is None else f"\n  {world.response.status} {_cut(world)}"
            raise AssertionError(
                f"{scenario.file}:{each.line} {each.text}: {error}{shown}"
            ) from None


def _cut(world: World) -> str:
    return "" if world.response is None else world.response.body[:600].decode("utf-8", "replace")


def _run(world: World, each: Step) -> None:
    for pattern, function in _STEPS:
        found = pattern.fullmatch(each.text)
        if found is not None:
            arguments = list(found.groups())
            if each.document is not None:
                arguments.append(each.document)
            function(world, *arguments)
            return
    raise UnknownStep(each.text)


# Requests.


@step(r"the schema registry is running", r"no subjects exist")
def _running(world: World) -> None:
    world.ask("GET", "/")


@step(r"the audit log should contain an event:")
def _nothing(world: World) -> None:
    """Not a part of Confluent's registry."""


@step(r'I (GET|DELETE|PATCH|POST) "(.*)"')
def _plain(world: World, method: str, path: str) -> None:
    world.ask(method, path)


@step(r'I (POST|PUT|DELETE) "(.*)" with body:')
def _with_body(world: World, method: str, path: str, document: str) -> None:
    world.ask(method, path, raw=world.fill(document).encode())


def _register(world: World, subject: str, document: str, kind: str | None, **more: Any) -> None:
    world.response = world.client.register(world.fill(subject), document, kind, **more)


@step(r'subject "([^"]*)" has schema:')
def _has_schema(world: World, subject: str, document: str) -> None:
    _register(world, subject, document, None)
    _status(world, "200")


@step(r'subject "([^"]*)" has "([^"]*)" schema:')
def _has_typed_schema(world: World, subject: str, kind: str, document: str) -> None:
    _register(world, subject, document, kind)
    _status(world, "200")


@step(
    r'subject "([^"]*)" has "([^"]*)" schema with reference "([^"]*)" from subject "([^"]*)" '
    r"version (\d+):"
)
def _has_referring(
    world: World, subject: str, kind: str, name: str, other: str, version: str, document: str
) -> None:
    reference = {"name": name, "subject": other, "version": int(version)}
    _register(world, subject, document, kind, references=[reference])
    _status(world, "200")


@step(r'I register a schema under subject "([^"]*)":')
def _registers(world: World, subject: str, document: str) -> None:
    _register(world, subject, document, None)


@step(r'I register a "([^"]*)" schema under subject "([^"]*)":')
def _registers_typed(world: World, kind: str, subject: str, document: str) -> None:
    _register(world, subject, document, kind)


@step(r'I register a (?:"([^"]*)" )?schema under subject "([^"]*)" with references:')
def _registers_whole(world: World, kind: str | None, subject: str, document: str) -> None:
    body = json.loads(world.fill(document))
    if kind is not None:
        body["schemaType"] = kind
    world.ask("POST", f"/subjects/{segment(subject)}/versions", body)


@step(r'I import a schema with ID (\d+) under subject "([^"]*)" version (\d+):')
def _imports(world: World, id: str, subject: str, version: str, document: str) -> None:
    _register(world, subject, document, None, id=int(id), version=int(version))


@step(
    r"(?:the global compatibility level is|I set the global config to|"
    r'I set the global compatibility level to) "([^"]*)"'
)
def _global_level(world: World, level: str) -> None:
    world.ask("PUT", "/config", {"compatibility": level})


@step(
    r'subject "([^"]*)" has compatibility level "([^"]*)"',
    r'I set the config for subject "([^"]*)" to "([^"]*)"',
)
def _subject_level(world: World, subject: str, level: str) -> None:
    world.ask("PUT", f"/config/{segment(subject)}", {"compatibility": level})


@step(r'(?:the global mode is|I set the global mode to) "([^"]*)"')
def _global_mode(world: World, mode: str) -> None:
    world.ask("PUT", "/mode?force=true", {"mode": mode})


@step(r'subject "([^"]*)" has mode "([^"]*)"', r'I set the mode for subject "([^"]*)" to "([^"]*)"')
def _subject_mode(world: World, subject: str, mode: str) -> None:
    world.ask("PUT", f"/mode/{segment(subject)}?force=true", {"mode": mode})


_GETS = {
    r"I get schema by ID (\S+)": "/schemas/ids/{0}",
    r"I get the raw schema by ID (\S+)": "/schemas/ids/{0}/schema",
    r'I get version (\S+) of subject "([^"]*)"': "/subjects/{1}/versions/{0}",
    r'I get the latest version of subject "([^"]*)"': "/subjects/{0}/versions/latest",
    r'I get the raw schema for subject "([^"]*)" version (\S+)': (
        "/subjects/{0}/versions/{1}/schema"
    ),
    r'I get the referenced by for subject "([^"]*)" version (\S+)': (
        "/subjects/{0}/versions/{1}/referencedby"
    ),
    r"I list all subjects": "/subjects",
    r"I list subjects with deleted": "/subjects?deleted=true",
    r'I list versions of subject "([^"]*)"': "/subjects/{0}/versions",
    r"I get the schema types": "/schemas/types",
    r"I get the subjects for schema ID (\S+)": "/schemas/ids/{0}/subjects",
    r"I get the subjects for the stored schema ID": "/schemas/ids/{{{{schema_id}}}}/subjects",
    r"I get versions for schema ID (\S+)": "/schemas/ids/{0}/versions",
    r"I get the stored schema by ID": "/schemas/ids/{{{{schema_id}}}}",
    r"I list all schemas": "/schemas",
    r"I get the cluster ID": "/v1/metadata/id",
    r"I get the server version": "/v1/metadata/version",
    r"I get the contexts": "/contexts",
    r"I get the global config": "/config",
    r'I get the config for subject "([^"]*)"': "/config/{0}",
    r"I get the global mode": "/mode",
    r'I get the mode for subject "([^"]*)"': "/mode/{0}",
}
_DELETES = {
    r'I delete subject "([^"]*)"': "/subjects/{0}",
    r'I permanently delete subject "([^"]*)"': "/subjects/{0}?permanent=true",
    r'I delete version (\S+) of subject "([^"]*)"': "/subjects/{1}/versions/{0}",
    r'I permanently delete version (\S+) of subject "([^"]*)"': (
        "/subjects/{1}/versions/{0}?permanent=true"
    ),
    r"I delete the global config": "/config",
    r'I delete the config for subject "([^"]*)"': "/config/{0}",
    r"I delete the global mode": "/mode",
    r'I delete the mode for subject "([^"]*)"': "/mode/{0}",
}


def _add_paths(method: str, table: dict[str, str]) -> None:
    for pattern, template in table.items():

        def ask(world: World, *parts: str, _template: str = template) -> None:
            filled = [world.fill(each) for each in parts]
            path = world.fill(_template.format(*map(segment, filled)))
            world.ask(method, path)

        step(pattern)(ask)


_add_paths("GET", _GETS)
_add_paths("DELETE", _DELETES)


@step(r'I lookup (?:a "([^"]*)" )?schema in subject "([^"]*)"( with deleted)?:')
def _looks_up(
    world: World, kind: str | None, subject: str, deleted: str | None, document: str
) -> None:
    body = {"schema": document} if kind is None else {"schema": document, "schemaType": kind}
    query = "?deleted=true" if deleted else ""
    world.ask("POST", f"/subjects/{segment(subject)}{query}", body)


@step(
    r'I check compatibility of (?:"([^"]*)" )?schema against (all versions of )?'
    r'subject "([^"]*)"(?: version (\S+))?:'
)
def _checks(
    world: World,
    kind: str | None,
    every: str | None,
    subject: str,
    version: str | None,
    document: str,
) -> None:
    body = {"schema": document} if kind is None else {"schema": document, "schemaType": kind}
    path = f"/compatibility/subjects/{segment(subject)}/versions"
    world.ask("POST", path if every else f"{path}/{version or 'latest'}", body)


@step(
    r'I check compatibility of "([^"]*)" schema with reference "([^"]*)" from subject "([^"]*)" '
    r'version (\d+) against subject "([^"]*)":'
)
def _checks_referring(
    world: World, kind: str, name: str, other: str, version: str, subject: str, document: str
) -> None:
    body = {
        "schema": document,
        "schemaType": kind,
        "references": [{"name": name, "subject": other, "version": int(version)}],
    }
    world.ask("POST", f"/compatibility/subjects/{segment(subject)}/versions/latest", body)


# Checks.


@step(r"the response status should be (\d+)")
def _status(world: World, status: str) -> None:
    assert world.last.status == int(status), f"status {world.last.status}"


@step(r"the response should have error code (\d+)")
def _error_code(world: World, code: str) -> None:
    assert world.field("error_code") == int(code)


@step(r'the response (?:body )?should contain "(.*)"')
def _contains(world: World, text: str) -> None:
    assert world.fill(text).replace('\\"', '"') in _texts(world)


@step(r'the response (?:body )?should not contain "(.*)"')
def _contains_not(world: World, text: str) -> None:
    assert world.fill(text).replace('\\"', '"') not in _texts(world)


def _texts(world: World) -> str:
    return world.last.text


@step(r"the response should be valid JSON")
def _valid(world: World) -> None:
    json.loads(world.last.body)


@step(r'the response should have field "([^"]*)"')
def _has_field(world: World, name: str) -> None:
    assert name in world.last.json


@step(r'the response should not have field "([^"]*)"')
def _has_no_field(world: World, name: str) -> None:
    assert name not in world.last.json


@step(r'the response field "([^"]*)" should be empty or absent')
def _is_empty(world: World, name: str) -> None:
    assert not world.field(name)


@step(r'the response field "([^"]*)" should be "(.*)"')
def _is_text(world: World, name: str, text: str) -> None:
    assert _shown(world.field(name)) == world.fill(text), _shown(world.field(name))


@step(r'the response field "([^"]*)" should be (-?\d+)')
def _is_number(world: World, name: str, number: str) -> None:
    assert world.field(name) == int(number), world.field(name)


@step(r'the response field "([^"]*)" should be (true|false)')
def _is_flag(world: World, name: str, flag: str) -> None:
    assert world.field(name) is (flag == "true"), world.field(name)


@step(r'the response field "([^"]*)" should be an array(?: of length (\d+))?')
def _is_array(world: World, name: str, length: str | None) -> None:
    found = world.field(name)
    assert isinstance(found, list)
    assert length is None or len(found) == int(length)


@step(r"the response should be an array of length (\d+)")
def _array_length(world: World, length: str) -> None:
    if int(length) == 0 and world.last.text in ("", "null"):
        return
    found = world.last.json
    assert isinstance(found, list)
    assert len(found) == int(length), f"{len(found)} elements"


@step(r'the response array should contain "([^"]*)"')
def _array_contains(world: World, text: str) -> None:
    assert world.fill(text) in [_shown(each) for each in world.last.json]


@step(r'the response array should not contain "([^"]*)"')
def _array_lacks(world: World, text: str) -> None:
    assert world.fill(text) not in [_shown(each) for each in world.last.json]


@step(r"the response array should contain integer (\d+)")
def _array_contains_number(world: World, number: str) -> None:
    assert int(number) in world.last.json


@step(r'the response array should contain stored integer "([^"]*)"')
def _array_contains_stored(world: World, name: str) -> None:
    assert int(world.stored[name]) in world.last.json


@step(r"the response should be an integer with value (\d+)")
def _is_integer(world: World, number: str) -> None:
    assert world.last.json == int(number)


@step(r'the response should contain error message matching "(.*)"')
def _message_matches(world: World, pattern: str) -> None:
    assert re.search(pattern, world.field("message"))


@step(r'the response header "([^"]*)" should contain "([^"]*)"')
def _header(world: World, name: str, text: str) -> None:
    assert text in world.last.headers.get(name.lower(), "")


@step(r'I store the response field "([^"]*)" as "([^"]*)"')
def _stores(world: World, name: str, key: str) -> None:
    value = world.field(name)
    assert value is not None, f"no field {name}"
    world.stored[key] = value


@step(r'the response field "([^"]*)" should equal stored "([^"]*)"')
def _equals_stored(world: World, name: str, key: str) -> None:
    assert world.field(name) == world.stored[key], f"{world.field(name)} != {world.stored[key]}"


@step(r'the response field "([^"]*)" should not equal stored "([^"]*)"')
def _differs_from_stored(world: World, name: str, key: str) -> None:
    assert world.field(name) != world.stored[key]


@step(r'the stored "([^"]*)" should be greater than (\d+)')
def _stored_greater(world: World, key: str, number: str) -> None:
    assert int(world.stored[key]) > int(number)


@step(r"the compatibility check should be (compatible|incompatible)")
def _compatibility(world: World, word: str) -> None:
    _status(world, "200")
    assert world.field("is_compatible") is (word == "compatible")


@step(r"GET /subjects should return an empty array")
def _no_subjects(world: World) -> None:
    assert world.client.get("/subjects").json == []


@step(r'subject "([^"]*)" should have exactly (\d+) versions?')
def _version_count(world: World, subject: str, count: str) -> None:
    assert len(world.client.get(f"/subjects/{segment(subject)}/versions").json) == int(count)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value) if value is not None else ""


# Metrics.


def _metric(world: World, name: str) -> list[str]:
    text = world.client.ask("GET", "/metrics", headers={"Accept": "*/*"}).text
    return [each for each in text.splitlines() if re.match(rf"{name}[ {{]", each)]


@step(r'the Prometheus metric "([^"]*)" should exist')
def _metric_exists(world: World, name: str) -> None:
    assert _metric(world, name)


@step(r'the Prometheus metric "([^"]*)" should have value (\d+)')
def _metric_is(world: World, name: str, value: str) -> None:
    assert [float(each.rsplit(" ", 1)[1]) for each in _metric(world, name)] == [float(value)]


# Concurrency.


def _together(calls: list[Callable[[], Response]]) -> list[Response]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(call) for call in calls]]


def _record(name: str, field: str = "x") -> str:
    return json.dumps(
        {"type": "record", "name": name, "fields": [{"name": field, "type": "int", "default": 0}]}
    )


@step(r"(\d+) goroutines each register a unique Avro schema to separate subjects")
def _unique(world: World, count: str) -> None:
    def call(number: int) -> Callable[[], Response]:
        return lambda: world.client.register(f"unique-{number}", _record(f"Unique{number}"))

    world.results = _together([call(each) for each in range(int(count))])


@step(
    r'(\d+) goroutines register the same Avro schema to subject "([^"]*)"',
    r'(\d+) goroutines attempt to register schemas to subject "([^"]*)"',
)
def _same(world: World, count: str, subject: str) -> None:
    text = _record("Same")
    world.results = _together(
        [lambda: world.client.register(subject, text) for _ in range(int(count))]
    )


@step(r"(\d+) subjects each with one Avro schema")
def _subjects(world: World, count: str) -> None:
    world.own_subjects = [f"own-{each}" for each in range(int(count))]
    for number, subject in enumerate(world.own_subjects):
        assert world.client.register(subject, _record(f"Own{number}")).status == 200


@step(r"(\d+) goroutines each soft-delete their own subject")
def _delete_own(world: World, count: str) -> None:
    def call(subject: str) -> Callable[[], Response]:
        return lambda: world.client.ask("DELETE", f"/subjects/{subject}")

    world.results = _together([call(each) for each in world.own_subjects])


@step(
    r"(\d+) writer goroutines add versions and (\d+) reader goroutines read latest from "
    r'subject "([^"]*)"'
)
def _read_and_write(world: World, writers: str, readers: str, subject: str) -> None:
    def write(number: int) -> Callable[[], Response]:
        return lambda: world.client.register(subject, _record(f"Written{number}"))

    def read() -> Response:
        return world.client.get(f"/subjects/{segment(subject)}/versions/latest")

    calls = [write(each) for each in range(int(writers))] + [read] * int(readers)
    world.results = _together(calls)
    world.readers = world.results[int(writers) :]


@step(r"all concurrent results should succeed")
def _all_succeed(world: World) -> None:
    assert [each.status for each in world.results if each.status != 200] == []


@step(r"all concurrent results should have status (\d+)")
def _all_have(world: World, status: str) -> None:
    assert {each.status for each in world.results} == {int(status)}


@step(r"no concurrent results should have a (\d+) status")
def _none_has(world: World, status: str) -> None:
    assert int(status) not in {each.status for each in world.results}


@step(r"all returned schema IDs should be unique")
def _ids_unique(world: World) -> None:
    ids = [each.json["id"] for each in world.results]
    assert len(set(ids)) == len(ids)


@step(r"all returned schema IDs should be identical")
def _ids_identical(world: World) -> None:
    assert len({each.json["id"] for each in world.results}) == 1


@step(r"all reader responses should contain a valid schema")
def _readers_valid(world: World) -> None:
    for each in world.readers:
        json.loads(each.json["schema"])
