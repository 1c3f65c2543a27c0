"""Dates and times by Java's patterns: DateTimeFormatter's (`formatter.py`) and those of
SimpleDateFormat and FastDateFormat (`simple.py`). Names of months and days are English.

Moments are milliseconds since 1970, dates are days since 1970, times are milliseconds or
nanoseconds of the day. Years may lie far outside of what `datetime` can hold.
"""
