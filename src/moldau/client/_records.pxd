# C types for _records.py: what turns the plain file into a fast module. The .py alone says what
# the code does; nothing here may change it.

cimport cython
from moldau.wire.varint cimport varint, varint_length, varlong

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object item)


cdef class ConsumerRecord:
    cdef readonly object topic
    cdef readonly object key
    cdef readonly object value
    cdef readonly object headers
    cdef readonly long long offset
    cdef readonly long long timestamp
    cdef readonly int partition
    cdef readonly int serialized_key_size
    cdef readonly int serialized_value_size
    cdef int _leader_epoch
    cdef short _delivery_count
    cdef readonly short timestamp_type

@cython.locals(
    _=Py_ssize_t, size=Py_ssize_t, length=cython.longlong, name=bytes, headers=list
)
cdef tuple _read_headers(const unsigned char *data, Py_ssize_t position, Py_ssize_t count)

cdef class BatchReader:
    cdef const unsigned char[::1] _view
    cdef object _source
    cdef object _topic
    cdef int _partition
    cdef object _key_deserializer
    cdef object _value_deserializer
    cdef bint _check_crcs
    cdef int _key_kind
    cdef int _value_kind
    cdef Py_ssize_t _position
    cdef Py_ssize_t _index
    cdef long long _start_offset
    cdef long long _base_timestamp
    cdef long long _append_time
    cdef int _timestamp_type
    cdef int _leader_epoch
    cdef readonly long long base_offset
    cdef readonly long long last_offset
    cdef readonly long long next_offset
    cdef readonly long long producer_id
    cdef readonly bint is_control
    cdef readonly bint is_transactional
    cdef readonly Py_ssize_t record_count
    cdef readonly Py_ssize_t size

    @cython.locals(
        base_offset=cython.longlong,
        length=cython.longlong,
        magic=cython.int,
        crc=cython.ulonglong,
        attributes=cython.int,
        last_delta=cython.longlong,
        base_timestamp=cython.longlong,
        record_count=cython.longlong,
        size=cython.longlong,
        end=cython.longlong,
        start=cython.longlong,
    )
    cpdef open(self, object data, Py_ssize_t position, long long start_offset)

    cpdef list next(self, Py_ssize_t max_count=*)

    @cython.locals(
        chars="const unsigned char *",
        record=ConsumerRecord,
        partition=cython.int,
        leader_epoch=cython.int,
        atomic=cython.bint,
        position=Py_ssize_t,
        left=Py_ssize_t,
        room=Py_ssize_t,
        size=Py_ssize_t,
        length=cython.longlong,
        record_end=Py_ssize_t,
        timestamp=cython.longlong,
        offset=cython.longlong,
    )
    cpdef fill(self, list records, Py_ssize_t max_count)

    cdef _deserialize(self, ConsumerRecord record)

@cython.locals(
    taken=list, index=Py_ssize_t, count=Py_ssize_t, record=ConsumerRecord
)
cpdef list acquired_records(object records, object ranges)
