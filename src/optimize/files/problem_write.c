/* problem_write.c - a problem as JSON: each number in as few digits as read back to the same. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/words.h"
#include "optimize/files/doc.h"
#include "optimize/model/problem.h"
#include "optimize/files/problem_file.h"

struct writing {
    const struct problem *p;
    struct buf *out;
    int rc;    // the first failure; all further writing is idle
    struct err *e;
};

/* ---- pieces ---- */

static void put(struct writing *w, const char *text)
{
    if (w->rc == 0)
        w->rc = buf_puts(w->out, text);
}

static void put_number(struct writing *w, double x)
{
    if (w->rc == 0)
        w->rc = words_put_number(w->out, x);
}

static void put_int(struct writing *w, long x)
{
    if (w->rc == 0)
        w->rc = buf_printf(w->out, "%ld", x);
}

static void put_text(struct writing *w, const char *s)
{
    if (w->rc == 0)
        w->rc = s != NULL ? doc_put_text(w->out, s)
                          : err_set(w->e, EINVAL, "a type or kind has no name; give it one");
}

/* ', "key": ' and a number. */
static void put_key(struct writing *w, const char *key)
{
    put(w, ", \"");
    put(w, key);
    put(w, "\": ");
}

static void put_pair(struct writing *w, const char *key, double x)
{
    put_key(w, key);
    put_number(w, x);
}

static void put_numbers(struct writing *w, const char *key, const double *x, int n)
{
    put_key(w, key);
    put(w, "[");
    for (int i = 0; i < n; i++) {
        put(w, i > 0 ? ", " : "");
        put_number(w, x[i]);
    }
    put(w, "]");
}

/* A float in as few digits as read back to the same float. */
static void put_float(struct writing *w, float x)
{
    char text[40];

    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        if (strtof(text, NULL) == x)
            break;
    }
    put(w, text);
}

static void put_floats(struct writing *w, const char *key, const float *x, long stride, int n)
{
    put(w, ",\n   \"");
    put(w, key);
    put(w, "\": [");
    for (int i = 0; i < n; i++) {
        put(w, i > 0 ? ", " : "");
        put_float(w, x[i * stride]);
    }
    put(w, "]");
}

/* ---- cells ---- */

/* The factor of fewest decimals by which 'alone' becomes 'speed'. */
static void put_factor(struct writing *w, double alone, float speed)
{
    double r = alone > 0 ? (double)speed / alone : 0, one = 1000;
    char text[40];

    long v = r < 1000 ? lround(r * one) : -1;
    if (v >= 0 && (float)(alone * ((double)v / one)) == speed) {
        int n =
            snprintf(text, sizeof text, v % 1000 != 0 ? "%ld.%03ld" : "%ld", v / 1000, v % 1000);
        while (v % 1000 != 0 && text[n - 1] == '0')
            text[--n] = '\0';
        put(w, text);
        return;
    }
    for (int digits = 4; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, r);
        if ((float)(alone * strtod(text, NULL)) == speed)
            break;
    }
    put(w, text);
}

/* Does this deviation make every 'low' of 'n' cells of their speeds? */
static bool makes(const struct problem *p, double sd, const float *speed, const float *low, int n)
{
    double part = exp(-p->z * sd);

    for (int i = 0; i < n; i++)
        if ((float)((double)speed[i] * part) != low[i])
            return false;
    return true;
}

/* The deviation of fewest decimals that makes every 'low' of 'n' cells; false: none does. */
static bool find_sd(const struct problem *p, const float *speed, const float *low, int n,
                    double *sd)
{
    int i = 0;

    while (i < n && !(speed[i] > 0))
        i++;
    *sd = 0;
    if (i == n || makes(p, 0, speed, low, n))
        return true;
    if (!(p->z > 0))
        return false;
    double exact = low[i] > 0 ? log((double)speed[i] / (double)low[i]) / p->z : 1000 / p->z;
    double one = 100;
    for (int decimals = 2; decimals <= 10; decimals++) {
        *sd = round(exact * one) / one;
        if (makes(p, *sd, speed, low, n))
            return true;
        one *= 10;
    }
    *sd = exact;
    return makes(p, exact, speed, low, n);
}

static void cannot_say(struct writing *w, int type, int kind)
{
    if (w->rc == 0)
        w->rc = err_set(w->e, EINVAL,
                        "types[%d]: what kind %d holds does not follow from its speed at z = %g; "
                        "give the problem the z that 'low' was made for",
                        type, kind, w->p->z);
}

static void put_sd_alone(struct writing *w, int type)
{
    const struct problem *p = w->p;

    put(w, ",\n   \"sd\": [");
    for (int k = 0; k < p->n_kinds; k++) {
        long cell = problem_cell(p, type, k, -1);
        double sd;
        if (!find_sd(p, &p->speed[cell], &p->low[cell], 1, &sd))
            cannot_say(w, type, k);
        put(w, k > 0 ? ", " : "");
        put_number(w, sd);
    }
    put(w, "]");
}

