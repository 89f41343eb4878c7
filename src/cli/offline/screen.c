#include "cli/offline/screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/buf.h"
#include "catalog/catalog.h"
#include "catalog/cluster/state.h"
#include "sim/sim.h"
#include "sim/world/world.h"

double screen_saved(const struct screen *s)
{
    struct sim_result us, them;

    sim_result(s->ours, &us);
    sim_result(s->theirs, &them);
    if (!(us.work_s > 0) || !(them.work_s > 0))
        return NAN;
    return 1 - (us.energy_j / us.work_s) / (them.energy_j / them.work_s);
}

/* "j000123" is "123": what fits into a cell. */
static const char *short_name(const char *name)
{
    const char *digits = name + strcspn(name, "123456789");

    return *digits ? digits : name;
}

static void draw_gpu(const struct sim *sim, int gpu, struct buf *out)
{
    const struct state *s = sim_state(sim);
    const struct gpu *g = &s->gpus[gpu];
    char cell[64] = "";
    size_t at = 0;

    for (int i = 0; i < g->n_jobs && at < sizeof cell; i++) {
        const char *name = short_name(s->jobs[g->jobs[i]]->spec.name);
        at += (size_t)snprintf(cell + at, sizeof cell - at, "%s%s", i ? "+" : "", name);
    }
    if (g->n_jobs == 0)
        snprintf(cell, sizeof cell, "%s",
                 world_gpu_is_asleep(sim_world(sim), gpu) ? "zzz" : "idle");
    buf_printf(out, " |%8.8s %4.0f", cell, world_gpu_watts(sim_world(sim), gpu));
}

static void draw_node(const struct sim *sim, int node, struct buf *out)
{
    const struct state *s = sim_state(sim);
    const struct node *n = &s->nodes[node];
    const char *type = sim_catalog(sim)->types[s->gpus[n->first_gpu].type].name;

    buf_printf(out, "%-8.8s %-8.8s", n->name, type);
    for (int g = n->first_gpu; g < n->first_gpu + n->n_gpus; g++)
        draw_gpu(sim, g, out);
    buf_puts(out, " |\n");
}

static void draw_figures(const char *name, const struct sim *sim, const struct sim_result *r,
                         struct buf *out)
{
    const struct state *s = sim_state(sim);
    double per_work = r->work_s > 0 ? r->energy_j / r->work_s : 0;

    buf_printf(out, "%-13.13s %6.0f %7.1f %8.1f %7.0f %% %7d %7d %6d %6ld\n", name,
               world_watts(sim_world(sim)), r->energy_j / 3.6e6, per_work,
               isnan(r->promise_attainment) ? 100 : 100 * r->promise_attainment, s->n_running,
               s->n_waiting, r->n_finished, r->n_moves);
}

static void draw_clock(double t_s, struct buf *out)
{
    long minutes = (long)(t_s / 60);

    buf_printf(out, "day %ld %02ld:%02ld", minutes / 1440, minutes / 60 % 24, minutes % 60);
}

void screen_draw(const struct screen *s, struct buf *out)
{
    const struct state *state = sim_state(s->ours);
    struct sim_result us, them;
    double saved = screen_saved(s);

    sim_result(s->ours, &us);
    sim_result(s->theirs, &them);
    buf_printf(out, "GOGH, embedded cluster of %d GPUs, ", state->n_gpus);
    draw_clock(sim_now_s(s->ours), out);
    buf_puts(out, "; a cell: who runs there, watts\n\n");
    for (int n = 0; n < state->n_nodes; n++)
        draw_node(s->ours, n, out);
    buf_printf(out, "\n%-13s %6s %7s %8s %9s %7s %7s %6s %6s\n", "", "W now", "kWh", "J/work",
               "promises", "running", "waiting", "done", "moves");
    draw_figures("gogh", s->ours, &us, out);
    draw_figures(s->their_name, s->theirs, &them, out);
    buf_printf(out, "\n%ld measurements learned from. ", us.n_measurements);
    if (isnan(saved))
        buf_puts(out, "No work done yet.\n");
    else
        buf_printf(out, "Energy saved per unit of work: %.0f %%\n", 100 * saved);
}

void screen_line(const struct screen *s, struct buf *out)
{
    struct sim_result us;
    double saved = screen_saved(s);

    sim_result(s->ours, &us);
    draw_clock(sim_now_s(s->ours), out);
    buf_printf(out, "  %5d jobs done  %6.1f kWh  promises %3.0f %%  saved %3.0f %%\n",
               us.n_finished, us.energy_j / 3.6e6, 100 * us.promise_attainment,
               isnan(saved) ? 0 : 100 * saved);
}
