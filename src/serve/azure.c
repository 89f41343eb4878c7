/* azure.c - Azure's LLM inference traces (2023): times and lengths of requests. */
#include "serve/azure.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/csv.h"

/* "2023-11-16 18:17:03.9799600", with a T or a blank, as seconds. */
static bool read_time(struct slice s, double *out)
{
    static const char *const forms[] = { "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S" };
    const char *rest = NULL;
    char text[40], *end;
    struct tm tm = { 0 };

    if (s.len >= sizeof text)
        return false;
    memcpy(text, s.at, s.len);
    text[s.len] = '\0';
    for (int i = 0; i < 2 && !rest; i++)
        rest = strptime(text, forms[i], &tm);
    if (!rest || tm.tm_year < 0)
        return false;
    const double part_s = *rest == '.' ? strtod(rest, &end) : 0;
    rest = *rest == '.' ? end : rest;
    if (*rest != '\0' && *rest != '+' && *rest != 'Z')
        return false;
    *out = (double)timegm(&tm) + part_s;
    return part_s >= 0 && part_s < 1;
}

struct azure_columns {
    int time, prompt, output;
};

static int read_row(const struct csv *c, const struct azure_columns *col, struct llm_request *out,
                    struct err *e)
{
    double prompt, output;

    if (!read_time(c->field[col->time], &out->at_s))
        return err_set(e, EINVAL, "%s:%d: write TIMESTAMP as YYYY-MM-DD HH:MM:SS.SSS", c->name,
                       c->line);
    int rc = csv_number(c, col->prompt, false, &prompt, e);
    if (rc == 0)
        rc = csv_number(c, col->output, false, &output, e);
    if (rc < 0)
        return rc;
    if (!(prompt >= 0 && prompt < 1e8 && output >= 0 && output < 1e8))
        return err_set(e, EINVAL, "%s:%d: tokens are counts below 100 million", c->name, c->line);
    out->prompt = (int)fmax(prompt, 1);
    out->output = (int)fmax(output, 1);
    return 0;
}

int azure_read(struct arena *a, const char *name, const char *text, size_t len,
               struct azure_trace *out, struct err *e)
{
    struct csv *c = ARENA_NEW(a, struct csv);
    struct azure_columns col;
    int cap = 0, rc = csv_open(c, a, name, text, len, e);

    *out = (struct azure_trace){ 0 };
    if (rc == 0)
        rc = csv_require(c, "TIMESTAMP", &col.time, e);
    if (rc == 0)
        rc = csv_require(c, "ContextTokens", &col.prompt, e);
    if (rc == 0)
        rc = csv_require(c, "GeneratedTokens", &col.output, e);
    while (rc == 0 && (rc = csv_next(c, e)) > 0) {
        ARENA_GROW(a, out->requests, out->n, cap);
        struct llm_request *r = &out->requests[out->n];
        rc = read_row(c, &col, r, e);
        if (rc == 0 && out->n && r->at_s < r[-1].at_s)
            rc = err_set(e, EINVAL, "%s:%d: sort the rows by TIMESTAMP", name, c->line);
        out->n++;
    }
    if (rc == 0 && out->n < 2)
        rc = err_set(e, EINVAL, "%s: has no two requests; want one in each row", name);
    for (int i = out->n - 1; i >= 0 && rc == 0; i--)
        out->requests[i].at_s -= out->requests[0].at_s;
    if (rc == 0)
        out->span_s = out->requests[out->n - 1].at_s;
    return rc;
}
