"""Checks a definition as far as that is possible without data.

| where | what |
|---|---|
| `machine/types.py` | types and column lists (DDL) |
| `machine/sql_parser.py`, `sql_expressions.py` | the syntax of queries and expressions |
| `machine/resolving.py` | views and columns that do not exist |
| `flow.py` | the columns of a whole definition, from source to sink |
| `report.py` | all of it for one file, with places; with Spark's own analysis, if a server runs |

Spark's analysis is the authority: what it accepts is right, whatever is found here.
"""

from __future__ import annotations

from moldau.pipelines.validation.report import Validation, validate

__all__ = ["Validation", "validate"]
