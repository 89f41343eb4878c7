/* Places: GPUs of the state, and what Slurm calls them. */
#include "act/slurm/inner.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "act/driver/wire.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/text/text.h"
#include "catalog/cluster/state.h"

static void gpu_set_add(struct gpu_set *s, int gpu)
{
    if (gpu_set_has(s, gpu))
        return;
    RESIZE(s->gpus, s->n_gpus + 1);
    s->gpus[s->n_gpus++] = gpu;
}

/* ---- nodes ---- */

static const char *node_of(const struct slurm *x, int gpu)
{
    return x->setup.state->nodes[x->setup.state->gpus[gpu].node].name;
}

/* Is the i-th GPU of 's' the first of its node there? */
static bool is_first(const struct slurm *x, const struct gpu_set *s, int i)
{
    const struct gpu *gpus = x->setup.state->gpus;

    for (int k = 0; k < i; k++)
        if (gpus[s->gpus[k]].node == gpus[s->gpus[i]].node)
            return false;
    return true;
}

const char *place_nodes(struct slurm *x, const struct gpu_set *s, int *n_nodes)
{
    const char *list = "";
    int n = 0;

    for (int i = 0; i < s->n_gpus; i++)
        if (is_first(x, s, i))
            list =
                arena_printf(&x->scratch, "%s%s%s", list, n++ ? "," : "", node_of(x, s->gpus[i]));
    if (n_nodes)
        *n_nodes = n;
    return list;
}

int place_node(const struct slurm *x, struct slice name)
{
    char copy[300];

    if (name.len >= sizeof copy)
        return -1;
    snprintf(copy, sizeof copy, "%.*s", (int)name.len, name.at);
    return state_find_node(x->setup.state, copy);
}

bool place_is_on(struct slurm *x, const struct gpu_set *s, const char *nodes)
{
    int n_nodes = 0, n_found = 0;

    for (int i = 0; i < s->n_gpus; i++)
        n_nodes += is_first(x, s, i);
    for (struct slice name; slice_next(&nodes, ',', &name);) {
        const int node = place_node(x, name);
        bool is_ours = false;

        for (int i = 0; i < s->n_gpus && node >= 0; i++)
            is_ours |= x->setup.state->gpus[s->gpus[i]].node == node;
        if (!is_ours)
            return false;
        n_found++;
    }
    return n_nodes == n_found && n_nodes > 0;
}

/* ---- gres ---- */

static struct slice without_prefix(struct slice item)
{
    static const char prefix[] = "gres";
    const size_t n = sizeof prefix - 1;

    if (item.len > n && strncmp(item.at, prefix, n) == 0 && strchr(":/", item.at[n]))
        return (struct slice){ item.at + n + 1, item.len - n - 1 };
    return item;
}

/* Of "gres:shard:v100_1:1(IDX:0)" the type, "v100_1"; empty: none. */
static struct slice type_of(struct slice item)
{
    const char *colon;
    long count;

    item = without_prefix(item);
    colon = memchr(item.at, ':', item.len);
    if (!colon)
        return (struct slice){ item.at, 0 };
    item = (struct slice){ colon + 1, item.len - (size_t)(colon + 1 - item.at) };
    for (size_t i = 0; i < item.len; i++)
        if (strchr(":=(", item.at[i]))
            item.len = i;
    return text_to_long(item, 0, LONG_MAX, &count) == 0 ? (struct slice){ item.at, 0 } : item;
}

bool gres_names(const char *gres, const struct slurm_slot *slot)
{
    const struct slice want = type_of(slice_of(slot->gres));

    if (!want.len || slot->exact != SLURM_EXACT)
        return false;
    for (struct slice item; slice_next(&gres, ',', &item);) {
        const struct slice type = type_of(item);

        if (type.len == want.len && memcmp(type.at, want.at, want.len) == 0)
            return true;
    }
    return false;
}

