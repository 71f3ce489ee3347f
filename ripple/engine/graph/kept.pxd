"""Values that are no numbers, as columns hold them: bytes that all columns with the value share."""

cdef extern from *:
    """
    #ifndef RIPPLE_KEPT
    #define RIPPLE_KEPT
    #include <stddef.h>
    #include <stdint.h>
    #include <stdlib.h>

    /* A value in canonical form, its bytes right behind. Invariant: so many places hold it. */
    typedef struct { uint64_t uses; size_t size; } Kept;

    static inline char *kept_bytes(const Kept *kept) { return (char *)(kept + 1); }

    /* Returns a value for one place, its bytes to be written; NULL without memory. */
    static inline Kept *kept_new(size_t size)
    {
        Kept *kept = (Kept *)malloc(sizeof(Kept) + size);
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

    static inline void kept_drop(Kept *kept)
    {
        if (kept && --kept->uses == 0)
            free(kept);
    }
    #endif
    """
    ctypedef struct Kept:
        size_t size
    char* kept_bytes(const Kept* kept) noexcept nogil
    Kept* kept_new(size_t size) noexcept nogil
    Kept* kept_again(Kept* kept) noexcept nogil
    void kept_drop(Kept* kept) noexcept nogil
