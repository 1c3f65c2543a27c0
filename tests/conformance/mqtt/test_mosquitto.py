"""mosquitto_pub and mosquitto_sub, and the command that runs the proxy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.mqtt import ProxyProcess, new_name
from support.processes import BrokerProcess
from support.repeats import mostly_long

pytestmark = pytest.mark.skipif(
    shutil.which("mosquitto_pub") is None, reason="mosquitto-clients is not installed"
)


@pytest.mark.parametrize("version", mostly_long(["5", "311"], "test_paho has both versions"))
@pytest.mark.parametrize("qos", ["0", "1", "2"])
def test_publish_and_subscribe(proxy: int, version: str, qos: str) -> None:
    topic = new_name("mosquitto")
    common = ["-h", "127.0.0.1", "-p", str(proxy), "-V", version, "-q", qos]
    subscriber = subprocess.Popen(
        ["stdbuf", "-oL", "mosquitto_sub", *common, "-t", f"{topic}/#", "-v", "-C", "3", "-d"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert subscriber.stdout is not None
        for line in subscriber.stdout:
            if "Subscribed" in line:
                break
        lines = "one\ntwo\nthree\n"
        subprocess.run(
            ["mosquitto_pub", *common, "-t", f"{topic}/a", "-l"],
            input=lines, text=True, check=True, timeout=60,
        )  # fmt: skip
        output, _ = subscriber.communicate(timeout=60)
    finally:
        subscriber.kill()
        subscriber.wait()
    got = [line for line in output.splitlines() if line.startswith(topic)]
    assert got == [f"{topic}/a one", f"{topic}/a two", f"{topic}/a three"]


def test_retained_and_properties_of_version_5(proxy: int) -> None:
    topic = new_name("mosquitto")
    common = ["-h", "127.0.0.1", "-p", str(proxy), "-V", "5", "-t", f"{topic}/a"]
    properties = ["-D", "publish", "user-property", "unit", "C"]
    subprocess.run(
        ["mosquitto_pub", *common, "-m", "21.5", "-q", "1", "-r", *properties],
        check=True, timeout=60,
    )  # fmt: skip
    found = subprocess.run(
        ["mosquitto_sub", *common, "-C", "1", "-W", "30", "-F", "%r %p %P"],
        check=True, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    assert found.stdout.strip() == "1 21.5 unit:C"


def test_the_command_says_what_is_up_and_what_to_try(broker: BrokerProcess, tmp_path: Path) -> None:
    with ProxyProcess(broker.bootstrap, tmp_path) as process:
        shown = process.output
        assert f"listening  mqtt://127.0.0.1:{process.port}" in shown
        line = next(each for each in shown.splitlines() if "mosquitto_pub" in each)
        subprocess.run(line.split(), check=True, timeout=60)
        process.stop()


def test_a_wrong_setting_is_refused_in_words(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "moldau.cli", "mqtt", "start", "--override", "packet.size=1"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert found.returncode == 1
    assert "packet.size is not a setting of the MQTT proxy" in found.stderr
    assert "packet.size.max" in found.stderr