/* One number where that says it all, else the row as a text. */
static void put_sd_row(struct writing *w, int type, int kind)
{
    const struct problem *p = w->p;
    long cell = problem_cell(p, type, kind, 0);
    double sd;

    if (find_sd(p, &p->speed[cell], &p->low[cell], p->n_kinds, &sd)) {
        put_number(w, sd);
        return;
    }
    put(w, "\"");
    for (int n = 0; n < p->n_kinds; n++) {
        if (!find_sd(p, &p->speed[cell + n], &p->low[cell + n], 1, &sd))
            cannot_say(w, type, kind);
        put(w, n > 0 ? " " : "");
        put_number(w, sd);
    }
    put(w, "\"");
}

static void put_slowdown_row(struct writing *w, int type, int kind)
{
    const struct problem *p = w->p;
    const float *row = &p->speed[problem_cell(p, type, kind, -1)];

    put(w, "\"");
    for (int n = 0; n < p->n_kinds; n++) {
        put(w, n > 0 ? " " : "");
        put_factor(w, (double)row[0], row[n + 1]);
    }
    put(w, "\"");
}

static void put_cells(struct writing *w, int type)
{
    const struct problem *p = w->p;

    put_floats(w, "speed", &p->speed[problem_cell(p, type, 0, -1)], p->n_kinds + 1, p->n_kinds);
    put_sd_alone(w, type);
    put_floats(w, "watts", &p->watts[type * p->n_kinds], 1, p->n_kinds);
    put(w, ",\n   \"slowdown\": [");
    for (int k = 0; k < p->n_kinds; k++) {
        put(w, k > 0 ? ",\n    " : "\n    ");
        put_slowdown_row(w, type, k);
    }
    put(w, "],\n   \"shared_sd\": [");
    for (int k = 0; k < p->n_kinds; k++) {
        put(w, k > 0 ? ", " : "");
        put_sd_row(w, type, k);
    }
    put(w, "]");
}

/* ---- the lists ---- */

static void put_type(struct writing *w, int type)
{
    const struct problem_type *t = &w->p->types[type];

    put(w, "  {\"name\": ");
    put_text(w, t->name);
    put_pair(w, "sleep_w", t->sleep_w);
    put_pair(w, "idle_w", t->idle_w);
    put_pair(w, "cap_w", t->cap_w);
    put_pair(w, "mem_gib", t->mem_gib);
    for (int l = 1; l < t->n_limits; l++) {
        const struct limit_curve *c = &t->limits[l];
        put(w, l == 1 ? ",\n   \"limits\": [{\"limit_w\": " : "},\n    {\"limit_w\": ");
        put_int(w, c->limit_w);
        put_numbers(w, "speed", c->speed, c->n_points);
        put_numbers(w, "watts", c->watts, c->n_points);
    }
    put(w, t->n_limits > 1 ? "}]" : "");
    if (w->p->n_kinds > 0)
        put_cells(w, type);
    else
        put(w, ", \"speed\": [], \"watts\": []");
    put(w, "}");
}

/* Are all steps worth nothing, as where watts are minimised? */
static bool is_watts(const struct problem *p)
{
    for (int k = 0; k < p->n_kinds; k++)
        if (p->kinds[k].value_j != 0)
            return false;
    return true;
}

static void put_kind(struct writing *w, int kind, bool in_watts)
{
    const struct problem_kind *k = &w->p->kinds[kind];
    double best = problem_best_joules(w->p, kind), value_j = isfinite(best) ? best : 0;

    put(w, "  {\"name\": ");
    put_text(w, k->name);
    put_pair(w, "mem_gib", k->mem_gib);
    if (!in_watts && k->value_j != value_j)
        put_pair(w, "value_j", k->value_j);
    if (k->rate > 0)
        put_pair(w, "rate", k->rate);
    if (k->time_w > 0)
        put_pair(w, "time_w", k->time_w);
    put(w, "}");
}

/* The GPUs from 'from' that one entry describes. */
static int put_group(struct writing *w, int from)
{
    const struct problem_gpu *gpus = w->p->gpus, *g = &gpus[from];
    int n = 1, n_drained = 0;

    while (from + n < w->p->n_gpus && gpus[from + n].type == g->type &&
           gpus[from + n].node == g->node && gpus[from + n].rack == g->rack)
        n++;
    put(w, "  {\"type\": ");
    put_text(w, w->p->types[g->type].name);
    put_pair(w, "count", n);
    put_pair(w, "node", g->node);
    put_pair(w, "rack", g->rack);
    if (g->wake_s > 0)
        put_pair(w, "wake_s", g->wake_s);
    for (int i = 0; i < n; i++)
        if (!g[i].may_start) {
            put(w, n_drained++ == 0 ? ", \"drained\": [" : ", ");
            put_int(w, i);
        }
    put(w, n_drained > 0 ? "]}" : "}");
    return from + n;
}