/* "gres/shard=1" is "shard:1". */
static bool is_same_item(struct slice a, struct slice b)
{
    a = without_prefix(a);
    b = without_prefix(b);
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if ((a.at[i] == '=' ? ':' : a.at[i]) != (b.at[i] == '=' ? ':' : b.at[i]))
            return false;
    return true;
}

static bool has_items(const char *of, const char *in)
{
    for (struct slice item; slice_next(&of, ',', &item);) {
        const char *at = in;
        bool is_there = false;

        for (struct slice o; !is_there && slice_next(&at, ',', &o);)
            is_there = is_same_item(item, o);
        if (!is_there)
            return false;
    }
    return true;
}

bool gres_is_same(const char *a, const char *b)
{
    return has_items(a, b) && has_items(b, a);
}

/* Of a GPU's shards, those that one of 'theta' gets; all for a job that is to be alone, and for
 * gangs, which wait for each other.
 */
static int share_of(const struct slurm *x, const struct managed *m, const struct slurm_slot *slot)
{
    const struct job_spec *spec = &managed_job(x, m)->spec;
    const int share = slot->n_shards / x->setup.theta;

    if (slot->n_shards == 0)
        return 1;
    if (spec->is_exclusive || spec->max_gpus > 1)
        return slot->n_shards;
    return share > 1 ? share : 1;
}

/* How much of what the i-th GPU's slot is called is wanted of its node. */
static int sum_of(struct slurm *x, const struct managed *m, const struct gpu_set *s, int i)
{
    const struct gpu *gpus = x->setup.state->gpus;
    const char *what = slurm_slot_of(x, s->gpus[i])->gres;
    int sum = 0;

    for (int k = 0; k < s->n_gpus; k++) {
        const struct slurm_slot *slot = slurm_slot_of(x, s->gpus[k]);

        if (gpus[s->gpus[k]].node != gpus[s->gpus[i]].node || strcmp(slot->gres, what) != 0)
            continue;
        if (k < i)
            return 0;    // counted there
        sum += share_of(x, m, slot);
    }
    return sum;
}

/* "gres:shard:1" of the node of the i-th GPU; in the order of its slots. */
static const char *node_gres(struct slurm *x, const struct managed *m, const struct gpu_set *s,
                             int i)
{
    const struct gpu *gpus = x->setup.state->gpus;
    const struct node *node = &x->setup.state->nodes[gpus[s->gpus[i]].node];
    const char *text = "";

    for (int g = node->first_gpu; g < node->first_gpu + node->n_gpus; g++)
        for (int k = 0; k < s->n_gpus; k++) {
            const int sum = s->gpus[k] == g ? sum_of(x, m, s, k) : 0;

            if (sum > 0)
                text = arena_printf(&x->scratch, "%s%sgres:%s:%d", text, *text ? "," : "",
                                    slurm_slot_of(x, g)->gres, sum);
        }
    return text;
}

static bool is_typed(const char *gres)
{
    for (struct slice item; slice_next(&gres, ',', &item);)
        if (type_of(item).len)
            return true;
    return false;
}

static const char *common_gres(struct slurm *x, const struct managed *m, const struct gpu_set *s,
                               struct err *e)
{
    const char *first = NULL;

    for (int i = 0; i < s->n_gpus; i++) {
        if (!slurm_slot_of(x, s->gpus[i])) {
            err_fill(e, ENODEV, "GPU %d of node %s is not in Slurm", s->gpus[i],
                     node_of(x, s->gpus[i]));
            return NULL;
        }
    }
    for (int i = 0; i < s->n_gpus; i++) {
        const char *gres = is_first(x, s, i) ? node_gres(x, m, s, i) : first;

        first = first ? first : gres;
        if (strcmp(gres, first) != 0) {
            err_fill(e, ENODEV,
                     "node %s would give %s and node %s %s; Slurm gives a job the same "
                     "of each of its nodes",
                     node_of(x, s->gpus[0]), first, node_of(x, s->gpus[i]), gres);
            return NULL;
        }
    }
    assert(first);    // nobody is sent nowhere
    if (strstr(first, "gres:gpu") && strstr(first, "gres:shard")) {
        err_fill(e, ENODEV, "%s: Slurm does not mix whole GPUs and shards in a job", first);
        return NULL;
    }
    return first;
}

