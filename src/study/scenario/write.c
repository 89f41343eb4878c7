/* write.c - a scenario as the text that describes it. */
#include <math.h>

#include "base/text/buf.h"
#include "base/text/words.h"
#include "study/scenario/text.h"

const char *const scenario_jobs_names[SCENARIO_JOBS] = {
    [JOBS_DRAWN] = "drawn",   [JOBS_SERVED] = "served",   [JOBS_MSR] = "msr",
    [JOBS_PHILLY] = "philly", [JOBS_ALIBABA] = "alibaba", [JOBS_TRACE] = "trace",
    [JOBS_SACCT] = "sacct",
};
const char *const scenario_truths[SCENARIO_TRUTHS] = {
    [TRUTH_GAVEL] = "gavel", [TRUTH_BUILTIN] = "builtin", [TRUTH_STORE] = "store"
};

static void put_word(struct buf *out, const char *word)
{
    buf_puts(out, " ");
    words_put(out, word);
}

static void put_text(const char *key, const char *word, struct buf *out)
{
    if (word == NULL)
        return;
    buf_puts(out, key);
    put_word(out, word);
    buf_puts(out, "\n");
}

static void put_list(const char *key, const char *const *words, int n, struct buf *out)
{
    if (n == 0)
        return;
    buf_puts(out, key);
    for (int i = 0; i < n; i++)
        put_word(out, words[i]);
    buf_puts(out, "\n");
}

static void put_numbers(const char *key, const double *v, int n, struct buf *out)
{
    if (n == 0)
        return;
    buf_puts(out, key);
    for (int i = 0; i < n; i++) {
        buf_puts(out, " ");
        if (isnan(v[i]))
            buf_puts(out, "auto");
        else
            words_put_number(out, v[i]);
    }
    buf_puts(out, "\n");
}

/* Lines of the cluster, without those that are empty. */
static void put_cluster(const struct scenario *s, struct buf *out)
{
    const char *rest = s->cluster;
    struct slice line;

    if (s->cluster_file != NULL) {
        put_text("cluster", s->cluster_file, out);
        return;
    }
    if (s->cluster == NULL) {
        buf_puts(out, "cluster alibaba\n");
        return;
    }
    while (slice_next(&rest, '\n', &line)) {
        if (slice_trim(line).len == 0)
            continue;
        buf_append(out, line.at, line.len);
        buf_puts(out, "\n");
    }
}

static void put_jobs(const struct scenario *s, struct buf *out)
{
    buf_printf(out, "jobs %s", scenario_jobs_names[s->jobs]);
    if (s->jobs_file != NULL)
        put_word(out, s->jobs_file);
    else if (s->jobs != JOBS_ALIBABA)
        buf_printf(out, " %d", s->n_jobs);
    if (s->jobs == JOBS_SERVED) {
        buf_puts(out, " share=");
        words_put_number(out, s->served);
    }
    if (s->partition != NULL) {
        buf_puts(out, " partition=");
        words_put(out, s->partition);
    }
    if (s->workload != NULL) {
        buf_puts(out, " workload=");
        words_put(out, s->workload);
    }
    buf_puts(out, "\n");
}

static void put_truth(const struct scenario *s, struct buf *out)
{
    buf_printf(out, "truth %s", scenario_truths[s->truth]);
    if (s->truth_file != NULL)
        put_word(out, s->truth_file);
    buf_puts(out, "\n");
}

static void put_knows(const struct scenario *s, struct buf *out)
{
    if (s->n_knows > 0)
        buf_puts(out, "knows");
    for (int i = 0; i < s->n_knows; i++)
        buf_printf(out, " %s", knowledge_name(s->knows[i]));
    buf_puts(out, s->n_knows > 0 ? "\n" : "");
    if (s->history_jobs > 0)
        buf_printf(out, "history %d\n", s->history_jobs);
    put_text("model", s->model_file, out);
}

int scenario_write(const struct scenario *s, struct buf *out)
{
    if (s->title != NULL && s->title[0] != '\0')
        put_text("title", s->title, out);
    put_cluster(s, out);
    put_truth(s, out);
    put_jobs(s, out);
    put_text("reference", s->reference, out);
    put_list("models", s->models, s->n_models, out);
    if (s->promise_high > 0) {
        const double range[] = { s->promise_low, s->promise_high };

        put_numbers("promises", range, 2, out);
    }
    if (s->n_services > 0) {
        const double range[] = { s->n_services, s->service_rate, s->service_days };

        put_numbers("services", range, 3, out);
    }
    put_numbers("load", s->loads, s->n_loads, out);
    put_list("policy", s->policies, s->n_policies, out);
    buf_printf(out, "limits %s\n", s->both_limits ? "both" : s->has_limits ? "yes" : "no");
    buf_puts(out, s->is_always_on ? "sleep no\n" : "");
    buf_puts(out, s->takes_levers_away ? "levers yes\n" : "");
    put_knows(s, out);
    put_numbers("delay_w", s->delays_w, s->n_delays, out);
    put_numbers("promise_w", s->promises_w, s->n_promises, out);
    return buf_printf(out, "first_seed %d\nseeds %d\n", s->first_seed, s->n_seeds);
}
