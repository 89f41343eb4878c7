#include "monitor/pages/exposition.h"

#include <string.h>

static struct slice rest_of(struct slice s, size_t from)
{
    return (struct slice){ s.at + from, s.len - from };
}

bool exposition_label(struct slice *labels, struct slice *key, struct slice *value)
{
    const char *equals = labels->len > 0 ? memchr(labels->at, '=', labels->len) : NULL;
    size_t i;

    if (!equals)
        return false;
    *key = slice_trim((struct slice){ labels->at, (size_t)(equals - labels->at) });
    *labels = rest_of(*labels, (size_t)(equals - labels->at) + 1);
    if (labels->len == 0 || labels->at[0] != '"')
        return false;
    for (i = 1; i < labels->len && labels->at[i] != '"'; i++)
        i += labels->at[i] == '\\';
    if (i >= labels->len)
        return false;
    *value = (struct slice){ labels->at + 1, i - 1 };
    *labels = slice_trim(rest_of(*labels, i + 1));
    if (labels->len > 0 && labels->at[0] == ',')
        *labels = slice_trim(rest_of(*labels, 1));
    return true;
}

/* "{...}" off the line. */
static bool take_labels(struct slice *line, struct slice *labels)
{
    struct slice key, value;

    *line = *labels = rest_of(*line, 1);
    while (line->len > 0 && line->at[0] != '}')
        if (!exposition_label(line, &key, &value))
            return false;
    if (line->len == 0)
        return false;
    labels->len = (size_t)(line->at - labels->at);
    *line = slice_trim(rest_of(*line, 1));
    return true;
}

static bool read_line(struct slice line, struct sample *out)
{
    size_t n = 0;

    line = slice_trim(line);
    while (n < line.len && line.at[n] != '{' && line.at[n] != ' ' && line.at[n] != '\t')
        n++;
    *out = (struct sample){ .name = { line.at, n } };
    if (n == 0 || n == line.len || line.at[0] == '#')
        return false;
    line = slice_trim(rest_of(line, n));
    if (line.at[0] == '{' && !take_labels(&line, &out->labels))
        return false;
    for (n = 0; n < line.len && line.at[n] != ' ' && line.at[n] != '\t';)
        n++;    // a time of its own may follow
    return text_to_double((struct slice){ line.at, n }, &out->value) == 0;
}

bool exposition_next(struct slice *page, struct sample *out)
{
    while (page->len > 0) {
        const char *newline = memchr(page->at, '\n', page->len);
        const size_t n = newline ? (size_t)(newline - page->at) : page->len;
        const struct slice line = { page->at, n };

        *page = rest_of(*page, newline ? n + 1 : n);
        if (read_line(line, out))
            return true;
    }
    return false;
}
