"""Errors of functions on a row's values: the result is NULL, the processing log says why."""

from __future__ import annotations

from moldau.sql.errors import KsqlException


class FunctionError(KsqlException):
    """ksqlDB's KsqlFunctionException."""
