#include "cli/table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "cli/when.h"

/* ---- tables ---- */

void table_init(struct table *t, struct arena *a, const char *headings)
{
    *t = (struct table){ .arena = a };
    for (const char *p = headings;; p++) {
        size_t len = strcspn(p, "|");
        bool is_right = *p == '>';

        assert(t->n_columns < TABLE_COLUMNS_MAX);
        t->is_right[t->n_columns++] = is_right;
        table_put(t, arena_strndup(a, p + is_right, len - is_right));
        p += len;
        if (*p == '\0')
            return;
    }
}

void table_put(struct table *t, const char *cell)
{
    ARENA_GROW(t->arena, t->cells, t->n_cells, t->cap);
    t->cells[t->n_cells++] = cell;
}

static const char *field(struct arena *a, const json_t *o, char how, const char *key)
{
    switch (how) {
    case '#':
        return cell_number(a, o, key);
    case '*':
        return cell_scaled(a, o, key, 1 / KWH_J);
    case '%':
        return cell_percent(a, o, key);
    case '+':
        return cell_list(a, o, key);
    default:
        return cell_text(a, o, key);
    }
}

void table_put_fields(struct table *t, const json_t *o, const char *keys)
{
    for (const char *p = keys; *p != '\0';) {
        size_t mark = strchr("#*%+", *p) != NULL, len = strcspn(p, " ");

        table_put(t, field(t->arena, o, *p, arena_strndup(t->arena, p + mark, len - mark)));
        p += len + strspn(p + len, " ");
    }
}

int cell_width(const char *text)
{
    int n = 0;

    for (; *text != '\0'; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_cell(FILE *out, const char *cell, int width, bool is_right, bool is_last)
{
    int pad = width - cell_width(cell);

    if (is_right)
        fprintf(out, "%*s%s", pad, "", cell);
    else if (is_last)
        fputs(cell, out);
    else
        fprintf(out, "%s%*s", cell, pad, "");
    fputs(is_last ? "\n" : "  ", out);
}

void table_print(const struct table *t, FILE *out)
{
    int widths[TABLE_COLUMNS_MAX] = { 0 };

    assert(t->n_cells % t->n_columns == 0);
    for (int i = 0; i < t->n_cells; i++) {
        int w = cell_width(t->cells[i]), c = i % t->n_columns;

        widths[c] = w > widths[c] ? w : widths[c];
    }
    for (int i = 0; i < t->n_cells; i++) {
        int c = i % t->n_columns;

        put_cell(out, t->cells[i], widths[c], t->is_right[c], c == t->n_columns - 1);
    }
}

void table_show(struct buf *b)
{
    fwrite(buf_text(b), 1, b->len, stdout);
    buf_release(b);
}

/* ---- cells ---- */

const char *cell_clean(struct arena *a, const char *text)
{
    char *copy = text != NULL ? arena_strdup(a, text) : NULL;

    for (char *p = copy; p != NULL && *p != '\0'; p++) {
        bool is_c1 = (unsigned char)p[0] == 0xc2 && (unsigned char)p[1] < 0xa0;    // U+0080..9f

        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
        else if (is_c1 && p[1] != '\0')
            p[0] = p[1] = '?';
    }
    return copy == NULL || *copy == '\0' ? "-" : copy;
}

const char *cell_text(struct arena *a, const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);

    if (json_is_integer(v))
        return arena_printf(a, "%lld", (long long)json_integer_value(v));
    if (json_is_boolean(v))
        return json_is_true(v) ? "yes" : "no";
    return json_is_real(v) ? cell_value(a, json_real_value(v))
                           : cell_clean(a, json_string_value(v));
}

const char *cell_list(struct arena *a, const json_t *o, const char *key)
{
    const json_t *list = json_object_get(o, key);
    const char *text = NULL;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *one = cell_clean(a, json_string_value(json_array_get(list, i)));

        text = text != NULL ? arena_printf(a, "%s,%s", text, one) : one;
    }
    return text != NULL ? text : "-";
}

const char *cell_value(struct arena *a, double v)
{
    double size = fabs(v);
    int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;

    if (!isfinite(v))
        return "-";
    if (size != 0 && size < 0.01)
        return arena_printf(a, "%.2g", v);
    return size >= 1e9 ? arena_printf(a, "%.3g", v) : arena_printf(a, "%.*f", decimals, v);
}

const char *cell_number(struct arena *a, const json_t *o, const char *key)
{
    return cell_value(a, json_number_of(o, key));
}

const char *cell_scaled(struct arena *a, const json_t *o, const char *key, double by)
{
    double v = json_number_of(o, key) * by;

    return v != 0 && fabs(v) < 0.01 ? arena_printf(a, "%.4f", v) : cell_value(a, v);
}

const char *cell_percent(struct arena *a, const json_t *o, const char *key)
{
    double v = json_number_of(o, key);

    return isfinite(v) ? arena_printf(a, "%.1f", 100 * v) : "-";
}

const char *cell_since(struct arena *a, const json_t *o, const char *key, double now_s)
{
    return when_text(a, now_s - json_number_of(o, key));
}

void csv_quote(struct buf *out, const char *text)
{
    buf_puts(out, "\"");
    for (; *text != '\0'; text++)
        buf_printf(out, "%s%c", *text == '"' ? "\"" : "", *text);
    buf_puts(out, "\"");
}
