# C types for fetch_reader.py: what turns the plain file into a fast module. The .py alone says what
# the code does; nothing here may change it.

cimport cython
from moldau.client._records cimport BatchReader

cdef class FetchReader:
    cdef object _data
    cdef Py_ssize_t _size
    cdef object _topic
    cdef object _partition
    cdef bint _read_committed
    cdef object _aborted
    cdef set _aborted_producers
    cdef BatchReader _batch
    cdef bint _is_open
    cdef Py_ssize_t _position
    cdef long long _leader_epoch
    cdef readonly long long next_offset
    cdef readonly bint exhausted
    cdef readonly Py_ssize_t byte_count
    cdef readonly Py_ssize_t record_count
    cdef readonly bint has_batch

    @cython.locals(records=list, batch=BatchReader, before=Py_ssize_t)
    cpdef list next(self, Py_ssize_t max_count)

    cdef Py_ssize_t _size_at(self, Py_ssize_t position) except? -1

    @cython.locals(
        batch=BatchReader, position=Py_ssize_t, size=Py_ssize_t, last_offset=cython.longlong
    )
    cdef bint _open_next(self) except? -1

    @cython.locals(
        last_offset=cython.longlong, attributes=cython.int, producer_id=cython.longlong
    )
    cdef bint _follow_transaction(self, tuple fields) except? -1
