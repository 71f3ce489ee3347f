/* Lines in which nothing is unusual, read column by column.

   First it is found where fields end, of some hundred lines at once. Where every so-many-th mark is a
   line's end, each column is one loop over its fields, which knows what it expects. This way never
   refuses a line: what it does not read is for the careful way to judge, and what it reads is what the
   careful way would read. A field's value is the same because its digits are: both ways divide the same
   integer by the same power of ten. */

#ifndef RIPPLE_PLAIN_COLUMNS_H
#define RIPPLE_PLAIN_COLUMNS_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "plain_text.h"
#include "plain_wide.h"

namespace ripple {

enum Kind { STRING, INTEGER, FLOAT, BOOL };

struct Column {
    Kind kind;
    bool optional, finite, ranged, measured;
    bool digits; /* of a string: a number, which is kept as it is written */
    int64_t low, high; /* both inclusive; of integers that are not ranged, all */
    double low_float, high_float;
    ptrdiff_t shortest, longest; /* of strings, in characters */
    uint8_t delimiter;           /* between fields, the same of all columns */
    bool wanted;                 /* the pointers below are null otherwise */
    uint8_t* values;             /* int64, double, one byte per truth value, or the bytes of strings */
    int* offsets;                /* strings only: where each row's begins and the last one's ends */
    uint8_t* valid;              /* one byte per row, optional ones only */
};

/* Reads one field the careful way; false if it is not good. */
typedef bool (*ReadField)(const uint8_t* p, const uint8_t* stop, Column& column, ptrdiff_t row);

/* How many bytes before a field's end may be read, but in words. */
constexpr ptrdiff_t BEFORE_BYTES = 32;
constexpr ptrdiff_t MARKS_AT_ONCE = 1024, ONE_BY_ONE = 64;

/* Look for marks from `p` on, until there are enough or what may be read ends; return where that was. */
template <class Of>
inline const uint8_t* find(
    const uint8_t* data, const uint8_t* p, const uint8_t* end, uint8_t delimiter, uint32_t** found,
    const uint32_t* enough) {
    uint32_t* out = *found;
    for (; end - p >= 64 + SLACK_BYTES && out <= enough; p += 64) {
        const uint32_t at = (uint32_t)(p - data);
        for (uint64_t marks = Of::marks_64(p, delimiter); marks; marks &= marks - 1)
            *out++ = at + (uint32_t)__builtin_ctzll(marks);
    }
    *found = out;
    return p;
}

/* Each of these reads fields into their rows, and returns how many: those before the first that is not
   read, or does not end as it should. */

inline ptrdiff_t read_strings(const Fields& fields, const Column& column) {
    const ptrdiff_t shortest = column.optional && column.shortest < 1 ? 1 : column.shortest;
    const ptrdiff_t longest = column.longest;
    const Fields of = fields;
    const uint32_t* mark = of.before;
    uint8_t* const values = column.values;
    int* offsets = column.wanted ? column.offsets + of.row : nullptr;
    int offset = column.wanted ? *offsets : 0;
    for (ptrdiff_t line = 0; line < of.lines; line++, mark += of.stride) {
        const uint8_t* p = of.data + (uint32_t)(mark[0] + 1);
        const uint8_t* stop = of.data + mark[1];
        const ptrdiff_t length = stop - p;
        if (unlikely(*stop != of.end))
            return line;
        if (unlikely(length < shortest || length > longest)) {
            if (length || !column.optional)
                return line;
            if (column.valid)
                column.valid[of.row + line] = 0;
        }
        if (offsets) {
            if (unlikely(length > SLACK_BYTES))
                std::memcpy(values + offset, p, length);
            else
                std::memcpy(values + offset, p, SLACK_BYTES);
            offset += (int)length;
            *++offsets = offset;
        }
    }
    return of.lines;
}

/* Each kind of number reads one, whose field is not empty and ends before `stop`, or says that it cannot;
   and as many as the way can at once. */

template <class Way>
struct Integers {
    typedef int64_t Value;
    const int64_t low, high;

    explicit Integers(const Column& column) : low(column.low), high(column.high) {}

    ptrdiff_t many(const Fields& fields, ptrdiff_t line, int64_t* values) const {
        return Way::integers(fields, line, low, high, values);
    }

