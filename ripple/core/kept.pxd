"""Values that are no numbers, as columns hold them: bytes that all columns with the value share."""

from libc.stdint cimport int64_t, uint8_t

from ripple.core.hashing cimport xxh64

cdef extern from *:
    """
    #ifndef RIPPLE_KEPT
    #define RIPPLE_KEPT
    #include <Python.h>
    #include <stddef.h>
    #include <stdint.h>
    #include <string.h>

    /* A value in canonical form, its bytes right behind. Invariant: so many places hold it.

       Python's allocator has them, which wastes less on millions of short texts than malloc, and
       does not join the neighbours of each that is freed: so whoever calls holds the GIL. */
    typedef struct { uint64_t uses; size_t size; } Kept;

    static inline char *kept_bytes(const Kept *kept) { return (char *)(kept + 1); }

    /* Returns a value for one place, its bytes to be written; NULL without memory. */
    static inline Kept *kept_new(size_t size)
    {
        Kept *kept = (Kept *)PyObject_Malloc(sizeof(Kept) + size);
        if (kept) {
            kept->uses = 1;
            kept->size = size;
        }
        return kept;
    }

    /* Returns the same value, or NULL, for one more place. */
    static inline Kept *kept_again(Kept *kept)
    {
        if (kept)
            kept->uses++;
        return kept;
    }

    /* Returns a text for one place, after its length: s2:ab. NULL without memory. */
    static inline Kept *kept_text(const char *text, size_t size)
    {
        char head[24];
        size_t at = sizeof head, rest = size;
        Kept *kept;
        head[--at] = ':';
        do
            head[--at] = (char)('0' + rest % 10);
        while (rest /= 10);
        head[--at] = 's';
        kept = kept_new(sizeof head - at + size);
        if (kept) {
            memcpy(kept_bytes(kept), head + at, sizeof head - at);
            if (size)
                memcpy(kept_bytes(kept) + sizeof head - at, text, size);
        }
        return kept;
    }

    /* Returns where a kept text begins; it ends with the value. So many letters follow a head of
       that many bytes that the size alone tells them. */
    static inline const char *kept_letters(const Kept *kept)
    {
        size_t head = 3, most = 9;
        while (kept->size > head + most) {
            head++;
            most = most * 10 + 9;
        }
        return kept_bytes(kept) + head;
    }

    static inline void kept_drop(Kept *kept)
    {
        if (kept && --kept->uses == 0)
            PyObject_Free(kept);
    }
    #endif
    """
    ctypedef struct Kept:
        size_t size
    char* kept_bytes(const Kept* kept) noexcept nogil
    Kept* kept_new(size_t size) noexcept
    Kept* kept_text(const char* text, size_t size) noexcept
    const char* kept_letters(const Kept* kept) noexcept nogil
    Kept* kept_again(Kept* kept) noexcept nogil
    void kept_drop(Kept* kept) noexcept


cdef inline int64_t print_of(const char* held, size_t size) noexcept nogil:
    """Return 63 bits that stand for a value in canonical form."""
    return <int64_t>(xxh64(<const uint8_t*>held, <Py_ssize_t>size, 0) >> 1)
