# C types for _maps.py. The .py alone says what the code does; nothing here may change it.


cdef class OrderedMap:
    cpdef get(self, bytes key)
    cpdef put(self, bytes key, value)


cdef class ByteMap(OrderedMap):
    cdef dict _map
    cdef object _keys


cdef class DiskMap(OrderedMap):
    cdef object _disk
    cdef object _disk_get
    cdef object _grow
    cdef dict _pending
    cdef object _keys
