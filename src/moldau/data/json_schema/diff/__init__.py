"""Compares two schemas as Confluent's registry does: the ordered list of what has changed.

`schema_diff.py` is the entry. Each part compares one kind of schema and asks the context for the
comparison of the schemas inside; `engine.py` answers, so that depth costs no stack.
"""
