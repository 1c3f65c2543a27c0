"""The files of deploy/: valid for the programs that read them, and their commands work."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import kubernetes_validate
import pytest
import yaml
from confluent_kafka.admin import AdminClient

from moldau.cli.catalogue import TOOLS
from moldau.cli.main import parser_of
from moldau.cli.nodes.configuration import load_config
from moldau.config.properties import load_properties
from support.ports import free_port
from support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
VERSIONS = ("1.29", "1.37")


def documents() -> Iterator[Any]:
    for file in ("brokers.yaml", "services.yaml", "spark/spark.yaml"):
        yield from yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text())


def containers() -> Iterator[Any]:
    for document in documents():
        if document["kind"] in ("StatefulSet", "Deployment"):
            yield from document["spec"]["template"]["spec"]["containers"]


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_fit_the_schemas_of_kubernetes(version: str) -> None:
    for document in documents():
        kubernetes_validate.validate(document, version, strict=True)


def test_the_schemas_refuse_what_is_wrong() -> None:
    (wrong, *_) = (one for one in documents() if one["kind"] == "StatefulSet")
    wrong["spec"]["replica"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_every_file_is_applied_and_every_service_finds_its_pods() -> None:
    for folder in (DEPLOY / "kubernetes", DEPLOY / "kubernetes/spark"):
        listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
        files = {path.name for path in folder.glob("*.yaml")}
        assert {*listed, "kustomization.yaml"} == files
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in documents()
        if one["kind"] in ("StatefulSet", "Deployment")
    ]
    for one in documents():
        if one["kind"] == "Service":
            selector = one["spec"]["selector"].items()
            assert any(selector <= pod.items() for pod in labels), one["metadata"]["name"]


def test_the_commands_of_containers_are_commands() -> None:
    for container in containers():
        if "args" in container:
            tool, *words = container["args"]
            parser_of(TOOLS[tool]).parse(words)
        else:
            assert os.access(DEPLOY / "container" / container["command"][0], os.X_OK)


def test_the_configuration_of_brokers_is_one() -> None:
    (config,) = (one["data"] for one in documents() if one["kind"] == "ConfigMap")
    properties = load_properties(config["server.properties"])
    loaded = load_config({**properties, "node.id": "0"})
    assert list(loaded.log_dirs) == ["/var/lib/moldau/data"]
    assert len(loaded.quorum.controller_quorum_voters) == 3


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    moldau = shutil.which("true")
    names = []
    for unit in sorted((DEPLOY / "systemd").glob("*.service")):
        text = unit.read_text()
        assert "ExecStart=/opt/moldau/bin/moldau " in text
        name = unit.name.replace("@.", "@registry.")
        # The unit is checked with a program that is there; its words are checked below.
        (tmp_path / unit.name).write_text(text.replace("/opt/moldau/bin/moldau", str(moldau)))
        names.append(str(tmp_path / name))
        if "@" in name:
            (tmp_path / name).symlink_to(tmp_path / unit.name)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not [line for line in done.stderr.splitlines() if str(tmp_path) in line]


def test_the_commands_of_units_are_commands() -> None:
    for unit in (DEPLOY / "systemd").glob("*.service"):
        (line,) = re.findall(r"^ExecStart=\S+ (.*)$", unit.read_text(), re.MULTILINE)
        tool, *words = line.replace("%i", "registry").split()
        parser_of(TOOLS[tool]).parse(words)


def test_the_container_file_copies_what_is_there() -> None:
    text = (DEPLOY / "container/Containerfile").read_text()
    for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE):
        *sources, _ = [word for word in line.split() if not word.startswith("--")]
        for source in sources:
            assert (ROOT / source).exists(), source
    (command,) = re.findall(r"^CMD (.*)$", text, re.MULTILINE)
    tool, *words = yaml.safe_load(command)
    parser_of(TOOLS[tool]).parse(words)
    (extras,) = re.findall(r"^ARG EXTRAS=(.*)$", text, re.MULTILINE)
    assert '".[$EXTRAS]"' in text
    known = (ROOT / "pyproject.toml").read_text()
    for extra in (*extras.split(","), "spark"):
        assert re.search(rf"^{extra} = \[", known, re.MULTILINE), extra


@pytest.mark.long("the package is built; `make dist` and the fresh clone of CI build it, too")
def test_an_image_made_of_the_copied_files_runs_its_command(tmp_path: Path) -> None:
    """There is no container program here: its steps are done in a directory instead, with the files
    that it would copy and the packages of this interpreter."""
    source = tmp_path / "source"
    text = (DEPLOY / "container/Containerfile").read_text()
    for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE):
        *names, _ = line.split()
        for name in names:
            ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.c", "*.egg-info")
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, source / name, ignore=ignored)
            else:
                source.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, source / name)
    # Compiling takes minutes, and the same files run without it.
    (tmp_path / "without/Cython").mkdir(parents=True)
    (tmp_path / "without/Cython/__init__.py").write_text("raise ImportError\n")
    installed = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
         "--no-build-isolation", "--target", str(installed), str(source)],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "without")},
        check=True,
    )  # fmt: skip
    (command,) = re.findall(r"^CMD (.*)$", text, re.MULTILINE)
    words = yaml.safe_load(command)
    words[words.index("--host") + 1] = "127.0.0.1"
    words[words.index("--data") + 1] = str(tmp_path / "platform")
    environment = {
        **os.environ,
        "PYTHONPATH": str(installed),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    moldau = [sys.executable, "-P", "-m", "moldau.cli"]
    more = ["--port", "0", "--only", "broker,console", "--detach"]
    subprocess.run([*moldau, *words, *more], env=environment, cwd=tmp_path, check=True)
    try:
        status = json.loads((tmp_path / "platform/status.json").read_text())
        (console,) = [one for one in status["services"] if one["name"] == "console"]
        for path in ("/", "/static/app.js", "/static/pages/topics.js", "/api/session"):
            assert httpx.get(console["address"] + path).status_code == 200
    finally:
        data = ["--data", str(tmp_path / "platform")]
        stop = [*moldau, "destroy", "--yes", *data]
        subprocess.run(stop, env=environment, cwd=tmp_path, check=True)


@pytest.mark.long("three nodes; test_document_cluster starts such nodes")
def test_three_nodes_start_as_their_containers_do(tmp_path: Path) -> None:
    """The script formats the storage and starts the node; started again it keeps its data."""
    ports = [(free_port(), free_port()) for _ in range(3)]
    voters = ",".join(f"{node}@127.0.0.1:{own}" for node, (_, own) in enumerate(ports))
    (config,) = (one["data"] for one in documents() if one["kind"] == "ConfigMap")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "moldau").write_text(f'#!/bin/sh\nexec {sys.executable} -m moldau.cli "$@"\n')
    (programs / "moldau").chmod(0o755)
    shared = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "MOLDAU_CLUSTER_ID": config["cluster-id"],
        "MOLDAU_WORK": str(tmp_path),
    }

    def start(node: int) -> subprocess.Popen[bytes]:
        client, own = ports[node]
        properties = load_properties(config["server.properties"]) | {
            "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{own}",
            "controller.quorum.voters": voters,
            "log.dirs": str(tmp_path / f"data-{node}"),
            "moldau.metrics.port": "0",
        }
        file = tmp_path / f"shared-{node}.properties"
        file.write_text("\n".join(f"{key}={value}" for key, value in properties.items()))
        return subprocess.Popen(
            [str(DEPLOY / "container/moldau-node")],
            env={
                **shared,
                "MOLDAU_CONFIG": str(file),
                "MOLDAU_NODE_ID": str(node),
                "MOLDAU_ADVERTISED": f"PLAINTEXT://localhost:{client}",
            },
        )

    nodes = [start(node) for node in range(3)]
    try:
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{ports[0][0]}"})

        def brokers() -> set[str]:
            try:
                found = admin.list_topics(timeout=2).brokers.values()
            except Exception:
                return set()
            return {f"{broker.host}:{broker.port}" for broker in found}

        wanted = {f"localhost:{client}" for client, _ in ports}
        eventually(lambda: brokers() == wanted, what="three brokers", seconds_max=60)
        nodes[2].send_signal(signal.SIGTERM)
        assert nodes[2].wait(60) == 0
        nodes[2] = start(2)
        eventually(lambda: brokers() == wanted, what="the third is back", seconds_max=60)
    finally:
        for process in nodes:
            process.kill()
            process.wait()
