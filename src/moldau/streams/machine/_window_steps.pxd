# C types for _window_steps.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams._records cimport Change, Record, new_change, new_record
from moldau.streams.longs cimport unpack_long
from moldau.streams.machine._nodes cimport Processor, ProcessorContext
from moldau.streams.stores._windows cimport WindowStore


cdef class WindowAggregator(Processor):
    cdef object _store_name
    cdef long long _size_ms
    cdef long long _advance_ms
    cdef long long _grace_ms
    cdef object _initializer
    cdef object _aggregator
    cdef bint _counts
    cdef bint _send_old
    cdef bint _cached
    cdef long long _observed_ms
    cdef WindowStore _store

    @cython.locals(
        timestamp=cython.longlong,
        advance=cython.longlong,
        close_ms=cython.longlong,
        start=cython.longlong,
        raw=bytes,
    )
    cpdef process(self, Record record)
    @cython.locals(
        store=WindowStore,
        timestamp=cython.longlong,
        since=cython.longlong,
        kept=bytes,
        change=Change,
    )
    cdef _update(self, Record record, bytes raw, long long start)
