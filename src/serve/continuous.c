/* continuous.c - a server of a language model: requests join and leave a running batch. */
#include "serve/continuous.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct continuous_run {
    long end_step;
    double first_s;    // when its first token came
    int n_more;        // tokens after that
    bool is_late;      // that one was
};

void continuous_server_init(struct continuous_server *s, double t0_s, double a_s, double c_s,
                            int max_running, double ttft_s, double tpot_s, double now_s)
{
    assert(max_running >= 1);
    *s = (struct continuous_server){ .t0_s = t0_s,
                                     .a_s = a_s,
                                     .c_s = c_s,
                                     .max_running = max_running,
                                     .ttft_s = ttft_s,
                                     .tpot_s = tpot_s,
                                     .now_s = now_s,
                                     .free_s = now_s,
                                     .step_end_s = (double)INFINITY,
                                     .runs = heap_array((size_t)max_running, sizeof *s->runs) };
}

void continuous_server_release(struct continuous_server *s)
{
    free(s->queue);
    free(s->runs);
    s->queue = NULL;
    s->runs = NULL;
}

static const struct llm_request *waiting(const struct continuous_server *s, int i)
{
    return &s->queue[(s->first + i) & (s->cap - 1)];    // cap is a power of two
}

/* ---- running requests: a heap by the step they end with ---- */

static void push_run(struct continuous_server *s, struct continuous_run r)
{
    int i = s->n_runs++;

    for (; i > 0 && s->runs[(i - 1) / 2].end_step > r.end_step; i = (i - 1) / 2)
        s->runs[i] = s->runs[(i - 1) / 2];
    s->runs[i] = r;
}

static void pop_run(struct continuous_server *s)
{
    const struct continuous_run r = s->runs[--s->n_runs];
    int i = 0;

    for (int k; (k = 2 * i + 1) < s->n_runs; i = k) {
        if (k + 1 < s->n_runs && s->runs[k + 1].end_step < s->runs[k].end_step)
            k++;
        if (s->runs[k].end_step >= r.end_step)
            break;
        s->runs[i] = s->runs[k];
    }
    s->runs[i] = r;
}

static void end_run(struct continuous_server *s, double first_s, int n_more, bool is_late, double t)
{
    const double each_s = n_more > 0 ? (t - first_s) / n_more : 0;

    s->n_served++;
    s->n_late += is_late || each_s > s->tpot_s;
    if (n_more > 0)
        latencies_add(&s->tpot, each_s);
}

/* ---- steps ---- */

static void end_step(struct continuous_server *s)
{
    const double t = s->step_end_s;

    s->n_steps++;
    s->n_tokens += s->n_runs + s->n_first;
    for (; s->n_runs && s->runs[0].end_step <= s->n_steps; pop_run(s))
        end_run(s, s->runs[0].first_s, s->runs[0].n_more, s->runs[0].is_late, t);
    for (int i = 0; i < s->n_first; i++) {
        const struct llm_request *r = waiting(s, i);
        const bool is_late = t - r->at_s > s->ttft_s;

        latencies_add(&s->ttft, t - r->at_s);
        if (r->output > 1)
            push_run(s, (struct continuous_run){ s->n_steps + r->output - 1, t, r->output - 1,
                                                 is_late });
        else
            end_run(s, t, 0, is_late, t);
    }
    s->n_read = (s->n_first ? 0 : s->n_read) + s->n_part;
    s->first = (s->first + s->n_first) & (s->cap - 1);
    s->n_queue -= s->n_first;
    s->n_first = s->n_part = 0;
    s->busy_s += t - s->counted_s;
    s->free_s = t;
    s->step_end_s = (double)INFINITY;
}

/* Prompts that the step which begins at 'begin_s' reads: their tokens. */
static int read_prompts(struct continuous_server *s, double begin_s)
{
    int n_tokens = 0, n_done = s->n_read;

    while (n_tokens < CONTINUOUS_CHUNK && s->n_first < s->n_queue &&
           waiting(s, s->n_first)->at_s <= begin_s && s->n_runs + s->n_first < s->max_running) {
        const int left = waiting(s, s->n_first)->prompt - n_done;
        const int room = CONTINUOUS_CHUNK - n_tokens;

        n_done = 0;
        n_tokens += left < room ? left : room;
        if (left <= room)
            s->n_first++;
        else
            s->n_part = room;
    }
    return n_tokens;
}

