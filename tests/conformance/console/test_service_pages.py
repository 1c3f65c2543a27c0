"""The pages of the services in a real browser, on the platform that `moldau up` runs.

With --against-kafka the services run on Apache Kafka.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from moldau.client import Admin, NewTopic, Producer
from moldau.pipelines.control.folder import ControlFolder
from moldau.pipelines.machine.records import Desired, PipelineRecord
from moldau.pipelines.registry import Registry
from moldau.streams import KafkaStreams, State, StreamsBuilder, Topology
from moldau.streams.hosts.query_server import QueryServer
from support.console import Console, Tab, axe_violations
from support.either import either_broker
from support.platform import Platform
from support.ports import free_port
from support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Route

AXE = Path(__file__).parents[3] / ".cache/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
ORDER = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "string"}]}
AMOUNT = {"name": "amount", "type": "double", "default": 0.0}
ORDER_2 = {**ORDER, "fields": [*ORDER["fields"], AMOUNT]}
BAD = {**ORDER, "fields": [*ORDER["fields"], {"name": "due", "type": "long"}]}


@pytest.fixture(scope="module")
def platform(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    made = Platform(tmp_path_factory.mktemp("up"))
    with ExitStack() as held:
        words = ["up", "--detach", "--port", "0", "--without", "rest"]
        if request.config.getoption("--against-kafka"):
            folder = tmp_path_factory.mktemp("broker")
            broker = held.enter_context(either_broker(request, folder, {}))
            words += ["--bootstrap-server", broker.bootstrap]
        made.call(*words)
        yield made
        made.call("destroy", "--yes")


@pytest.fixture(scope="module")
def console(platform: Platform) -> Iterator[Console]:
    found = Console(SimpleNamespace(url=platform.services()["console"]["address"]))  # type: ignore[arg-type]
    yield found
    found.client.close()


@pytest.fixture(scope="module")
def bootstrap(platform: Platform) -> str:
    return str(platform.status()["bootstrapServers"])


@pytest.fixture(scope="module")
def high(console: Console) -> str:
    """The query of the stream HIGH over the topic `readings`."""
    statements = (
        "CREATE STREAM readings (id VARCHAR, value DOUBLE) WITH (kafka_topic = 'readings', "
        "value_format = 'json', partitions = 1);"
        "CREATE STREAM high AS SELECT * FROM readings WHERE value > 10;"
    )
    console.ask("POST", "/sql/statements", {"sql": statements})
    return query_of(console, "CSAS_HIGH_")


@pytest.fixture(scope="module")
def big(platform: Platform, bootstrap: str) -> str:
    """A pipeline that is declared, and that nobody runs."""
    folder = ControlFolder(platform.data / "spark")
    record = PipelineRecord(
        name="big",
        definition={"name": "big", "source": {"topic": "readings"}, "sink": {"topic": "big"}},
        desired=Desired.STOPPED,
        checkpoint=str(folder.checkpoints / "big"),
        deployment=folder.deployment,
        generation=1,
        revision=1,
    )
    with Registry(bootstrap) as registry:
        registry.change("big", lambda _: record)
    return "big"


def word_count(text: str, counts: str) -> Topology:
    builder = StreamsBuilder()
    serdes: dict[str, Any] = {"key_serde": "string", "value_serde": "string"}
    words = builder.stream(text, **serdes).flat_map_values(str.split, name="split")
    counted = words.group_by(lambda _, word: word, **serdes).count(store="counts")
    counted.to_stream().to(counts, key_serde="string", value_serde="long")
    return builder.build()


@pytest.fixture(scope="module")
def counting(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A word count that runs while the tests of this file do."""
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic("text", 1, 1), NewTopic("counts", 1, 1)])
    running = KafkaStreams(
        word_count("text", "counts"),
        application_id="counting",
        bootstrap_servers=bootstrap,
        state_dir=str(tmp_path_factory.mktemp("state")),
        group_protocol="streams",
    )
    with running:
        assert running.wait_for(State.RUNNING, 60)
        yield "counting"


