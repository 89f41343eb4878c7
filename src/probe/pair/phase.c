#include "probe/pair/phase.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* How much longer than asked for a window may become. */
#define LONGEST 2.0

void phase_begin(struct pair_phase *p, const struct phase_setup *setup, unsigned who, double now_s)
{
    *p = (struct pair_phase){ .setup = *setup, .measured_s = NAN };
    for (int i = 0; i < PHASE_PROGRAMS; i++) {
        p->programs[i].is_in = who & 1U << i;
        p->programs[i].heard_s = now_s;
        window_begin(&p->programs[i].window, now_s, INFINITY, setup->seconds);
    }
}

static bool have_all_reported(const struct pair_phase *p)
{
    for (int i = 0; i < PHASE_PROGRAMS; i++)
        if (p->programs[i].is_in && !p->programs[i].has_reported)
            return false;
    return true;
}

static void begin_windows(struct pair_phase *p, double t_s)
{
    p->measured_s = t_s + p->setup.warmup_s;
    for (int i = 0; i < PHASE_PROGRAMS; i++) {
        window_change(&p->programs[i].window, t_s, p->setup.warmup_s);
        p->programs[i].heard_s = t_s;
    }
}

void phase_count(struct pair_phase *p, int i, double t_s, double steps)
{
    struct phase_program *x = &p->programs[i];

    if (!x->is_in)
        return;
    if (isnan(x->window.last_s) || steps > x->window.last_steps)
        x->heard_s = t_s;
    x->has_reported = true;
    window_count(&x->window, t_s, steps);
    if (isnan(p->measured_s) && have_all_reported(p))
        begin_windows(p, t_s);
}

/* Long enough, and parts agree; or they had their time. */
static bool is_measured(const struct pair_phase *p, const struct window *w, double now_s)
{
    struct window_result t;

    window_tell(w, p->setup.seconds, &t);
    if (t.verdict == WINDOW_STEADY)
        return true;
    return w->n_parts == WINDOW_PARTS_MAX ||
           (w->n_parts > 0 && now_s - p->measured_s >= LONGEST * p->setup.seconds);
}

enum phase_state phase_look(const struct pair_phase *p, double now_s, int *who)
{
    bool is_done = !isnan(p->measured_s);

    for (int i = 0; i < PHASE_PROGRAMS; i++) {
        const struct phase_program *x = &p->programs[i];

        if (!x->is_in)
            continue;
        if (isnan(p->measured_s) || !is_measured(p, &x->window, now_s))
            is_done = false;
        /* Whoever has reported may wait for the other without having to say more. */
        if (now_s - x->heard_s > p->setup.patience_s &&
            !(x->has_reported && isnan(p->measured_s))) {
            *who = i;
            return PHASE_SILENT;
        }
    }
    if (is_done)
        return PHASE_DONE;
    return isnan(p->measured_s) ? PHASE_WAITING : PHASE_MEASURING;
}

struct phase_rate phase_rate(const struct pair_phase *p, int i)
{
    struct window_result t;

    window_tell(&p->programs[i].window, p->setup.seconds, &t);
    if (!(t.length_s > 0))
        return (struct phase_rate){ (double)NAN, (double)NAN, false };
    return (struct phase_rate){ t.steps / t.length_s, t.noise, t.verdict != WINDOW_UNSTABLE };
}

bool phase_is_out_of_memory(const char *words)
{
    /* CUDA's and HIP's runtimes and frameworks; their constants; Python's exceptions. */
    static const char *const signs[] = { "out of memory", "out_of_memory", "OutOfMemory",
                                         "out of GPU memory", "MEMORY_ALLOCATION_FAILURE" };

    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcasestr(words, signs[i]))
            return true;
    return false;
}
