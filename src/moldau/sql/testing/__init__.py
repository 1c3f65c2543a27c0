"""Runs statements and ASSERTs in this process, without a broker."""
