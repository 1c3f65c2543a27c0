# C types for _frames.py: what turns the plain file into a fast module. The .py alone says what the
# code does; nothing here may change it.

cimport cython

cdef class FrameDecoder:
    cdef long long _size_max
    cdef object _limit_key
    cdef object _pool
    cdef readonly object _data
    cdef Py_ssize_t _position
    cdef Py_ssize_t _end
    cdef readonly bytearray _partial
    cdef readonly Py_ssize_t _have
    cdef Py_ssize_t _need
    cdef bint _pooled
    cdef object _used

    cpdef feed(self, data)
    @cython.locals(start=Py_ssize_t, size=cython.longlong, end=Py_ssize_t)
    cpdef next_frame(self)
    cpdef space(self)
    cpdef received(self, Py_ssize_t count)
    cpdef detach(self)
    @cython.locals(size=cython.longlong)
    cdef _next_of_partial(self)
    cdef _drop_partial(self)
    @cython.locals(count=Py_ssize_t, have=Py_ssize_t)
    cdef _take(self, Py_ssize_t need)
    @cython.locals(count=Py_ssize_t)
    cdef _keep_partial(self)
    @cython.locals(old=bytearray)
    cdef _reserve(self, Py_ssize_t size)
    cdef _recycle(self)
