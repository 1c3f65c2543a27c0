"""ksqlDB's aggregate functions, with the intermediate values that its changelogs hold.

An aggregate is never changed in place: stores may keep the old one.
"""
