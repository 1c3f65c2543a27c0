"""Logins: SASL exchanges of clients and other nodes with this one."""
