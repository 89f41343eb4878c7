#include "study/report/report.h"

#include <string.h>

#include "base/err.h"
#include "base/text/file.h"
#include "study/report/inner.h"

static bool is_there(const struct report *r, const struct scenario_results *s)
{
    (void)r;
    (void)s;
    return true;
}

static void put_scenarios(struct report *r)
{
    for (int i = 0; i < r->n_scenarios; i++) {
        const struct scenario_results *s = &r->scenarios[i];

        PUT(r->out, "<section>\n<h3 id=\"s-%s\">%s: %s</h3>\n", html(r, s->scenario->name),
            html(r, s->scenario->name), html(r, s->scenario->title));
        report_scenario_assumptions(r, s);
        report_bars(r, s);
        report_policies(r, s);
        PUT(r->out, "</section>\n");
    }
}

/* A part of the page; left out where the results has nothing for it. */
static const struct part {
    const char *id, *title;
    report_has_f *has;    // of any scenario; NULL: always
    void (*put)(struct report *r);
} parts[] = {
    { "summary", "Summary", report_has_summary, report_summary },
    { "front", "Energy against time", report_has_front, report_front },
    { "scenarios", "Scenarios", is_there, put_scenarios },
    { "levers", "What each lever brings", report_has_levers, report_levers },
    { "time", "Energy and promises over time", report_has_times, report_times },
    { "learning", "Learning", report_has_learning, report_learning },
    { "gantt", "Who shared which GPU", report_has_gantt, report_gantt },
    { "definitions", "Definitions", NULL, report_definitions },
    { "again", "How to do it again", is_there, report_command },
};
#define N_PARTS ((int)(sizeof parts / sizeof parts[0]))

static bool part_has(const struct report *r, const struct part *p)
{
    if (p->has == NULL)
        return true;
    for (int i = 0; i < r->n_scenarios; i++)
        if (p->has(r, &r->scenarios[i]))
            return true;
    return false;
}

static void put_identity(struct report *r)
{
    const struct results *b = r->results;

    PUT(r->out, "<p>gogh %s; %d runs of %d scenario%s. Digest of the data: <code>%s</code>.</p>\n",
        html(r, b->version != NULL ? b->version : "(version unknown)"), b->n_rows, r->n_scenarios,
        r->n_scenarios == 1 ? "" : "s", html(r, b->digest != NULL ? b->digest : "unknown"));
}

/* Is the run in the results? */
static bool has_run(const struct results *b, const struct study_run *k)
{
    for (int i = 0; i < b->n_rows; i++) {
        if (b->rows[i].key.seed == k->seed && study_run_is_alike(&b->rows[i].key, k))
            return true;
    }
    return false;
}

/* Has the results runs of this policy, load and seed? Where not, they may not have been asked for.
 */
static bool is_asked_for(const struct results *b, const struct study_run *k)
{
    bool has_policy = false, has_load = false, has_seed = false;

    for (int i = 0; i < b->n_rows; i++) {
        const struct study_run *o = &b->rows[i].key;

        if (o->scenario != k->scenario)
            continue;
        has_policy = has_policy || strcmp(o->policy, k->policy) == 0;
        has_load = has_load || o->load == k->load;
        has_seed = has_seed || o->seed == k->seed;
    }
    return has_policy && has_load && has_seed;
}

/* A study that was stopped, or part of one, says so before anything else. */
static void put_missing(struct report *r)
{
    int n_there = 0, n_all = 0, n_holes = 0;

    for (int i = 0; i < r->n_scenarios; i++) {
        const struct scenario *s = r->scenarios[i].scenario;
        const int seeds = scenario_seeds(&r->scenarios[i]);
        struct study_run *keys;
        const int n = scenario_runs(r->a, s, seeds > s->n_seeds ? seeds : s->n_seeds, &keys);

        n_all += n;
        for (int k = 0; k < n; k++) {
            const bool has = has_run(r->results, &keys[k]);

            n_there += has;
            n_holes += !has && is_asked_for(r->results, &keys[k]);
        }
    }
    if (n_there == n_all)
        return;
    PUT(r->out, "<p class=\"warn\">");
    if (n_holes > 0)
        PUT(r->out,
            "<b>This study is not finished:</b> %d run%s of the policies, loads and seeds "
            "below %s missing. ",
            n_holes, n_holes == 1 ? "" : "s", n_holes == 1 ? "is" : "are");
    PUT(r->out, "%d of %d runs of these scenarios are shown.</p>\n", n_there, n_all);
}

static void put_scenario_list(struct report *r)
{
    if (r->n_scenarios == 0) {
        PUT(r->out, "<p>There are no runs yet.</p>\n");
        return;
    }
    PUT(r->out, "<ul>\n");
    for (int i = 0; i < r->n_scenarios; i++) {
        const struct scenario *s = r->scenarios[i].scenario;

        PUT(r->out, "<li><a href=\"#s-%s\">%s</a>: %s</li>\n", html(r, s->name), html(r, s->name),
            html(r, s->title));
    }
    PUT(r->out, "</ul>\n");
}

static void put_head(struct report *r)
{
    PUT(r->out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                "<title>A study of gogh</title>\n");
    report_style(r);
    PUT(r->out, "</head>\n<body>\n<header>\n<h1>A study of gogh</h1>\n");
    report_finding(r);
    PUT(r->out, "<p>Gogh places machine-learning jobs on clusters that mix generations of GPUs, so "
                "that they use the least energy while every job keeps its promised speed. Here the "
                "same jobs were run under gogh and under other policies, in simulation; this page "
                "shows what each used and which promises it kept.</p>\n");
    put_missing(r);
    put_identity(r);
    put_scenario_list(r);
    if (r->n_scenarios > 0)
        report_assumptions(r);
}

static void put_contents(struct report *r)
{
    PUT(r->out, "<nav aria-label=\"Contents\"><ul>\n");
    for (int i = 0; i < N_PARTS; i++)
        if (part_has(r, &parts[i]))
            PUT(r->out, "<li><a href=\"#%s\">%s</a></li>\n", parts[i].id, parts[i].title);
    PUT(r->out, "</ul></nav>\n</header>\n");
}

void report_page(struct arena *a, const struct results *b, struct buf *out)
{
    struct report r = { .a = a, .out = out, .results = b };

    report_sort(&r);
    put_head(&r);
    put_contents(&r);
    PUT(out, "<main>\n");
    for (int i = 0; i < N_PARTS; i++) {
        if (!part_has(&r, &parts[i]))
            continue;
        PUT(out, "<section>\n<h2 id=\"%s\">%s</h2>\n", parts[i].id, parts[i].title);
        parts[i].put(&r);
        PUT(out, "</section>\n");
    }
    PUT(out, "</main>\n</body>\n</html>\n");
}

int report_write(struct arena *a, const struct results *b, struct err *e)
{
    struct buf out;
    int rc;

    buf_init(&out, REPORT_MAX);
    report_page(a, b, &out);
    rc = file_write(arena_printf(a, "%s/report.html", b->dir), out.data, out.len, e);
    buf_release(&out);
    return rc;
}
