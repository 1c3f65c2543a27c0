# C types for _sending.py: what turns the plain file into a fast module. The .py alone says what the
# code does; nothing here may change it.

cimport cython

cdef class Sender:
    cdef object _channel
    cdef int _fd
    cdef object _loop
    cdef object _notice_reset
    cdef object _owner
    cdef object _phases
    cdef object _traffic
    cdef readonly object unsent

    @cython.locals(size=Py_ssize_t, sent=Py_ssize_t)
    cpdef send(self, list buffers)
    @cython.locals(size=Py_ssize_t)
    cdef _drop_sent(self, Py_ssize_t count)