    bool one(const uint8_t* p, const uint8_t* stop, uint64_t other, int64_t* into) const {
        const bool negative = *p == '-';
        const size_t count = stop - p - negative;
        uint64_t magnitude;
        if (count - 1 < 16) {
            magnitude = Way::digits(stop, (int)count, &other);
        } else {
            if (count - 1 >= 19)
                return false;
            magnitude = Way::digits(stop, 16, &other);
            magnitude += Words::digits_8(stop - count, (int)count - 16, &other) * TEN_TO_16;
            other |= magnitude >> 63;
        }
        const int64_t value = (int64_t)(negative ? 0 - magnitude : magnitude);
        *into = value;
        return !(unlikely(other) || unlikely(value < low) || unlikely(value > high));
    }
};

template <class Way>
struct Floats {
    typedef double Value;
    const double low, high;

    explicit Floats(const Column& column)
        : low(column.ranged ? column.low_float : -HUGE_VAL),
          high(column.ranged ? column.high_float : HUGE_VAL) {}

    ptrdiff_t many(const Fields& fields, ptrdiff_t line, double* values) const {
        return Way::floats(fields, line, low, high, values);
    }

    bool one(const uint8_t* p, const uint8_t* stop, uint64_t other, double* into) const {
        const bool negative = *p == '-';
        const size_t count = stop - p - negative;
        if (count - 1 >= 16)
            return false;
        int digits, behind;
        const uint64_t mantissa = Way::decimal(stop, (int)count, &digits, &behind, &other);
        double value = (double)(int64_t)mantissa / DIVISORS[behind];
        value = negative ? -value : value;
        *into = value;
        return !(
            unlikely(other) || unlikely((unsigned)digits - 1 >= 15) || unlikely(value < low)
            || unlikely(value > high));
    }
};

template <class Number>
inline ptrdiff_t read_numbers(const Fields& fields, Column& column, ReadField read_field) {
    typedef typename Number::Value Value;
    const Number number(column);
    const Fields of = fields;
    Value unwanted[MARKS_AT_ONCE];
    Value* values = column.wanted ? (Value*)column.values + of.row : unwanted;
    for (ptrdiff_t line = 0; line < of.lines;) {
        line = number.many(of, line, values);
        /* Where that ended, some are read one by one. */
        const ptrdiff_t some = std::min(of.lines, line + ONE_BY_ONE);
        const uint32_t* mark = of.before + line * of.stride;
        for (; line < some; line++, mark += of.stride) {
            const uint8_t* p = of.data + (uint32_t)(mark[0] + 1);
            const uint8_t* stop = of.data + mark[1];
            if (unlikely(!number.one(p, stop, *stop ^ of.end, values + line))
                && (*stop != of.end || !read_field(p, stop, column, of.row + line)))
                return line;
        }
    }
    return of.lines;
}

inline ptrdiff_t read_bools(const Fields& fields, Column& column, ReadField read_field) {
    const uint32_t* mark = fields.before;
    for (ptrdiff_t line = 0; line < fields.lines; line++, mark += fields.stride) {
        const uint8_t* p = fields.data + (uint32_t)(mark[0] + 1);
        const uint8_t* stop = fields.data + mark[1];
        const bool is_true = stop - p == 4 && std::memcmp(p, "true", 4) == 0;
        if (*stop != fields.end)
            return line;
        if (is_true || (stop - p == 5 && std::memcmp(p, "false", 5) == 0)) {
            if (column.wanted)
                column.values[fields.row + line] = is_true;
        } else if (!read_field(p, stop, column, fields.row + line)) {
            return line;
        }
    }
    return fields.lines;
}

enum Way { WIDE, VECTORS, WORDS, CAREFUL };

/* Whether this processor has what WIDE takes; else VECTORS stands for it. */
inline bool has_wide() {
    static const bool wide = Wide::is_there();
    return wide;
}

/* Plain lines of a block, from its beginning on. */
class PlainLines {
   public:
    bool comments = true; /* whether a line that begins with # may be one */

    /* Prepare for a block. `way` is the best that may be taken; CAREFUL: no line is plain. */
    void begin(
        const uint8_t* data, const uint8_t* end, const std::vector<Column>& columns, Way way) {
        data_ = data;
        end_ = end;
        way_ = way == WIDE && !has_wide() ? VECTORS : way;
        if (end - data > INT32_MAX)
            way_ = CAREFUL; /* marks have 32 bits */
        delimiter_ = columns[0].delimiter;
        found_.resize(1 + (columns.size() + 1) + MARKS_AT_ONCE + 64);
        first_ = last_ = found_.data() + 1;
        looked_ = data;
    }

