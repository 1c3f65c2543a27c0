"""Asks a Connect server something: the proof that it answers, not only that it listens."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moldau.spark.runtime.errors import require

__all__ = ["USER_ID", "answers", "authorization", "listens", "responds"]

USER_ID = "moldau"


def listens(host: str, port: int, *, seconds_max: float = 1.0) -> bool:
    try:
        socket.create_connection((host, port), timeout=seconds_max).close()
    except OSError:
        return False
    return True


def authorization(token: str | None) -> list[tuple[str, str]]:
    """The metadata of calls to a server that asks for `token`."""
    return [] if token is None else [("authorization", f"Bearer {token}")]


def answers(host: str, port: int, *, seconds_max: float, token: str | None = None) -> str | None:
    """Spark's version, or None if there is no answer in time."""
    grpc = require("grpc")
    messages = require("pyspark.sql.connect.proto.base_pb2")
    session = str(uuid.uuid4())
    user = messages.UserContext(user_id=USER_ID)
    question = messages.AnalyzePlanRequest(
        session_id=session,
        user_context=user,
        spark_version=messages.AnalyzePlanRequest.SparkVersion(),
    )
    with _stub(host, port) as stub:
        try:
            proof = authorization(token)
            answer = stub.AnalyzePlan(question, timeout=seconds_max, metadata=proof)
            # Else the server would keep the session of this one question for an hour.
            release = messages.ReleaseSessionRequest(session_id=session, user_context=user)
            stub.ReleaseSession(release, timeout=seconds_max, metadata=proof)
        except grpc.RpcError:
            return None
    return str(answer.spark_version.version)


def responds(host: str, port: int, *, seconds_max: float, token: str | None = None) -> bool:
    """Whether it answers at all. It is asked to release a session that it does not have, which
    costs it nothing, where any other question has a session made for it."""
    grpc = require("grpc")
    messages = require("pyspark.sql.connect.proto.base_pb2")
    user = messages.UserContext(user_id=USER_ID)
    question = messages.ReleaseSessionRequest(session_id=str(uuid.uuid4()), user_context=user)
    with _stub(host, port) as stub:
        try:
            stub.ReleaseSession(question, timeout=seconds_max, metadata=authorization(token))
        except grpc.RpcError:
            return False
    return True


@contextmanager
def _stub(host: str, port: int) -> Iterator[Any]:
    grpc = require("grpc")
    service = require("pyspark.sql.connect.proto.base_pb2_grpc")
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        yield service.SparkConnectServiceStub(channel)