def send(bootstrap: str, topic: str, *values: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for value in values:
            producer.send(topic, value)


def setting(box: Any, name: str) -> Any:
    """The field of a form; one that must be filled in says so behind its name."""
    return box.get_by_label(re.compile(rf"^{name}( .required.)?$"))


def test_schemas_are_registered_checked_compared_and_deleted(tab: Tab, platform: Platform) -> None:
    registry = platform.services()["registry"]["address"]
    page = tab.open("/schemas")
    page.get_by_role("button", name="Register schema").click()
    page.get_by_role("dialog").get_by_label("Subject").fill("orders-value")
    page.get_by_role("dialog").get_by_label("Schema", exact=True).fill(json.dumps(ORDER))
    page.get_by_role("button", name="Register", exact=True).click()
    page.get_by_role("heading", name="orders-value").wait_for()

    page.get_by_role("button", name="New version").click()
    page.get_by_role("dialog").get_by_label("Schema", exact=True).fill(json.dumps(BAD))
    page.get_by_role("button", name="Check compatibility").click()
    page.get_by_text("READER_FIELD_MISSING_DEFAULT_VALUE").wait_for()
    page.get_by_role("button", name="Register", exact=True).click()
    page.get_by_role("alert").get_by_text("incompatible").wait_for()
    page.get_by_role("dialog").get_by_label("Schema", exact=True).fill(json.dumps(ORDER_2))
    page.get_by_role("button", name="Check compatibility").click()
    page.get_by_text("compatible", exact=True).wait_for()
    page.get_by_role("button", name="Register", exact=True).click()
    page.get_by_text("Registered with ID 2").wait_for()
    tab.ready()

    assert (
        "amount"
        in page.get_by_role("region", name="Difference").locator(".plus").all_text_contents()[2]
    )
    page.get_by_label("Compatibility").last.select_option("FULL")
    page.get_by_text("is FULL from now on").wait_for()
    level = httpx.get(f"{registry}/config/orders-value").json()
    assert level["compatibilityLevel"] == "FULL"
    page.get_by_label("Compatibility").last.select_option("registry's default")
    page.get_by_text("has the registry's compatibility from now on").wait_for()
    assert httpx.get(f"{registry}/config/orders-value").status_code == 404
    page.get_by_role("button", name="Show version 1").click()
    assert "amount" not in page.get_by_role("region", name="Schema", exact=True).inner_text()
    page.get_by_label("From version").select_option("2")
    eventually(
        lambda: not page.get_by_role("region", name="Difference").locator(".plus").count(),
        what="no difference of a version and itself",
    )
    page.get_by_role("button", name="Delete version 1").click()
    page.get_by_role("button", name="Delete", exact=True).last.click()
    page.get_by_text("Version 1 is deleted").wait_for()
    assert httpx.get(f"{registry}/subjects/orders-value/versions").json() == [2]
    page.get_by_role("button", name="Delete subject").click()
    page.get_by_label("Type orders-value to confirm").fill("orders-value")
    page.get_by_role("button", name="Delete", exact=True).last.click()
    page.get_by_text("orders-value is deleted").wait_for()
    assert httpx.get(f"{registry}/subjects").json() == []
    for level in ("FORWARD", "BACKWARD"):
        page.get_by_label("Compatibility of subjects that have none").select_option(level)
        page.get_by_text(f"are {level} from now on").wait_for()
        assert httpx.get(f"{registry}/config").json()["compatibilityLevel"] == level


def test_a_level_stays_although_a_list_was_loading_while_it_was_chosen(
    tab: Tab, platform: Platform
) -> None:
    registry = platform.services()["registry"]["address"]
    httpx.put(f"{registry}/config", json={"compatibility": "BACKWARD"}).raise_for_status()
    page = tab.open("/schemas")
    lists: list[Route] = []
    levels: list[Route] = []
    page.route("**/schemas?*", lambda route: lists.append(route))
    page.route("**/schema-compatibility", lambda route: levels.append(route))
    with page.expect_request("**/schemas?*"):
        page.get_by_placeholder("Search subjects").fill("nothing")
    chosen = page.get_by_label("Compatibility of subjects that have none")
    with page.expect_request("**/schema-compatibility"):
        chosen.select_option("FORWARD")
    page.unroute("**/schemas?*")
    with page.expect_response("**/schemas?*"):
        lists[0].continue_()
    page.get_by_text("No subjects").first.wait_for()
    levels[0].continue_()
    page.get_by_text("are FORWARD from now on").wait_for()
    assert chosen.input_value() == "FORWARD"
    assert httpx.get(f"{registry}/config").json()["compatibilityLevel"] == "FORWARD"
    httpx.put(f"{registry}/config", json={"compatibility": "BACKWARD"}).raise_for_status()


def test_a_connector_from_its_form_to_its_end(
    tab: Tab, platform: Platform, bootstrap: str, tmp_path: Path
) -> None:
    connect = platform.services()["connect"]["address"]
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic("parcels", 1, 1)])
    send(bootstrap, "parcels", '{"id": 1}', '{"id": 2}')
    output = tmp_path / "parcels.txt"
    page = tab.open("/connectors")
    page.get_by_role("button", name="Create connector").click()
    box = page.get_by_role("dialog")
    box.get_by_label("Name", exact=True).fill("parcels-file")
    option = page.locator("option", has_text="FileStreamSink").first.get_attribute("value")
    box.get_by_label("Class").select_option(option)
    setting(box, "topics").fill("parcels")
    box.get_by_label("Further settings").fill("tasks.max=many")
    box.get_by_role("button", name="Create", exact=True).click()
    box.get_by_role("alert").get_by_text("tasks.max").wait_for()
    setting(box, "file").fill(str(output))
    box.get_by_label("Further settings").fill("tasks.max=1\nvalue.converter=StringConverter")
    box.get_by_role("button", name="Create", exact=True).click()
    page.get_by_role("heading", name="parcels-file").wait_for()
    eventually(lambda: output.exists() and output.read_text().count("\n") == 2, what="two records")
    page.get_by_text("RUNNING").first.wait_for()
    drawn = page.get_by_role("region", name="What parcels-file reads and writes")
    drawn.get_by_role("link", name="parcels").wait_for()
    drawn.get_by_text("sink, running").wait_for()

    def state() -> str:
        found = httpx.get(f"{connect}/connectors/parcels-file/status").json()
        return str(found["connector"]["state"])

    for name, wanted in (("Pause", "PAUSED"), ("Resume", "RUNNING"), ("Stop", "STOPPED")):
        page.get_by_role("button", name=name, exact=True).click()
        eventually(lambda wanted=wanted: state() == wanted, what=wanted)  # type: ignore[misc]
    page.get_by_text("STOPPED").first.wait_for()
    page.get_by_role("region", name="Offsets").get_by_text("kafka_offset").wait_for()
    page.get_by_role("button", name="Forget offsets").click()
    page.get_by_role("button", name="Forget", exact=True).click()
    page.get_by_text("The offsets are forgotten").wait_for()
    assert httpx.get(f"{connect}/connectors/parcels-file/offsets").json() == {"offsets": []}
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_label("Type parcels-file to confirm").fill("parcels-file")
    page.get_by_role("button", name="Delete", exact=True).last.click()
    page.get_by_text("parcels-file is deleted").wait_for()
    assert httpx.get(f"{connect}/connectors").json() == []


