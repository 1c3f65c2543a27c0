# C types for _steps.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams._records cimport Change, Record, new_change, new_record
from moldau.streams.longs cimport unpack_long
from moldau.streams.machine._nodes cimport Processor, ProcessorContext
from moldau.streams.stores._tables cimport TimestampedKeyValueStore


cdef class PassThrough(Processor):
    cpdef process(self, Record record)


cdef class Filter(Processor):
    cdef object _predicate
    cdef bint _negate

    cpdef process(self, Record record)


cdef class Map(Processor):
    cdef object _mapper

    cpdef process(self, Record record)


cdef class SelectKey(Processor):
    cdef object _mapper

    cpdef process(self, Record record)


cdef class MapValues(Processor):
    cdef object _mapper
    cdef bint _with_key

    cpdef process(self, Record record)


cdef class FlatMap(Processor):
    cdef object _mapper

    cpdef process(self, Record record)


cdef class FlatMapValues(Processor):
    cdef object _mapper

    cpdef process(self, Record record)


cdef class Peek(Processor):
    cdef object _action
    cdef bint _passes_on

    cpdef process(self, Record record)


cdef class ToStream(Processor):
    @cython.locals(change=Change)
    cpdef process(self, Record record)


cdef class StreamAggregator(Processor):
    cdef object _store_name
    cdef object _initializer
    cdef object _aggregator
    cdef bint _counts
    cdef bint _send_old
    cdef bint _cached
    cdef TimestampedKeyValueStore _store
    cdef object _table

    @cython.locals(
        store=TimestampedKeyValueStore,
        timestamp=cython.longlong,
        since=cython.longlong,
        raw=bytes,
        kept=bytes,
        change=Change,
    )
    cpdef process(self, Record record)
