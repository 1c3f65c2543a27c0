# C types for _send_path.py: what turns the plain file into a fast module. The .py alone says what
# the code does; nothing here may change it.

cimport cython
from moldau.client._batch_builder cimport BatchBuilder
from moldau.client.producer._batch cimport ProducerBatch, RecordFuture
from moldau.client.producer._murmur2 cimport partition_for_key

cdef Py_ssize_t _RECORD_OVERHEAD
cdef object _IN_TRANSACTION

cdef class Outgoing:
    cdef public object topic
    cdef public object value
    cdef public object key
    cdef public object partition
    cdef public object timestamp
    cdef public object headers
    cdef public object on_delivery
    cdef public bint is_serialized
    cdef public object key_bytes
    cdef public object value_bytes
    cdef public object memory_size

cdef class SendPath:
    cdef object _accumulator
    cdef dict _topics
    cdef object _lock
    cdef object _acquire
    cdef object _release
    cdef object _sender
    cdef object _txn
    cdef object _status
    cdef object _serialize_key
    cdef object _serialize_value
    cdef bint _plain
    cdef object _intercept
    cdef object _refuse
    cdef bint _ignore_keys
    cdef object _custom
    cdef Py_ssize_t _size_max
    cdef object _max_request_size
    cdef object _buffer_memory
    cdef object _linger_ms
    cdef object _clock
    cdef bint _transactional
    cdef public object picture
    cdef public bint closed
    cdef public Py_ssize_t batch_count

    @cython.locals(
        key_size=Py_ssize_t,
        value_size=Py_ssize_t,
        size=Py_ssize_t,
        queues=list,
        index=Py_ssize_t,
        number=Py_ssize_t,
        batch=ProducerBatch,
        future=RecordFuture,
        builder=BatchBuilder,
    )
    cdef RecordFuture _append(
        self,
        object entry,
        object partition,
        long long timestamp,
        object key,
        object value,
        object headers,
        object on_delivery,
        object memory_size,
    )

    cdef ProducerBatch _new_batch(
        self, object queue, object key, object value, object headers, object memory_size
    )