def test_a_failed_task_shows_its_error(tab: Tab, console: Console, bootstrap: str) -> None:
    config = {
        "connector.class": "FileStreamSink",
        "topics": "parcels",
        "file": "/nonexistent/folder/file",
        "value.converter": "StringConverter",
    }
    console.ask("PUT", "/connectors/broken", {"config": config})
    page = tab.open("/connectors/broken")
    page.get_by_text("FAILED", exact=True).first.wait_for()
    page.locator("summary", has_text="/nonexistent/folder/file").wait_for()
    # What is open and what has the focus stays when the page reads the state again.
    page.locator("summary", has_text="/nonexistent/folder/file").click()
    page.get_by_role("button", name="Restart task 0").focus()
    old = page.locator("main .tablebox details").element_handle()
    eventually(lambda: not old.evaluate("each => each.isConnected"), what="the page is redrawn")
    assert page.locator("main .tablebox details").get_attribute("open") is not None
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "Restart task 0"
    page.get_by_role("button", name="Restart task 0").click()
    page.get_by_text("Task 0 is restarted").wait_for()
    page.get_by_role("button", name="Restart", exact=True).first.click()
    page.get_by_text("broken is restarted").wait_for()
    page.get_by_role("button", name="Change", exact=True).click()
    box = page.get_by_role("dialog")
    setting(box, "file").fill("/dev/null")
    box.get_by_role("button", name="Save").click()
    page.get_by_text("broken is changed").wait_for()
    page.get_by_role("region", name="Tasks").get_by_text("RUNNING").wait_for()
    console.ask("DELETE", "/connectors/broken")


