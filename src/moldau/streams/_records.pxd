# C types for _records.py. The .py alone says what the code does; nothing here may change it.

cimport cython


@cython.freelist(64)
cdef class Record:
    cdef readonly object key
    cdef readonly object value
    cdef readonly object headers
    cdef readonly long long timestamp

    cpdef Record with_key(self, object key)
    cpdef Record with_value(self, object value)


@cython.locals(record=Record)
cpdef Record new_record(object key, object value, long long timestamp, object headers)


@cython.freelist(64)
cdef class Change:
    cdef readonly object new
    cdef readonly object old
    cdef readonly bint is_latest


@cython.locals(change=Change)
cpdef Change new_change(object new, object old)


# They hold text, bytes and headers only, so no cycle can run through them.
@cython.no_gc
@cython.freelist(16)
cdef class RecordContext:
    cdef readonly object topic
    cdef readonly object headers
    cdef readonly long long offset
    cdef readonly long long timestamp
    cdef readonly int partition

    cpdef RecordContext at(self, long long timestamp, object headers)


@cython.no_gc
@cython.freelist(64)
cdef class Produced:
    cdef readonly object topic
    cdef readonly object key
    cdef readonly object value
    cdef readonly object headers
    cdef readonly object partition
    cdef readonly long long timestamp


cdef class PartitionProgress:
    cdef public long long position
    cdef public long long time


cdef class TaskCore:
    cdef public RecordContext record_context
    cdef public object raw_key
    cdef public object raw_value
    cdef public long long stream_time_ms
    cdef public long long wall_clock_ms
    cdef public long long dropped
