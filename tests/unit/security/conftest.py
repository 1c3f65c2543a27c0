"""One CA and two certificates for all tests of this folder."""

from __future__ import annotations

import shutil

import pytest

from support.certificates import Authority, Identity


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is not on this machine")
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="session")
def server(authority: Authority) -> Identity:
    return authority.issue("server", "/O=Org/CN=broker")


@pytest.fixture(scope="session")
def client(authority: Authority) -> Identity:
    return authority.issue("client", "/C=US/O=Org/OU=ServiceUsers/CN=Duke")