def query_of(console: Console, prefix: str) -> str:
    """The id of a query ends with where its statement stands in the command topic."""
    (found,) = [
        each["id"]
        for each in console.ask("GET", "/sql")["queries"]
        if each["id"].startswith(prefix)
    ]
    return str(found)


def test_sql_statements_and_rows_that_come_while_one_looks(
    tab: Tab, console: Console, bootstrap: str, high: str
) -> None:
    page = tab.open("/sql")
    editor = page.get_by_label("Statements")
    editor.fill(
        "CREATE TABLE latest AS SELECT id, LATEST_BY_OFFSET(value) AS value FROM readings "
        "GROUP BY id;"
    )
    page.get_by_role("button", name="Run").click()
    page.get_by_role("region", name="Queries").get_by_text("CTAS_LATEST_").wait_for()
    latest = query_of(console, "CTAS_LATEST_")
    send(bootstrap, "readings", '{"id": "a", "value": 5}', '{"id": "b", "value": 50}')

    editor.fill("SELECT * FROM high EMIT CHANGES;")
    editor.press("Control+Enter")
    rows = page.get_by_role("region", name="Rows")
    rows.get_by_text("50").wait_for()
    send(bootstrap, "readings", '{"id": "c", "value": 70}')
    rows.get_by_text("70").wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped.").wait_for()

    eventually(
        lambda: any(
            line.get("row") == ["b", 50.0]
            for line in console.lines("/sql/query", {"sql": "SELECT * FROM latest WHERE id = 'b';"})
        ),
        what="the table has the row",
    )
    editor.fill("-- of b\n/* only */ SELECT * FROM latest WHERE id = 'b';")
    page.get_by_role("button", name="Run").click()
    page.get_by_text("1 row.").wait_for()
    editor.fill("SELECT nothing FROM high EMIT CHANGES;")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("alert").get_by_text("NOTHING").wait_for()

    page.get_by_role("link", name=latest).click()
    page.get_by_role("region", name=f"Topology of {latest}").get_by_text(
        "from readings", exact=True
    ).wait_for()
    page.get_by_role("button", name="Terminate").click()
    page.get_by_role("button", name="Terminate").last.click()
    page.get_by_text(f"{latest} is terminated").wait_for()
    assert [one["id"] for one in console.ask("GET", "/sql")["queries"]] == [high]


def test_a_streams_application_is_drawn_with_its_members(tab: Tab, counting: str) -> None:
    page = tab.open("/streams")
    page.get_by_role("link", name=counting).click()
    drawn = page.get_by_role("region", name="Topology of counting")
    drawn.get_by_text("text", exact=True).wait_for()
    drawn.get_by_text("Sub-topology 1", exact=True).wait_for()
    page.get_by_text("Stable").wait_for()
    page.get_by_role("region", name="Members").get_by_text("0_0").wait_for()


def rates(drawn: Any) -> dict[str, float]:
    """Records per second by the name of a node, as the picture shows them."""
    texts: dict[str, str] = drawn.evaluate(
        "box => Object.fromEntries([...box.querySelectorAll('.rate-line')].map("
        "line => [line.parentNode.querySelector('.label').textContent, line.textContent]))"
    )
    return {
        name: float(text.removesuffix(" records/s").replace(",", ""))
        for name, text in texts.items()
    }