    /* Read lines at `p` into rows from `row` on, and return how many; `p` becomes what is behind them.
       `goes_on`: whether that may be plain, too. */
    ptrdiff_t read(
        const uint8_t** p, std::vector<Column>& columns, ptrdiff_t length_bytes_max, ptrdiff_t row,
        ReadField read_field, bool* goes_on) {
        *goes_on = false;
        const ptrdiff_t count = columns.size();
        if (way_ == CAREFUL)
            return 0;
        skip(*p);
        if (last_ - first_ <= count)
            look_further();
        if (last_ - first_ < count)
            return 0;
        const bool crs = data_[first_[count - 1]] == '\r';
        const ptrdiff_t stride = count + crs;
        /* Other ways than words look at what is before a field's end. */
        const bool early = way_ != WORDS && *p - data_ < BEFORE_BYTES;
        first_[-1] = (uint32_t)(*p - data_ - 1);
        Fields fields{data_, first_ - 1, stride, 0, delimiter_, row};
        const ptrdiff_t looked_at = std::min((last_ - first_) / stride, early ? 1 : lines_at_once_);
        fields.lines = looked_at;
        fields.lines = whole_lines(fields, length_bytes_max, crs, comments ? '#' : '\n');
        const ptrdiff_t tried = fields.lines;
        for (ptrdiff_t i = 0; i < count; i++, fields.before++) {
            if (i == count - 1)
                fields.end = crs ? '\r' : '\n';
            fields.lines = read_fields(early ? WORDS : way_, fields, columns[i], read_field);
        }
        /* So that what is tried in vain is not more than what is read. */
        lines_at_once_ = fields.lines < tried ? fields.lines + 1
                                              : std::min(2 * lines_at_once_, MARKS_AT_ONCE);
        *goes_on = fields.lines > 0 && fields.lines == looked_at;
        if (fields.lines > 0) {
            first_ += fields.lines * stride;
            *p = data_ + first_[-1] + 1;
        }
        return fields.lines;
    }

   private:
    std::vector<uint32_t> found_;
    uint32_t* first_ = nullptr; /* of the marks that were found and not taken yet */
    uint32_t* last_ = nullptr;
    const uint8_t* data_ = nullptr;
    const uint8_t* end_ = nullptr;
    const uint8_t* looked_ = nullptr; /* before this all marks were found */
    ptrdiff_t lines_at_once_ = 1;
    uint8_t delimiter_ = ',';
    Way way_ = WORDS;

    /* Forget the marks before `p`. */
    void skip(const uint8_t* p) {
        looked_ = std::max(looked_, p);
        while (first_ < last_ && data_ + *first_ < p)
            first_++;
    }

    void look_further() {
        uint32_t* const begin = found_.data() + 1;
        std::memmove(begin, first_, (last_ - first_) * sizeof(uint32_t));
        last_ = begin + (last_ - first_);
        first_ = begin;
        const uint32_t* enough = found_.data() + found_.size() - 64;
        if (way_ == WIDE)
            looked_ = Wide::find(data_, looked_, end_, delimiter_, &last_, enough);
        else if (way_ == VECTORS)
            looked_ = find<Vectors>(data_, looked_, end_, delimiter_, &last_, enough);
        else
            looked_ = find<Words>(data_, looked_, end_, delimiter_, &last_, enough);
    }

    /* How many lines begin as one may, end where they should, and are not too long. */
    static ptrdiff_t whole_lines(
        const Fields& fields, ptrdiff_t length_bytes_max, bool crs, uint8_t careful) {
        const uint32_t* mark = fields.before;
        for (ptrdiff_t line = 0; line < fields.lines; line++) {
            const uint32_t start = mark[0] + 1;
            mark += fields.stride;
            if (fields.data[start] == careful || fields.data[start] < ' ' || fields.data[*mark] != '\n'
                || mark[0] - start > length_bytes_max || (crs && mark[-1] + 1 != mark[0]))
                return line;
        }
        return fields.lines;
    }

    static ptrdiff_t read_fields(Way way, const Fields& fields, Column& column, ReadField read_field) {
        if (column.valid)
            std::memset(column.valid + fields.row, 1, fields.lines);
        if (column.kind == STRING)
            return read_strings(fields, column);
        if (column.kind == BOOL)
            return read_bools(fields, column, read_field);
        if (way == WIDE)
            return read_kind<Wide>(fields, column, read_field);
        if (way == VECTORS)
            return read_kind<Vectors>(fields, column, read_field);
        return read_kind<Words>(fields, column, read_field);
    }

    template <class Of>
    static ptrdiff_t read_kind(const Fields& fields, Column& column, ReadField read_field) {
        return column.kind == INTEGER ? read_numbers<Integers<Of>>(fields, column, read_field)
                                      : read_numbers<Floats<Of>>(fields, column, read_field);
    }
};

}  // namespace ripple

#endif