static const char *gres_of(const struct managed *m)
{
    return m->gres ? m->gres : m->pin_gres ? m->pin_gres : "";
}

/* Slurm 22.05 adds a gres type that is asked for later to the first one, and gives both. */
bool place_needs_new(struct slurm *x, const struct managed *m, const char *gres)
{
    const char *had = gres_of(m);

    return !x->can_move_typed && *had && (is_typed(had) || is_typed(gres)) &&
           !gres_is_same(had, gres);
}

bool place_is_bound(struct slurm *x, const struct managed *m)
{
    for (int i = 0; i < m->at.n_gpus && !x->can_move_typed; i++) {
        const struct slurm_slot *slot = slurm_slot_of(x, m->at.gpus[i]);

        if (slot && gres_names(gres_of(m), slot))
            return true;
    }
    return false;
}

const char *place_gres(struct slurm *x, const struct managed *m, const struct gpu_set *s,
                       struct err *e)
{
    const char *gres = common_gres(x, m, s, e);

    if (gres && managed_is_users(x, m) && place_needs_new(x, m, gres)) {
        err_fill(e, ENODEV,
                 "Slurm %s does not let a job that asked for %s ask for %s; it needs 23.02.6",
                 x->version, gres_of(m), gres);
        return NULL;
    }
    return gres;
}

/* Could it be on all of these, with that gres? One without types says nothing. */
bool place_has_gres(struct slurm *x, const struct gpu_set *s, const char *gres)
{
    for (int i = 0; i < s->n_gpus && is_typed(gres); i++) {
        const struct slurm_slot *slot = slurm_slot_of(x, s->gpus[i]);

        if (slot && slot->exact == SLURM_EXACT && type_of(slice_of(slot->gres)).len &&
            !gres_names(gres, slot))
            return false;
    }
    return true;
}

/* Its last digits are of the time of its submission: the store may give its number out again. */
const char *place_token(struct slurm *x, int job)
{
    const double submit_s = x->setup.state->jobs[job]->spec.submit_s;
    const uint64_t mark = (uint64_t)(int64_t)floor(submit_s) * 0x9e3779b97f4a7c15u;

    return arena_printf(&x->scratch, "%s-%d-%04x", x->setup.site, job, (unsigned)(mark >> 48));
}

const char *place_note(struct slurm *x, const struct managed *m, const struct gpu_set *s,
                       int asked_run)
{
    struct arena *a = &x->scratch;
    const char *at = "";

    for (int i = 0; i < s->n_gpus; i++)
        at = arena_printf(a, "%s%s%s/%d", at, i ? "," : "", node_of(x, s->gpus[i]),
                          x->setup.state->gpus[s->gpus[i]].slot);
    at = arena_printf(a, "gogh1 token=%s at=%s limit=0", place_token(x, m->job), at);
    if (m->gate_request)
        at = arena_printf(a, "%s%s", at, m->gate_request);
    if (m->n_failures > 0)
        at = arena_printf(a, "%s failures=%d", at, m->n_failures);
    return asked_run < 0 ? at : arena_printf(a, "%s asked=%d", at, asked_run);
}

/* ---- where a run is ---- */

