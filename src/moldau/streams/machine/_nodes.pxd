# C types for _nodes.py. The .py alone says what the code does; nothing here may change it.

cimport cython
from moldau.streams._records cimport (
    PartitionProgress,
    Produced,
    Record,
    RecordContext,
    TaskCore,
    new_record,
)
from moldau.streams._serdes cimport CoreSerde, core_serde


cdef class ProcessorContext


cdef class Processor:
    cdef public ProcessorContext context

    cpdef init(self, context)
    cpdef process(self, Record record)
    cpdef close(self)


cdef class Node:
    cdef readonly object name
    cdef readonly Processor processor
    cdef readonly list children
    cdef readonly object stores
    cdef public object context
    cdef public long long count


cdef class ProcessorContext:
    cdef readonly object runtime
    cdef TaskCore _core
    cdef readonly Node node
    cdef list _children

    @cython.locals(
        core=TaskCore,
        before=RecordContext,
        node=Node,
        children=list,
        position=Py_ssize_t,
        count=Py_ssize_t,
    )
    cpdef forward(self, Record record, child=*)
    cpdef drop(self)


cdef class SinkNode(Processor):
    cdef object _chooser
    cdef object _collect
    cdef CoreSerde _keys
    cdef CoreSerde _values
    cdef object _names
    cdef object _partitioner
    cdef object _runtime
    cdef object _topic

    cpdef process(self, Record record)


cdef class SourceNode:
    cdef ProcessorContext _context
    cdef TaskCore _core
    cdef object _extractor
    cdef bint _by_wall_clock
    cdef CoreSerde _keys
    cdef CoreSerde _values
    cdef int _partition
    cdef PartitionProgress _progress
    cdef object _runtime
    cdef object _topic

    @cython.locals(core=TaskCore, progress=PartitionProgress)
    cpdef read(
        self, int partition, long long offset, key, value, long long timestamp, headers
    )
    cpdef read_all(self, int partition, records)
