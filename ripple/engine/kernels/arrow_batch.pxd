"""A record batch in one block of memory: see arrow_batch.h."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from ripple.model.schema.exported cimport ArrowArray

cdef extern from "arrow_batch.h" nogil:
    enum:
        BATCH_OP, BATCH_NUMBER, BATCH_FLAG, BATCH_TEXT, BATCH_MADE, BATCH_SHORT, BATCH_TEXT_BYTES_MAX
    ctypedef struct BatchColumn:
        int kind
        const int64_t* bits
        const int64_t* at
        const uint8_t* valid
        const uint8_t* present
        const uint8_t** texts
        const uint32_t* lengths
        int64_t text_bytes
        ArrowArray made
    int batch_make(BatchColumn* columns, int count, int64_t rows, ArrowArray* batch)
