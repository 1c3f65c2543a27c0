# C types for _join_steps.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams._records cimport Record, new_record
from moldau.streams.machine._nodes cimport Processor, ProcessorContext
from moldau.streams.stores._tables cimport TimestampedKeyValueStore
from moldau.streams.stores._windows cimport WindowStore


cdef class JoinWindow(Processor):
    cdef object _store_name
    cdef object _store

    cpdef process(self, Record record)


cdef class JoinClock:
    cdef public long long stream_time_ms
    cdef public object min_ms
    cdef public long long next_emit_ms


cdef class StreamJoin(Processor):
    cdef object _spec
    cdef bint _is_left
    cdef object _joiner
    cdef long long _before_ms
    cdef long long _after_ms
    cdef WindowStore _other
    cdef object _shared
    cdef JoinClock _clock
    cdef long long _interval_ms

    cdef _join(self, key, this, other)
    @cython.locals(
        clock=JoinClock,
        timestamp=cython.longlong,
        latest=cython.longlong,
        time=cython.longlong,
        low=cython.longlong,
        high=cython.longlong,
        matches=list,
    )
    cpdef process(self, Record record)


cdef class StreamTableJoin(Processor):
    cdef object _spec
    cdef object _joiner
    cdef object _key
    cdef bint _left
    cdef object _table
    cdef TimestampedKeyValueStore _store
    cdef object _buffer

    cpdef process(self, Record record)
    @cython.locals(kept=bytes)
    cdef _join(self, key, Record record)
