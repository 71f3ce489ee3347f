/* A record batch in one block of memory, handed out by Arrow's C data interface.
 *
 * The block holds what the interface needs to describe the columns, and then their buffers. It is
 * freed when the last reader of any column lets go.
 */
#ifndef RIPPLE_ARROW_BATCH_H
#define RIPPLE_ARROW_BATCH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowArray { /* https://arrow.apache.org/docs/format/CDataInterface.html */
    int64_t length, null_count, offset, n_buffers, n_children;
    const void** buffers;
    struct ArrowArray** children;
    struct ArrowArray* dictionary;
    void (*release)(struct ArrowArray*);
    void* private_data;
};
#endif

/* How a column's values are come by. */
enum { BATCH_OP, BATCH_NUMBER, BATCH_FLAG, BATCH_TEXT, BATCH_MADE };

enum { BATCH_SHORT = 16 }; /* bytes that are copied at once, how many of them may count */

enum { BATCH_TEXT_BYTES_MAX = 0x7FFFFFFF }; /* of one column, whose offsets have 32 bits */

typedef struct {
    int kind;
    const int64_t* bits;    /* row i has bits[at[i]], or bits[i] where at is NULL */
    const int64_t* at;
    const uint8_t* valid;   /* likewise: 0 for null; NULL if none is null */
    const uint8_t* present; /* by row: 0 if all its values are null; NULL if no row is so */
    const uint8_t** texts;  /* by row, with their lengths; BATCH_SHORT bytes are there in any case */
    const uint32_t* lengths;
    int64_t text_bytes;     /* of all of them, at most BATCH_TEXT_BYTES_MAX */
    struct ArrowArray made; /* a whole column from elsewhere */
} BatchColumn;

static inline size_t batch_room(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

static inline size_t batch_bits(int64_t rows)
{
    return batch_room(((size_t)rows + 7) / 8);
}

static size_t batch_bytes_of(const BatchColumn* column, int64_t rows)
{
    const size_t mask = column->valid || column->present ? batch_bits(rows) : 0;
    switch (column->kind) {
    case BATCH_OP:
        return batch_room((size_t)rows);
    case BATCH_NUMBER:
        return batch_room(8 * (size_t)rows) + mask;
    case BATCH_FLAG:
        return batch_bits(rows) + mask;
    case BATCH_TEXT:
        return batch_room(4 * ((size_t)rows + 1)) +
               batch_room((size_t)column->text_bytes + BATCH_SHORT) + mask;
    default:
        return 0;
    }
}

static void batch_release_column(struct ArrowArray* array)
{
    array->release = NULL;
}

static void batch_release(struct ArrowArray* array)
{
    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release)
            array->children[i]->release(array->children[i]);
    free(array->private_data);
    array->release = NULL;
}

static inline int batch_is_there(const BatchColumn* c, int64_t row)
{
    return (!c->valid || c->valid[c->at ? c->at[row] : row]) && (!c->present || c->present[row]);
}

static char* batch_fill_mask(const BatchColumn* c, int64_t rows, struct ArrowArray* out, char* room)
{
    uint8_t* mask = (uint8_t*)room;
    int64_t nulls = 0;
    if (!c->valid && !c->present)
        return room;
    if (c->valid && c->at && !c->present)
        for (int64_t i = 0; i < rows; i++)
            nulls += !c->valid[c->at[i]];
    else
        for (int64_t i = 0; i < rows; i++)
            nulls += !batch_is_there(c, i);
    out->null_count = nulls;
    if (nulls) { /* else there is no mask, and nearly always there are none */
        memset(mask, 0, batch_bits(rows));
        for (int64_t i = 0; i < rows; i++)
            mask[i >> 3] |= (uint8_t)(batch_is_there(c, i) << (i & 7));
        out->buffers[0] = mask;
    }
    return room + batch_bits(rows);
}

static char* batch_fill_column(const BatchColumn* c, int64_t rows, struct ArrowArray* out,
                               char* room)
{
    if (c->kind == BATCH_OP) {
        for (int64_t i = 0; i < rows; i++)
            room[i] = c->present && !c->present[i] ? 2 : 0; /* Remove, Set of ripple.core.row_ops */
        out->buffers[1] = room;
        return room + batch_room((size_t)rows);
    }
    room = batch_fill_mask(c, rows, out, room);
    if (c->kind == BATCH_TEXT) {
        int32_t* offsets = (int32_t*)room;
        char* data = room + batch_room(4 * ((size_t)rows + 1));
        int32_t end = 0;
        for (int64_t i = 0; i < rows; i++) {
            offsets[i] = end;
            if (c->lengths[i] <= BATCH_SHORT)
                memcpy(data + end, c->texts[i], BATCH_SHORT);
            else
                memcpy(data + end, c->texts[i], c->lengths[i]);
            end += (int32_t)c->lengths[i];
        }
        offsets[rows] = end;
        out->n_buffers = 3;
        out->buffers[1] = offsets;
        out->buffers[2] = data;
        return data + batch_room((size_t)c->text_bytes + BATCH_SHORT);
    }
    out->buffers[1] = room;
    if (c->kind == BATCH_NUMBER) {
        int64_t* values = (int64_t*)room;
        if (c->at)
            for (int64_t i = 0; i < rows; i++)
                values[i] = c->bits[c->at[i]];
        else if (rows)
            memcpy(values, c->bits, 8 * (size_t)rows);
        return room + batch_room(8 * (size_t)rows);
    }
    memset(room, 0, batch_bits(rows));
    for (int64_t i = 0; i < rows; i++)
        if (c->bits[c->at ? c->at[i] : i])
            room[i >> 3] |= (char)(1 << (i & 7));
    return room + batch_bits(rows);
}

/* Make a batch of the columns; what was made elsewhere belongs to it. -1 without memory, then that
 * is released. */
static inline int batch_make(BatchColumn* columns, int count, int64_t rows,
                             struct ArrowArray* batch)
{
    const size_t described = batch_room(
        (size_t)count * (sizeof(struct ArrowArray) + sizeof(void*) * 4) + sizeof(void*));
    size_t bytes = described + 64;
    for (int i = 0; i < count; i++)
        bytes += batch_bytes_of(columns + i, rows);
    char* block = (char*)malloc(bytes);
    if (!block) {
        for (int i = 0; i < count; i++)
            if (columns[i].kind == BATCH_MADE)
                columns[i].made.release(&columns[i].made);
        return -1;
    }
    struct ArrowArray* children = (struct ArrowArray*)block;
    struct ArrowArray** listed = (struct ArrowArray**)(children + count);
    const void** buffers = (const void**)(listed + count);
    char* room = (char*)(((uintptr_t)block + described + 63) & ~(uintptr_t)63);
    memset(children, 0, (size_t)count * sizeof *children);
    memset(buffers, 0, (3 * (size_t)count + 1) * sizeof *buffers);
    for (int i = 0; i < count; i++) {
        struct ArrowArray* child = listed[i] = children + i;
        if (columns[i].kind == BATCH_MADE) {
            *child = columns[i].made;
            continue;
        }
        child->length = rows;
        child->n_buffers = 2;
        child->buffers = buffers + 3 * i;
        child->release = batch_release_column;
        room = batch_fill_column(columns + i, rows, child, room);
    }
    memset(batch, 0, sizeof *batch);
    batch->length = rows;
    batch->n_buffers = 1;
    batch->buffers = buffers + 3 * count;
    batch->n_children = count;
    batch->children = listed;
    batch->release = batch_release;
    batch->private_data = block;
    return 0;
}

#endif
