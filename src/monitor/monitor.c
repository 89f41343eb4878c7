#include "monitor/monitor.h"

#include <math.h>

#include "catalog/cluster/state.h"
#include "monitor/sensor.h"

/* The cell that an observation is about; false for three and more on a GPU, which no cell
 * describes.
 */
static bool cell_of(const struct observation *seen, const struct state *s, struct cell_key *out)
{
    if (seen->n_gpus < 1 || seen->n_neighbours > 1)
        return false;
    const struct gpu *first = &s->gpus[seen->gpus[0]];
    *out = (struct cell_key){
        .workload = s->jobs[seen->job]->spec.workload,
        .gpu_type = first->type,
        .neighbour = seen->n_neighbours ? s->jobs[seen->neighbours[0]]->spec.workload : -1,
        .n_gpus = seen->n_gpus,
        .limit_w = seen->limit_w,
    };
    for (int i = 1; i < seen->n_gpus; i++)
        out->is_spread |= s->gpus[seen->gpus[i]].node != first->node;
    return true;
}

/* An inference job that serves all it is asked shows its load, not its speed; a replica shows its
 * part of one.
 */
static bool shows_speed(const struct job_spec *spec, double throughput)
{
    return spec->kind == JOB_TRAINING ||
           (spec->kind == JOB_INFERENCE && throughput < 0.98 * spec->rate);
}

/* Are the watts those of jobs that run as fast as they can, here? A server draws by its load. */
static bool draws_fully(const struct observation *seen, const struct state *s)
{
    for (int i = 0; i < seen->n_neighbours; i++)
        if (s->jobs[seen->neighbours[i]]->spec.kind != JOB_TRAINING)
            return false;
    return true;
}

static void read_window(const struct observation *seen, const struct state *s, struct finding *out)
{
    double length_s = seen->time_s - seen->from_s;
    double throughput = seen->steps / length_s;
    struct measurement *m = &out->measurement;

    if (length_s < MONITOR_WINDOW_MIN_S || !(throughput > 0) ||
        !shows_speed(&s->jobs[seen->job]->spec, throughput))
        return;
    *m = (struct measurement){ .fits = true,
                               .throughput = throughput,
                               .watts = draws_fully(seen, s) ? seen->watts : (double)NAN,
                               .time_s = seen->time_s,
                               .duration_s = length_s,
                               .noise = seen->noise > 0 ? seen->noise : (double)NAN };
    out->has_measurement = cell_of(seen, s, &m->key);
    out->has_profile = out->has_measurement && seen->n_uses > 0 && seen->n_gpus == 1 &&
                       seen->n_neighbours == 0 && seen->limit_w == 0;
    out->profile = (struct solo_profile){ .gpu_activity = seen->use.gpu,
                                          .mem_activity = seen->use.mem,
                                          .watts = seen->watts,
                                          .mem_used_bytes = seen->use.mem_bytes };
}

static void read_unfit(const struct observation *seen, const struct state *s, struct finding *out)
{
    if (seen->kind == OBS_UNFIT)
        out->event.reason = "did not fit";
    out->measurement = (struct measurement){
        .throughput = NAN, .watts = NAN, .time_s = seen->time_s, .duration_s = NAN, .noise = NAN
    };
    out->has_measurement = cell_of(seen, s, &out->measurement.key);

    /* Memory is a matter of one GPU: what a gang's member learned holds for the job alone. And no
     * power limit makes it larger.
     */
    out->measurement.key.n_gpus = 1;
    out->measurement.key.limit_w = 0;
    out->measurement.key.is_spread = false;
}

static void read_node(const struct observation *seen, const struct state *s, struct finding *out)
{
    static const enum node_state states[] = {
        [OBS_NODE_UP] = NODE_UP, [OBS_NODE_DOWN] = NODE_DOWN, [OBS_NODE_DRAINED] = NODE_DRAINED
    };
    const struct node *n = &s->nodes[seen->node];

    out->event.node = n->name;
    out->event.node_state = states[seen->kind];
    out->has_event = n->state != states[seen->kind];
    /* An administrator's drain outlasts what a sensor sees of the node's health. */
    if (seen->kind == OBS_NODE_UP && n->state == NODE_DRAINED)
        out->has_event = seen->ends_drain;
}

void monitor_read(const struct observation *seen, const struct state *s, struct finding *out)
{
    static const enum event_kind kinds[] = {
        [OBS_STARTED] = EVENT_JOB_STARTED,       [OBS_STOPPED] = EVENT_JOB_STOPPED,
        [OBS_FINISHED] = EVENT_JOB_FINISHED,     [OBS_FAILED] = EVENT_JOB_FAILED,
        [OBS_UNFIT] = EVENT_JOB_STOPPED,         [OBS_INCAPABLE] = EVENT_JOB_STOPPED,
        [OBS_WINDOW] = EVENT_JOB_PROGRESSED,     [OBS_SERVED] = EVENT_REPLICA_READY,
        [OBS_NODE_UP] = EVENT_NODE_CHANGED,      [OBS_NODE_DOWN] = EVENT_NODE_CHANGED,
        [OBS_NODE_DRAINED] = EVENT_NODE_CHANGED,
    };

    *out = (struct finding){ .event = { .kind = kinds[seen->kind],
                                        .time_s = seen->time_s,
                                        .job = seen->job,
                                        .gpus = seen->gpus,
                                        .n_gpus = seen->n_gpus,
                                        .limit_w = seen->limit_w,
                                        .steps_done = seen->steps_done,
                                        .reason = seen->reason } };
    if (seen->kind == OBS_SERVED) {
        out->has_served = state_expects(s, EVENT_JOB_PROGRESSED, seen->job);
        out->has_event = state_expects(s, EVENT_REPLICA_READY, seen->job) &&
                         seen->served->is_ready && !seen->served->is_false &&
                         isnan(s->jobs[seen->job]->ready_s);
        out->served = seen->served;
        return;
    }
    if (out->event.kind == EVENT_NODE_CHANGED) {
        read_node(seen, s, out);
        return;
    }
    if (seen->kind == OBS_UNFIT || seen->kind == OBS_INCAPABLE)
        read_unfit(seen, s, out);
    else if (seen->kind == OBS_WINDOW)
        read_window(seen, s, out);
    out->has_event = state_expects(s, out->event.kind, seen->job);
}
