# C types for _batch.py: what turns the plain file into a fast module. The .py alone says what the
# code does; nothing here may change it.

cimport cython

cdef class ProducerBatch:
    cdef public object queue
    cdef public object builder
    cdef public object memory_size
    cdef public object created_ms
    cdef public Py_ssize_t record_count
    cdef public object attempts
    cdef public bint in_retry
    cdef public bint is_part
    cdef public object last_attempt_ms
    cdef public object drained_ms
    cdef public object leader_epoch
    cdef public object producer_id
    cdef public object producer_epoch
    cdef public object base_sequence
    cdef public bint sequence_reset
    cdef public list callbacks
    cdef public list waiters
    cdef public object outcome
    cdef public bint done
    cdef public list parts
    cdef public object error
    cdef public object record_errors
    cdef public long long base_offset
    cdef public long long log_append_time

# Its only way back to itself is by the batch's callbacks, which end with the batch: the collector
# need not visit it, of which there may be millions.
@cython.no_gc
@cython.freelist(256)
cdef class RecordFuture:
    cdef ProducerBatch _batch
    cdef Py_ssize_t _index
    cdef long long _timestamp
    cdef Py_ssize_t _key_size
    cdef Py_ssize_t _value_size

@cython.locals(each=RecordFuture, batch=ProducerBatch, last=ProducerBatch)
cpdef bint all_done(list futures)

@cython.locals(each=RecordFuture, batch=ProducerBatch)
cpdef list errors_of(list futures)