/* While nobody joins or leaves, steps are alike: how many end before something can change. */
static double alike(const struct continuous_server *s, double begin_s, double step_s, double now_s)
{
    const double until_end = (double)(s->runs[0].end_step - s->n_steps - 1);
    double limit_s = now_s;

    if (s->n_queue && s->n_runs < s->max_running)
        limit_s = fmin(limit_s, waiting(s, 0)->at_s);
    return fmin(until_end, floor((limit_s - begin_s) / step_s));
}

/* Begin a step, or do many that are alike; false where there is nothing to do before 'now_s'. */
static bool begin_step(struct continuous_server *s, double now_s)
{
    double begin_s = s->free_s;

    if (!s->n_runs && s->n_queue)
        begin_s = fmax(begin_s, waiting(s, 0)->at_s);
    if ((!s->n_runs && !s->n_queue) || begin_s >= now_s)
        return false;
    const int n_tokens = read_prompts(s, begin_s);
    const double step_s = s->t0_s + s->a_s * s->n_runs + s->c_s * n_tokens;
    if (n_tokens == 0) {
        const double n = alike(s, begin_s, step_s, now_s);

        if (n >= 1) {
            s->n_steps += (long)n;
            s->n_tokens += n * s->n_runs;
            s->busy_s += n * step_s;
            s->free_s = begin_s + n * step_s;
            return true;
        }
    }
    s->counted_s = begin_s;
    s->step_end_s = begin_s + step_s;
    return true;
}

void continuous_server_advance(struct continuous_server *s, double now_s)
{
    assert(now_s >= s->now_s);
    for (;;) {
        if (s->step_end_s <= now_s)
            end_step(s);
        if (s->step_end_s < (double)INFINITY || !begin_step(s, now_s))
            break;
    }
    if (s->step_end_s < (double)INFINITY) {
        s->busy_s += now_s - s->counted_s;
        s->counted_s = now_s;
    }
    s->now_s = now_s;
}

bool continuous_server_arrive(struct continuous_server *s, const struct llm_request *r)
{
    const int old = s->cap;

    assert(r->prompt >= 1 && r->output >= 1);
    continuous_server_advance(s, r->at_s);
    if (s->is_draining || s->n_queue >= CONTINUOUS_QUEUE_MAX) {
        s->n_refused++;
        return false;
    }
    if (s->n_queue == old) {
        s->cap = old ? 2 * old : 64;
        RESIZE(s->queue, s->cap);
        memcpy(s->queue + old, s->queue, (size_t)s->first * sizeof *s->queue);
    }
    s->queue[(s->first + s->n_queue++) & (s->cap - 1)] = *r;
    s->n_arrived++;
    return true;
}

int continuous_server_abandon(struct continuous_server *s)
{
    const int n = s->n_queue + s->n_runs;

    s->n_late += n;
    s->n_queue = s->n_runs = s->n_first = s->n_part = s->n_read = 0;
    s->step_end_s = (double)INFINITY;
    s->free_s = s->now_s;
    return n;
}

double continuous_server_look_s(const struct continuous_server *s)
{
    const bool is_busy = s->step_end_s < (double)INFINITY;
    long n = s->n_queue > 0;

    for (int i = 0; i < s->n_runs; i++) {
        const long left = s->runs[i].end_step - s->n_steps;

        n = left > n ? left : n;
    }
    return (is_busy ? s->step_end_s : s->now_s) + (double)(n - is_busy) * (s->t0_s + s->a_s);
}

int continuous_late(const struct llm_request *r, int n, const struct continuous_server *like,
                    double f, double stretch, int enough)
{
    struct continuous_server s;

    continuous_server_init(&s, f * like->t0_s, f * like->a_s, f * like->c_s, like->max_running,
                           like->ttft_s, like->tpot_s, 0);
    for (int i = 0; i < n && s.n_late <= enough; i++) {
        struct llm_request scaled = r[i];

        scaled.at_s *= stretch;
        continuous_server_arrive(&s, &scaled);
    }
    if (s.n_late <= enough)
        continuous_server_advance(&s, 1e15);
    const int n_late = (int)s.n_late;
    continuous_server_release(&s);
    return n_late;
}
