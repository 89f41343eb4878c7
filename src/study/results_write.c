/* results_write.c - a study's results as JSON and as tables. */
#include "study/results.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>

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
    "scenario,load,policy,seed,sleep,power_limit,without,knows,power_model,"
    "delay_w,promise_w,history_jobs";

static void put_key(struct buf *out, const struct study_run *k)
{
    buf_printf(out, "%s,%.15g,%s,%d,%d,%d,%s,%s,%s", k->scenario->name, k->load, k->policy, k->seed,
               k->has_sleep, k->has_limits, k->without, knowledge_name(k->knows),
               scenario_power_model(k->scenario));
    put(out, k->delay_w != NULL ? *k->delay_w : (double)NAN);
    put(out, k->promise_w != NULL ? *k->promise_w : (double)NAN);
    put(out, study_run_history(k));
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

/* Who was where is long, and one seed of a kind shows it. */
static bool is_listed(const struct results *b, const struct figure_list *l, int row)
{
    return l != &results_lists[RESULTS_STAYS] || row == 0 ||
           !study_run_is_alike(&b->rows[row - 1].key, &b->rows[row].key);
}

static void put_list(const struct results *b, const struct figure_list *l, struct buf *out)
{
    buf_puts(out, key_columns);
    for (int c = 0; c < l->n_columns; c++)
        buf_printf(out, ",%s", l->columns[c].name);
    buf_puts(out, "\n");
    for (int i = 0; i < b->n_rows; i++) {
        const struct study_result *r = &b->rows[i].result;

        for (int k = 0; is_listed(b, l, i) && k < figure_list_n(l, r); k++) {
            const char *of = figure_list_at(l, r, k);

            put_key(out, &b->rows[i].key);
            for (int c = 0; c < l->n_columns; c++) {
                if (l->columns[c].kind == FIGURE_TEXT)
                    buf_printf(out, ",%s", *(const char *const *)(of + l->columns[c].at));
                else
                    put(out, figure_number(&l->columns[c], of));
            }
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
    struct buf text;

    buf_init(&text, TABLE_BYTES_MAX);
    int rc = results_json(b, &text, e);
    if (rc == 0)
        rc = write_file(b, "results.json", &text, e);
    for (int is_timing = 0; is_timing < 2 && rc == 0; is_timing++) {
        buf_clear(&text);
        put_figures(b, is_timing != 0, &text);
        rc = write_file(b, is_timing ? "timing.csv" : "runs.csv", &text, e);
    }
    for (int i = 0; i < RESULTS_LISTS && rc == 0; i++) {
        buf_clear(&text);
        put_list(b, &results_lists[i], &text);
        rc = write_file(b, results_lists[i].file, &text, e);
    }
    buf_release(&text);
    return rc;
}
