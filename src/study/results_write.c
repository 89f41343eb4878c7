/* results_write.c - a study's results as JSON and as tables. */
#include "study/results.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "study/results_inner.h"

#define TABLE_BYTES_MAX ((size_t)1 << 30)    // 10,000 runs have 400 MB of slices
#define PIECE_BYTES_MAX 4096    // added at once: the ceiling was met only if less is left

static int append_json(const char *bytes, size_t n, void *out)
{
    return buf_append(out, bytes, n) < 0 ? -1 : 0;
}

int results_json(const struct results *b, struct buf *out, struct err *e)
{
    json_t *list = json_array();

    for (int i = 0; i < b->n_rows; i++)
        json_array_append_new(list, results_row_json(&b->rows[i].key, &b->rows[i].result));
    int rc = json_dump_callback(list, append_json, out, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    json_decref(list);
    if (rc == 0)
        rc = buf_puts(out, "\n");
    return rc == 0 ? 0 : err_set(e, EFBIG, "results of %d runs are too many", b->n_rows);
}

/* ---- tables ---- */

/* A number and what stands before it; an empty field where there is none. */
static void put(struct buf *out, double v)
{
    if (isfinite(v))
        buf_printf(out, ",%.15g", v);
    else
        buf_puts(out, ",");
}

static const char key_columns[] =
    "scenario,load,policy,seed,sleep,power_limit,without,knows,power_model";

static void put_key(struct buf *out, const struct study_run *k)
{
    buf_printf(out, "%s,%.15g,%s,%d,%d,%d,%s,%s,%s", k->scenario->name, k->load, k->policy, k->seed,
               k->has_sleep, k->has_limits, k->without, knowledge_name(k->knows),
               scenario_power_model(k->scenario));
}

static void put_figures(const struct results *b, bool is_timing, struct buf *out)
{
    buf_puts(out, key_columns);
    for (int i = 0; i < n_results_figures; i++) {
        if (results_figures[i].is_timing == is_timing)
            buf_printf(out, ",%s", results_figures[i].name);
    }
    buf_puts(out, "\n");
    for (int i = 0; i < b->n_rows; i++) {
        put_key(out, &b->rows[i].key);
        for (int f = 0; f < n_results_figures; f++) {
            if (results_figures[f].is_timing == is_timing)
                put(out, figure_value(&results_figures[f], &b->rows[i].key, &b->rows[i].result));
        }
        buf_puts(out, "\n");
    }
}

static void put_runs(const struct results *b, struct buf *out)
{
    put_figures(b, false, out);
}

static void put_timing(const struct results *b, struct buf *out)
{
    put_figures(b, true, out);
}

static void put_slices(const struct results *b, struct buf *out)
{
    buf_printf(out, "%s,time_s,watts,work_per_s,error,measurements,attainment,waiting\n",
               key_columns);
    for (int i = 0; i < b->n_rows; i++) {
        const struct study_result *r = &b->rows[i].result;

        for (int k = 0; k < r->n_slices; k++) {
            const struct study_slice *s = &r->slices[k];

            put_key(out, &b->rows[i].key);
            put(out, s->time_s);
            put(out, s->watts);
            put(out, s->work_per_s);
            put(out, s->error);
            put(out, (double)s->measurements);
            put(out, s->attainment);
            put(out, s->waiting);
            buf_puts(out, "\n");
        }
    }
}

static void put_types(const struct results *b, struct buf *out)
{
    buf_printf(out, "%s,gpu,gpus,gpu_hours,energy_kwh\n", key_columns);
    for (int i = 0; i < b->n_rows; i++) {
        const struct study_result *r = &b->rows[i].result;

        for (int k = 0; k < r->n_types; k++) {
            put_key(out, &b->rows[i].key);
            buf_printf(out, ",%s,%d", r->types[k].name, r->types[k].n_gpus);
            put(out, r->types[k].gpu_hours);
            put(out, r->types[k].energy_kwh);
            buf_puts(out, "\n");
        }
    }
}

static void put_intervals(const struct results *b, struct buf *out)
{
    buf_printf(out, "%s,gpu,job,limit_w,from_s,to_s\n", key_columns);
    for (int i = 0; i < b->n_rows; i++) {
        const struct study_result *r = &b->rows[i].result;

        for (int k = 0; k < r->n_intervals; k++) {
            const struct study_interval *s = &r->intervals[k];

            put_key(out, &b->rows[i].key);
            buf_printf(out, ",%d,%d,%d", s->gpu, s->job, s->limit_w);
            put(out, s->from_s);
            put(out, s->to_s);
            buf_puts(out, "\n");
        }
    }
}

/* ---- files ---- */

static int write_file(const struct results *b, const char *name, const struct buf *text,
                      struct err *e)
{
    struct arena a;

    if (text->max - text->len < PIECE_BYTES_MAX)
        return err_set(e, EFBIG, "%s of %d runs is too long; study fewer at once", name, b->n_rows);
    arena_init(&a);
    int rc = file_write(arena_printf(&a, "%s/%s", b->dir, name), buf_text(text), text->len, e);
    arena_release(&a);
    return rc;
}

int results_write(const struct results *b, struct err *e)
{
    static const struct {
        const char *name;
        void (*put)(const struct results *b, struct buf *out);
    } tables[] = {
        { "runs.csv", put_runs },       { "slices.csv", put_slices }, { "types.csv", put_types },
        { "stays.csv", put_intervals }, { "timing.csv", put_timing },
    };
    struct buf text;

    buf_init(&text, TABLE_BYTES_MAX);
    int rc = results_json(b, &text, e);
    if (rc == 0)
        rc = write_file(b, "results.json", &text, e);
    for (size_t i = 0; i < sizeof tables / sizeof *tables && rc == 0; i++) {
        buf_clear(&text);
        tables[i].put(b, &text);
        rc = write_file(b, tables[i].name, &text, e);
    }
    buf_release(&text);
    return rc;
}
