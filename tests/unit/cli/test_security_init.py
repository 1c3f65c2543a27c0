"""`moldau security init`: what it refuses, and what it writes."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from moldau.broker.config.broker_config import BrokerConfig
from moldau.config.properties import load_properties
from support.cli import moldau_cli


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nodes", "0"], "--nodes 0: choose 1 to 20"),
        (["--days", "5000"], "--days 5000: choose 1 to 3650"),
        (["--user", "a-b"], "--user a-b: use up to 64 letters, digits and '_'"),
        (["--user", "admin"], "--user admin: this user is made anyway"),
        (["--host", "a,b"], "--host 'a,b' is not the name or the address of a host"),
        (["--port", "65535"], "--port 65535: the nodes take the ports up to 65536"),
        (["--directory", "a,b"], "its name must not contain a comma"),
    ],
)
def test_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = moldau_cli("security", "init", *words)
    assert ended.status == 1
    assert message in ended.err
    assert ended.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    ended = moldau_cli("security", "init", "--directory", str(tmp_path))
    assert ended.status == 1
    assert f"{tmp_path} is not empty, and nothing is overwritten" in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from moldau.cli.security import security_init

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "data")

    monkeypatch.setattr(security_init, "format_folders", full)
    ended = moldau_cli("security", "init", "--directory", str(tmp_path / "new"))
    assert (ended.status, ended.err) == (1, "cannot write data: No space left on device\n")
    assert not (tmp_path / "new").exists()


def test_without_the_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    ended = moldau_cli("security", "init", "--directory", str(tmp_path / "new"))
    assert ended.status == 1
    assert ended.err.startswith("to make certificates, the package cryptography is needed: ")
    assert "moldau[security]" in ended.err
    assert not (tmp_path / "new").exists()


def test_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    ended = moldau_cli(
        "security", "init", "--directory", str(folder), "--nodes", "4",
        "--host", "kafka.example.com", "--host", "10.0.0.7", "--days", "30", "--user", "orders",
    )  # fmt: skip
    assert ended.status == 0, ended.err
    assert "every network of this machine" in ended.out
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in (*folder.glob("*.properties"), *folder.glob("node-*.pem"), folder / "ca.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    config = BrokerConfig.from_properties(
        load_properties((folder / "node-4.properties").read_text())
    )
    assert not config.is_controller
    assert not config.unknown
    assert not config.without_effect
    shown = _openssl("x509", "-in", str(folder / "node-1.pem"), "-noout", "-text")
    for part in ("DNS:kafka.example.com", "IP Address:10.0.0.7", "DNS:localhost", "CN = node-1"):
        assert part in shown
    assert _openssl(
        "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", str(folder / "ca.pem"),
        str(folder / "node-1.pem"),
    ).endswith("OK\n")  # fmt: skip
    seconds = str(31 * 24 * 3600)
    expiring = subprocess.run(
        ["openssl", "x509", "-in", str(folder / "node-1.pem"), "-noout", "-checkend", seconds],
        stdout=subprocess.DEVNULL,
        check=False,
    )
    assert expiring.returncode == 1


def _openssl(*words: str) -> str:
    return subprocess.run(["openssl", *words], check=True, capture_output=True, text=True).stdout
