"""The record that consumers return. The stub beside this file gives type checkers its parameters:
the class itself is compiled, and compiled classes cannot be generic in the language's own way."""

from moldau.client._records import ConsumerRecord

__all__ = ["ConsumerRecord"]
