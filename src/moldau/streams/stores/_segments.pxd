# C types for _segments.py. The .py alone says what the code does; nothing here may change it.

cimport cython


@cython.locals(key=bytes)
cpdef bytes place_of(bytes segment, tuple entry)


cdef class Segments:
    cdef object _drop
    cdef long long _retention_ms
    cdef dict _segments
    cdef dict _times
    cdef dict _values
    cdef readonly long long observed_ms
    cdef readonly long long oldest_segment
    cdef readonly long long oldest_visible_ms
    cdef readonly long long segment_ms

    cdef _observe(self, long long time)
    @cython.locals(result=dict, values=dict, segment=bytes, entries=set, entry=tuple)
    cpdef dict placed(self)
    cpdef get(self, tuple entry)
    @cython.locals(time=cython.longlong, segment=cython.longlong, oldest=cython.longlong)
    cpdef bint put(self, tuple entry, value) except *
    @cython.locals(times=list, place=tuple)
    cdef _add(self, tuple entry, long long segment)
    @cython.locals(
        times=list, place=tuple, values=dict, entry=tuple, position=Py_ssize_t, result=list
    )
    cpdef list found(self, bytes key, object low, object high)
