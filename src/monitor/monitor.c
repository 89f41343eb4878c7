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

/* An inference job that serves all it is asked shows its load, not its speed. */
static bool shows_speed(const struct job_spec *spec, double throughput)
{
    return spec->kind == JOB_TRAINING || throughput < 0.98 * spec->rate;
}

static void read_window(const struct observation *seen, const struct state *s, struct finding *out)
{
    double length_s = seen->time_s - seen->from_s;
    double throughput = seen->steps / length_s;
    struct measurement *m = &out->measurement;

    out->event.kind = EVENT_JOB_PROGRESSED;
    if (length_s < MONITOR_WINDOW_MIN_S || !(throughput > 0) ||
        !shows_speed(&s->jobs[seen->job]->spec, throughput))
        return;
    *m = (struct measurement){ .fits = true,
                               .throughput = throughput,
                               .watts = seen->n_neighbours ? (double)NAN : seen->watts,
                               .time_s = seen->time_s,
                               .duration_s = length_s,
                               .noise = seen->noise > 0 ? seen->noise : (double)NAN };
    out->has_measurement = cell_of(seen, s, &m->key);
}

static void read_unfit(const struct observation *seen, const struct state *s, struct finding *out)
{
    out->event.kind = EVENT_JOB_STOPPED;
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

    out->event.kind = EVENT_NODE_CHANGED;
    out->event.node = n->name;
    out->event.node_state = states[seen->kind];
    out->has_event = n->state != states[seen->kind];
    /* An administrator's drain outlasts what a sensor sees of the node's health. */
    if (seen->kind == OBS_NODE_UP && n->state == NODE_DRAINED)
        out->has_event = seen->ends_drain;
}

void monitor_read(const struct observation *seen, const struct state *s, struct finding *out)
{
    *out = (struct finding){ .has_event = true };
    out->event = (struct event){ .time_s = seen->time_s,
                                 .job = seen->job,
                                 .steps_done = seen->steps_done,
                                 .reason = seen->reason };
    switch (seen->kind) {
    case OBS_STARTED:
        out->event.kind = EVENT_JOB_STARTED;
        out->event.gpus = seen->gpus;
        out->event.n_gpus = seen->n_gpus;
        out->event.limit_w = seen->limit_w;
        break;
    case OBS_STOPPED:
        out->event.kind = EVENT_JOB_STOPPED;
        break;
    case OBS_FINISHED:
        out->event.kind = EVENT_JOB_FINISHED;
        break;
    case OBS_FAILED:
        out->event.kind = EVENT_JOB_FAILED;
        break;
    case OBS_UNFIT:
        read_unfit(seen, s, out);
        break;
    case OBS_WINDOW:
        read_window(seen, s, out);
        break;
    case OBS_NODE_UP:
    case OBS_NODE_DOWN:
    case OBS_NODE_DRAINED:
        read_node(seen, s, out);
        return;
    }
    out->has_event = state_expects(s, out->event.kind, seen->job);
}
