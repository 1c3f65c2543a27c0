"""Eclipse's own conformance cases, paho.mqtt.testing, in `.cache/paho.mqtt.testing`:

git clone https://github.com/eclipse-paho/paho.mqtt.testing .cache/paho.mqtt.testing
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.http_service import running
from support.mqtt import port_of, proxy_of
from support.processes import ROOT, BrokerProcess

SUITE = ROOT / ".cache/paho.mqtt.testing/interoperability"

pytestmark = [
    pytest.mark.skipif(not SUITE.exists(), reason=f"{SUITE} is not there: see the file"),
    pytest.mark.timeout(1000),
    pytest.mark.long("the cases wait for seconds, again and again"),
]

#: What fails, and why.
FAILING = {
    "test_subscribe_failure": "it expects that the filter test/nosubscribe is forbidden",
}
RUN = """
import sys, unittest
sys.path.insert(0, sys.argv[1])
name, port = sys.argv[2], int(sys.argv[3])
sys.argv = [name]
module = __import__(name)
prefix = "client_test5/" if name.endswith("5") else ""
module.topics = [prefix + each for each in ("TopicA", "TopicA/B", "Topic/C", "TopicA/C", "/TopicA")]
module.wildtopics = [
    prefix + each for each in ("TopicA/+", "+/C", "#", "/#", "/+", "+/+", "TopicA/#")
]
module.nosubscribe_topics = ("test/nosubscribe",)
module.topic_prefix, module.host, module.port = prefix, "127.0.0.1", port
unittest.main(module=module, verbosity=2)
"""


@pytest.fixture(scope="module")
def suite_proxy(broker: BrokerProcess) -> Iterator[int]:
    with running(lambda: proxy_of(broker.bootstrap, keep_alive_max_s="60")) as service:
        yield port_of(service.url)


@pytest.mark.parametrize(("name", "count"), [("client_test", 10), ("client_test5", 27)])
def test_cases_of_eclipse(suite_proxy: int, name: str, count: int) -> None:
    command = [sys.executable, "-c", RUN, str(SUITE), name, str(suite_proxy)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=900, check=False, cwd=SUITE
    )
    assert f"Ran {count} tests" in ended.stderr, ended.stderr[-3000:]
    failed = set(re.findall(r"^(?:FAIL|ERROR): (\w+) ", ended.stderr, re.M))
    assert failed == set(FAILING), ended.stderr[-5000:]
