"""The pytest plugin as a project that has Moldau installed sees it: each test is a pytest run."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from support.waiting import eventually


def run(
    folder: Path, source: str, *arguments: str, autoload: bool = False
) -> subprocess.CompletedProcess[str]:
    """With `autoload` every installed plugin is loaded, as in most projects; that takes longer."""
    environment = dict(os.environ)
    if not autoload:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        arguments = ("-p", "moldau.testing.plugin", *arguments)
    (folder / "test_it.py").write_text(textwrap.dedent(source))
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_failed_test_shows_the_seed_and_what_brokers_logged(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        from moldau.testing import Broker

        def test_with_a_fixture(moldau_broker):
            assert not moldau_broker.bootstrap_servers

        def test_with_a_broker_of_its_own():
            with Broker(seed=77):
                assert False

        def test_that_passes(moldau_broker):
            pass
        """,
        "--moldau-seed=4711",
    )
    assert ran.returncode == 1
    assert "2 failed, 1 passed" in ran.stdout
    first, second = ran.stdout.split("test_with_a_broker_of_its_own", 1)
    assert "moldau node 1 at 127.0.0.1:" in first
    assert "(seed 4711)" in first
    assert "registered broker 1" in first
    assert "(seed 77)" in second
    assert ran.stdout.count("registered broker 1") == 2


def test_the_number_of_brokers_can_be_given(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        def test_broker(moldau_broker, moldau_topic):
            assert len(moldau_broker.nodes) == 2
            assert moldau_topic("orders").values() == []

        def test_cluster(moldau_cluster):
            assert len(moldau_cluster.nodes) == 2
        """,
        "--moldau-brokers=2",
    )
    assert ran.returncode == 0, ran.stdout


def test_each_worker_has_brokers_of_its_own(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import os, pathlib, pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(moldau_session_broker, moldau_topic, number):
            moldau_topic("orders").produce("x")
            node = moldau_session_broker.nodes[1]
            pathlib.Path(f"{os.environ['PYTEST_XDIST_WORKER']}-{node.pid}.seen").touch()
        """,
        "-p",
        "xdist",
        "-n2",
        "--dist=each",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    seen = sorted(path.name.split("-") for path in tmp_path.glob("*.seen"))
    assert [worker for worker, _ in seen] == ["gw0", "gw1"]
    assert seen[0][1] != seen[1][1]


def test_a_project_that_does_not_use_it_pays_nothing(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import sys

        def test_it():
            loaded = sorted(name for name in sys.modules if name.startswith("moldau"))
            assert loaded == ["moldau", "moldau.testing", "moldau.testing.plugin"]
        """,
        autoload=True,
    )
    assert ran.returncode == 0, ran.stdout


def test_a_wrong_marker_is_told(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import pytest

        @pytest.mark.moldau(3)
        def test_positional(moldau_broker):
            pass

        @pytest.mark.moldau(broker=3)
        def test_misspelt(moldau_broker):
            pass

        @pytest.mark.moldau(brokers=99)
        def test_too_many(moldau_broker):
            pass
        """,
    )
    assert "3 errors" in ran.stdout
    assert "pytest.mark.moldau takes keyword arguments" in ran.stdout
    assert "pytest.mark.moldau: broker is unknown. Did you mean brokers?" in ran.stdout
    assert "a cluster under test has 1 to 20" in ran.stdout


def test_brokers_end_with_a_test_run_that_is_killed(tmp_path: Path) -> None:
    ran = run(
        tmp_path,
        """
        import os, pathlib, signal

        def test_it(moldau_broker):
            node = moldau_broker.nodes[1]
            moldau_broker.pause()
            pathlib.Path("pid").write_text(f"{node.pid} {node.folder}")
            os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    assert ran.returncode == -9
    pid, folder = (tmp_path / "pid").read_text().split()
    eventually(lambda: not Path(f"/proc/{pid}").exists(), what="the node has ended")
    eventually(lambda: not Path(folder).exists(), what="its folder is removed")


def test_unittest_has_brokers_too(tmp_path: Path) -> None:
    (tmp_path / "test_unittest.py").write_text(
        textwrap.dedent(
            """
            import unittest

            from moldau.testing import Broker

            class OrdersTest(unittest.TestCase):
                @classmethod
                def setUpClass(cls):
                    cls.broker = cls.enterClassContext(Broker(topics=["orders"]))

                def test_it(self):
                    self.broker.produce("orders", "x")
                    self.assertEqual(self.broker.values("orders"), [b"x"])
            """
        )
    )
    command = [sys.executable, "-W", "error", "-m", "unittest", "-q"]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "ResourceWarning" not in ran.stderr