@pytest.mark.parametrize("protocol", ["streams", "classic"])
def test_a_topology_has_the_live_rates_of_all_nodes(
    tab: Tab, console: Console, bootstrap: str, tmp_path: Path, protocol: str
) -> None:
    """An application that answers at its `application.server`, as `moldau streams start --queries`
    runs it, here and on Spark."""
    name, text, counts = (f"{protocol}-{word}" for word in ("counted", "text", "counts"))
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        admin.create_topics([NewTopic(text, 1, 1), NewTopic(counts, 1, 1)])
    running = KafkaStreams(
        word_count(text, counts),
        application_id=name,
        bootstrap_servers=bootstrap,
        state_dir=str(tmp_path),
        application_server=f"127.0.0.1:{free_port()}",
        group_protocol=protocol,
        commit_interval_ms=100,
    )
    with running, QueryServer(running):
        assert running.wait_for(State.RUNNING, 60)
        eventually(
            lambda: name in {each["name"] for each in console.ask("GET", "/streams")["data"]},
            what="the application is listed",
        )
        page = tab.open(f"/streams/{name}")
        drawn = page.get_by_role("region", name=f"Topology of {name}")
        page.get_by_text("Rates of 1 of 1 instances, node by node.").wait_for()
        drawn.get_by_text(f"from {text}", exact=True).wait_for()

        def flowing() -> bool:
            send(bootstrap, text, *["one two three"] * 20)
            shown = rates(drawn)
            return "split" in shown and all(shown.values())

        eventually(flowing, what="every node has a rate")
        shown = rates(drawn)
        assert len(shown) == len(running.live_topology()["nodes"]) >= 6
        # What it is given now, not what it was given on the whole: without records it falls to 0.
        eventually(lambda: not any(rates(drawn).values()), what="the rates of now", seconds_max=60)


def test_a_query_has_the_live_rates_of_its_nodes(tab: Tab, bootstrap: str, high: str) -> None:
    page = tab.open(f"/sql/{high}")
    drawn = page.get_by_role("region", name=f"Topology of {high}")

    def flowing() -> bool:
        send(bootstrap, "readings", *['{"id": "r", "value": 1}'] * 20)
        shown = rates(drawn)
        # The filter lets none of them pass.
        return len(shown) >= 3 and max(shown.values()) > 0 == min(shown.values())

    eventually(flowing, what="rates of the query")


def test_pipelines_are_listed_with_what_they_do(tab: Tab, bootstrap: str, big: str) -> None:
    page = tab.open("/pipelines")
    page.get_by_role("link", name="readings").wait_for()
    page.get_by_role("link", name=big).first.click()
    page.get_by_role("heading", name=big, exact=True).wait_for()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("big is to stop").wait_for()
    with Registry(bootstrap) as registry:
        assert registry.read().pipelines[big].generation > 1


def test_lineage_follows_a_record_through_all_services(
    tab: Tab, console: Console, high: str, big: str, counting: str
) -> None:
    config = {
        "connector.class": "FileStreamSink",
        "topics": "HIGH",
        "file": "/dev/null",
        "value.converter": "StringConverter",
    }
    console.ask("PUT", "/connectors/high-file", {"config": config})

    def lines() -> set[tuple[str, str]]:
        found = console.ask("GET", "/lineage")
        return {(each["source"], each["target"]) for each in found["edges"]}

    wanted = {
        ("topic:readings", f"query:{high}"),
        (f"query:{high}", "topic:HIGH"),
        ("topic:HIGH", "connector:high-file"),
        ("topic:readings", f"pipeline:{big}"),
        ("topic:text", f"streams:{counting}"),
    }
    eventually(lambda: wanted <= lines(), what="the way of a reading")
    page = tab.open("/lineage")
    drawn = page.get_by_role("region", name="What feeds what")
    drawn.get_by_role("link", name="high-file").click()
    page.get_by_text("around high-file").wait_for()
    eventually(lambda: drawn.get_by_role("link", name="counting").count() == 0, what="only it")
    drawn.get_by_role("link", name="high-file").click()
    page.get_by_role("heading", name="high-file").wait_for()
    console.ask("DELETE", "/connectors/high-file")