static void put_allowed(struct writing *w, const struct problem_job *j)
{
    int n = 0;

    for (int t = 0; t < w->p->n_types && j->allowed_types != 0; t++)
        if (problem_allows(j, t)) {
            put(w, n++ == 0 ? ", \"types\": [" : ", ");
            put_text(w, w->p->types[t].name);
        }
    put(w, n > 0 ? "]" : "");
}

static void put_present(struct writing *w, const struct problem_job *j)
{
    const struct problem *p = w->p;

    if (j->n_present == 0)
        return;
    put_key(w, "present");
    for (int i = 0; i < j->n_present; i++) {
        put(w, i == 0 ? "[" : ", ");
        put_int(w, j->present[i]);
    }
    put(w, "]");
    if (j->present_limit > 0)
        put_pair(w, "limit_w",
                 p->types[p->gpus[j->present[0]].type].limits[j->present_limit].limit_w);
}

static void put_job(struct writing *w, int job)
{
    const struct problem_job *j = &w->p->jobs[job];

    if (j->name == NULL) {
        put(w, "  null");
        return;
    }
    put(w, "  {\"name\": ");
    put_text(w, j->name);
    put_key(w, "kind");
    put_text(w, w->p->kinds[j->kind].name);
    put(w, j->form == FORM_SPREAD ? ", \"form\": \"spread\"" : "");
    if (j->n_min != 1)
        put_pair(w, "n_min", j->n_min);
    if (j->n_max != j->n_min)
        put_pair(w, "n_max", j->n_max);
    if (j->need > 0)
        put_pair(w, "need", j->need);
    put_pair(w, "short_w", j->short_w);
    put_pair(w, "wait_w", j->wait_w);
    if (j->move_w > 0)
        put_pair(w, "move_w", j->move_w);
    if (j->wake_rate > 0)
        put_pair(w, "wake_rate", j->wake_rate);
    if (j->late_w > 0)
        put_pair(w, "late_w", j->late_w);
    put_allowed(w, j);
    put(w, j->is_exclusive ? ", \"exclusive\": true" : "");
    put(w, j->n_nodes == 1 ? ", \"one_node\": true" : "");
    if (j->n_nodes > 1)
        put_pair(w, "n_nodes", j->n_nodes);
    put(w, j->is_fixed ? ", \"fixed\": true" : "");
    put_present(w, j);
    put(w, "}");
}

/* ---- the whole ---- */

static void put_frame(struct writing *w, bool in_watts)
{
    const struct problem *p = w->p;

    put(w, "{\"version\": 1, \"theta\": ");
    put_int(w, p->theta);
    put_pair(w, "z", p->z);
    put(w, in_watts ? ", \"objective\": \"watts\"" : ", \"objective\": \"joules\"");
    put_pair(w, "price_w", p->price_w);
    put_pair(w, "power_cap_w", p->power_cap_w);
    put_pair(w, "watts_margin", p->watts_margin);
    put_numbers(w, "gang_near", p->gang_near + 1, GANG_MAX);
    put_numbers(w, "gang_far", p->gang_far + 1, GANG_MAX);
    if (p->rack_cap_w != NULL)
        put_numbers(w, "racks", p->rack_cap_w, p->n_racks);
}

int problem_write(const struct problem *p, struct buf *out, struct err *e)
{
    struct writing w = { .p = p, .out = out, .e = e };
    bool in_watts = is_watts(p);

    put_frame(&w, in_watts);
    put(&w, ",\n \"kinds\": [");
    for (int k = 0; k < p->n_kinds && w.rc == 0; k++) {
        put(&w, k > 0 ? ",\n" : "\n");
        put_kind(&w, k, in_watts);
    }
    put(&w, "],\n \"types\": [");
    for (int t = 0; t < p->n_types && w.rc == 0; t++) {
        put(&w, t > 0 ? ",\n" : "\n");
        put_type(&w, t);
    }
    put(&w, "],\n \"gpus\": [");
    for (int g = 0; g < p->n_gpus && w.rc == 0;) {
        put(&w, g > 0 ? ",\n" : "\n");
        g = put_group(&w, g);
    }
    put(&w, "],\n \"jobs\": [");
    for (int j = 0; j < p->n_jobs && w.rc == 0; j++) {
        put(&w, j > 0 ? ",\n" : "\n");
        put_job(&w, j);
    }
    put(&w, "]}\n");
    if (w.rc == -ENOSPC)
        return err_set(e, ENOSPC, "the problem takes more than %zu bytes", out->max);
    return w.rc;
}
