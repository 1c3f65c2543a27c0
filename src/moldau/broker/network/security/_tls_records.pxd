# C types for _tls_records.py; nothing here may change what it does.

cimport cython
from cpython.memoryview cimport PyMemoryView_GET_BUFFER


cdef inline tuple after(tuple room, Py_ssize_t count):
    # Moves the start of the view, which nobody else has: making another one, and a tuple for it,
    # would cost half of what Python does for a record.
    cdef Py_buffer *view = PyMemoryView_GET_BUFFER(room[1])
    view.buf = <char *>view.buf + count
    view.len -= count
    view.shape[0] -= count
    return room


@cython.locals(size=Py_ssize_t, count=Py_ssize_t, received=Py_ssize_t, room=tuple)
cpdef tuple read_records(object read, object incoming, object buffer)