def test_the_balancer_shows_loads_and_its_plan(tab: Tab) -> None:
    page = tab.open("/balancer")
    page.get_by_text("Nothing has to move").wait_for()
    page.get_by_role("region", name="disk by broker").wait_for()
    page.get_by_label("Empty these brokers").fill("1")
    page.get_by_role("button", name="Plan again").click()
    page.get_by_role("alert").wait_for()


def test_mirrors_are_found_by_their_topics(tab: Tab, bootstrap: str) -> None:
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        names = ("east.checkpoints.internal", "east.orders")
        admin.create_topics([NewTopic(name, 1, 1) for name in names])
    page = tab.open("/mirrors")
    page.get_by_role("link", name="east.orders").wait_for()


def test_what_the_platform_did(tab: Tab, platform: Platform) -> None:
    page = tab.open("/logs")
    page.get_by_role("region", name="Services").get_by_text("Schema Registry").wait_for()
    page.get_by_role("region", name="Messages").get_by_text(
        re.compile("All [45] services are up")
    ).wait_for()
    page.get_by_label("Service", exact=True).select_option("registry")
    page.get_by_role("region", name="Log").get_by_text("The Schema Registry is up").wait_for()
    page.get_by_label("Lines with").fill("no such line")
    page.get_by_role("region", name="Log").get_by_text("Empty.").wait_for()
    page.get_by_label("Lines with").fill("")
    page.get_by_role("button", name="Read again").click()
    page.get_by_role("region", name="Log").get_by_text("The Schema Registry is up").wait_for()


def test_changes_are_in_the_audit(platform: Platform, console: Console, high: str) -> None:
    console.ask("POST", "/schemas/audited/versions", {"schema": json.dumps(ORDER)})
    console.ask("DELETE", "/schemas/audited")
    config = {"connector.class": "FileStreamSink", "topics": "HIGH", "file": "/dev/null"}
    console.ask("PUT", "/connectors/audited", {"config": config})
    console.ask("DELETE", "/connectors/audited")
    statement = "CREATE STREAM audited AS SELECT * FROM readings;"
    console.ask("POST", "/sql/statements", {"sql": statement})
    console.ask("DELETE", f"/sql/queries/{query_of(console, 'CSAS_AUDITED_')}")
    shown = platform.call("logs", "console", "--lines", "2000")
    actions = set(re.findall(r'"action": "([a-z-]+)"', shown))
    wanted = {"register-schema", "delete-subject", "create-connector", "sql", "terminate-query"}
    assert wanted <= actions


PAGES = ("/lineage", "/connectors", "/sql", "/sql/HIGH", "/schemas", "/logs", "/pipelines",
         "/pipelines/big", "/streams", "/streams/counting", "/balancer", "/mirrors")  # fmt: skip


@pytest.mark.slow("axe looks at every element of the pages")
@pytest.mark.parametrize(
    "theme",
    [
        "light",
        pytest.param("dark", marks=pytest.mark.long("the same pages again, for their colours")),
    ],
)
def test_axe_finds_nothing_and_pages_fit_a_phone(
    browser: Any, console: Console, theme: str, high: str, big: str, counting: str
) -> None:
    # `bypass_csp` only for axe itself, which the pages' policy would not let in.
    small = Tab(
        browser,
        console,
        viewport={"width": 390, "height": 800},
        color_scheme=theme,
        bypass_csp=True,
    )
    only = {"type": "tag", "values": RULES}
    problems = []
    for path in PAGES:
        page = small.open(path.replace("HIGH", high))
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wider > 0:
            problems.append(f"{path}: {wider} px too wide")
        if AXE.exists():
            problems += [f"{path}: {each}" for each in axe_violations(page, AXE, only)]
    assert small.problems == []
    small.close()
    assert problems == [], "\n".join(problems)