/* As the note says, if that is where it runs. */
static bool find_by_note(struct slurm *x, const struct slurm_job *j, struct gpu_set *out)
{
    struct slurm_note note;
    const char *at;
    bool is_good = true;

    slurm_note_read(&x->scratch, j->comment, j->admin, &note);
    at = note.at;
    for (struct slice one; is_good && slice_next(&at, ',', &one);) {
        const char *bar = memrchr(one.at, '/', one.len);
        const size_t len = bar ? (size_t)(bar - one.at) : 0;
        const int node = place_node(x, (struct slice){ one.at, len });
        long slot = -1;

        is_good = bar && node >= 0 &&
                  text_to_long((struct slice){ bar + 1, one.len - len - 1 }, 0,
                               x->setup.state->nodes[node].n_gpus - 1, &slot) == 0;
        if (is_good)
            gpu_set_add(out, x->setup.state->nodes[node].first_gpu + (int)slot);
    }
    return is_good && place_is_on(x, out, j->nodes) && place_has_gres(x, out, j->gres);
}

/* One GPU on each node, or a gres type that names it. */
static bool find_by_name(struct slurm *x, const struct slurm_job *j, struct gpu_set *out)
{
    const char *nodes = j->nodes;

    if (!*j->gres)
        return false;
    for (struct slice name; slice_next(&nodes, ',', &name);) {
        const int node = place_node(x, name), before = out->n_gpus;
        const struct node *n = node < 0 ? NULL : &x->setup.state->nodes[node];

        for (int g = 0; n && g < n->n_gpus; g++) {
            const struct slurm_slot *slot = slurm_slot_of(x, n->first_gpu + g);

            if (slot && (n->n_gpus == 1 || gres_names(j->gres, slot)))
                gpu_set_add(out, n->first_gpu + g);
        }
        if (out->n_gpus == before)
            return false;
    }
    return out->n_gpus > 0;
}

static bool find_by_devices(struct slurm *x, struct managed *m, struct gpu_set *out)
{
    if (m->lookup == LOOKUP_DONE && m->lookup_run == m->last.run) {
        gpu_set_copy(out, m->lookup_gpus.gpus, m->lookup_gpus.n_gpus);
        return place_is_on(x, out, m->now->nodes);
    }
    if (m->lookup == LOOKUP_ASKED && m->lookup_run == m->last.run)
        return false;
    gpu_set_clear(&m->lookup_gpus);
    m->lookup = LOOKUP_ASKED;    // see ask_places
    m->lookup_run = m->last.run;
    return false;
}

bool place_find(struct slurm *x, struct managed *m, struct gpu_set *out)
{
    if (find_by_note(x, m->now, out))
        return true;
    gpu_set_clear(out);
    if (find_by_name(x, m->now, out))
        return true;
    gpu_set_clear(out);
    if (find_by_devices(x, m, out))
        return true;
    gpu_set_clear(out);
    return false;
}

/* The first GPU of the node that it was on, where nobody knows better. */
bool place_guess(struct slurm *x, const char *nodes, struct gpu_set *out)
{
    const int node = strchr(nodes, ',') ? -1 : place_node(x, slice_of(nodes));

    if (node < 0 || x->setup.state->nodes[node].n_gpus == 0)
        return false;
    gpu_set_copy(out, &x->setup.state->nodes[node].first_gpu, 1);
    return true;
}

void place_on_device(struct slurm *x, const struct wire_message *line)
{
    const char *number = wire_get(line, "id"), *node = wire_get(line, "node");
    const char *list = wire_get(line, "index");
    struct managed *m = NULL;

    for (int i = 0; i < x->n_active && number && !m; i++)
        if (x->active[i]->lookup == LOOKUP_ASKED && strcmp(x->active[i]->number, number) == 0)
            m = x->active[i];
    if (!m || !node || !list)
        return;
    for (struct slice one; slice_next(&list, ',', &one);) {
        long slot;
        const int gpu = text_to_long(one, 0, INT_MAX, &slot) < 0
                            ? -1
                            : state_find_gpu(x->setup.state, node, (int)slot);
        if (gpu >= 0)
            gpu_set_add(&m->lookup_gpus, gpu);
    }
}
