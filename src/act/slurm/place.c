/* Places: GPUs of the state, and what Slurm calls them. */
#include "act/slurm/inner.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "act/driver/wire.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/text/text.h"
#include "catalog/cluster/state.h"

/* ---- spots ---- */

void spot_set(struct spot *s, const int *gpus, int n_gpus, int limit_w)
{
    int *copy = heap_array((size_t)n_gpus, sizeof *copy);

    if (n_gpus)
        memcpy(copy, gpus, (size_t)n_gpus * sizeof *copy);
    free(s->gpus);
    *s = (struct spot){ .gpus = copy, .n_gpus = n_gpus, .limit_w = limit_w };
}

void spot_move(struct spot *to, struct spot *from)
{
    free(to->gpus);
    *to = *from;
    *from = (struct spot){ 0 };
}

bool spot_has(const struct spot *s, int gpu)
{
    for (int i = 0; i < s->n_gpus; i++)
        if (s->gpus[i] == gpu)
            return true;
    return false;
}

bool spot_is(const struct spot *s, const int *gpus, int n_gpus)
{
    if (s->n_gpus != n_gpus)
        return false;
    for (int i = 0; i < n_gpus; i++)
        if (!spot_has(s, gpus[i]))
            return false;
    return true;
}

static void spot_add(struct spot *s, int gpu)
{
    int *more;

    if (spot_has(s, gpu))
        return;
    more = heap_array((size_t)s->n_gpus + 1, sizeof *more);
    if (s->n_gpus)
        memcpy(more, s->gpus, (size_t)s->n_gpus * sizeof *more);
    more[s->n_gpus] = gpu;
    free(s->gpus);
    s->gpus = more;
    s->n_gpus++;
}

static void spot_clear(struct spot *s)
{
    free(s->gpus);
    *s = (struct spot){ 0 };
}

/* ---- nodes ---- */

static const char *node_of(const struct slurm *x, int gpu)
{
    return x->setup.state->nodes[x->setup.state->gpus[gpu].node].name;
}

/* Is the i-th GPU of 's' the first of its node there? */
static bool is_first(const struct slurm *x, const struct spot *s, int i)
{
    const struct gpu *gpus = x->setup.state->gpus;

    for (int k = 0; k < i; k++)
        if (gpus[s->gpus[k]].node == gpus[s->gpus[i]].node)
            return false;
    return true;
}

const char *place_nodes(struct slurm *x, const struct spot *s, int *n_nodes)
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

struct slice next_name(const char **at)
{
    const struct slice name = { *at, strcspn(*at, ",") };

    *at += name.len;
    *at += **at == ',';
    return name;
}

int place_node(const struct slurm *x, struct slice name)
{
    char copy[300];

    if (name.len >= sizeof copy)
        return -1;
    snprintf(copy, sizeof copy, "%.*s", (int)name.len, name.at);
    return state_find_node(x->setup.state, copy);
}

bool place_is_on(struct slurm *x, const struct spot *s, const char *nodes)
{
    int n_nodes = 0, n_found = 0;

    for (int i = 0; i < s->n_gpus; i++)
        n_nodes += is_first(x, s, i);
    for (struct slice name = next_name(&nodes); name.len; name = next_name(&nodes)) {
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
    for (struct slice item = next_name(&gres); item.len; item = next_name(&gres)) {
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
    for (struct slice item = next_name(&of); item.len; item = next_name(&of)) {
        const char *at = in;
        bool is_there = false;

        for (struct slice o = next_name(&at); o.len && !is_there; o = next_name(&at))
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
static int share_of(const struct slurm *x, const struct ward *w, const struct slurm_slot *slot)
{
    const struct job_spec *spec = &x->setup.state->jobs[w->job]->spec;
    const int share = slot->n_shards / x->setup.theta;

    if (slot->n_shards == 0)
        return 1;
    if (spec->is_exclusive || spec->max_gpus > 1)
        return slot->n_shards;
    return share > 1 ? share : 1;
}

/* How much of what the i-th GPU's slot is called is wanted of its node. */
static int sum_of(struct slurm *x, const struct ward *w, const struct spot *s, int i)
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
        sum += share_of(x, w, slot);
    }
    return sum;
}

/* "gres:shard:1" of the node of the i-th GPU; in the order of its slots. */
static const char *node_gres(struct slurm *x, const struct ward *w, const struct spot *s, int i)
{
    const struct gpu *gpus = x->setup.state->gpus;
    const struct node *node = &x->setup.state->nodes[gpus[s->gpus[i]].node];
    const char *text = "";

    for (int g = node->first_gpu; g < node->first_gpu + node->n_gpus; g++)
        for (int k = 0; k < s->n_gpus; k++) {
            const int sum = s->gpus[k] == g ? sum_of(x, w, s, k) : 0;

            if (sum > 0)
                text = arena_printf(&x->scratch, "%s%sgres:%s:%d", text, *text ? "," : "",
                                    slurm_slot_of(x, g)->gres, sum);
        }
    return text;
}

static bool is_typed(const char *gres)
{
    for (struct slice item = next_name(&gres); item.len; item = next_name(&gres))
        if (type_of(item).len)
            return true;
    return false;
}

const char *place_gres(struct slurm *x, const struct ward *w, const struct spot *s, struct err *e)
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
        const char *gres = is_first(x, s, i) ? node_gres(x, w, s, i) : first;

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

static const char *gres_of(const struct ward *w)
{
    return w->gres ? w->gres : w->pin_gres ? w->pin_gres : "";
}

/* Slurm 22.05 adds a gres type that is asked for later to the first one, and gives both. */
bool place_needs_new(struct slurm *x, const struct ward *w, const char *gres)
{
    const char *had = gres_of(w);

    return !x->can_move_typed && *had && (is_typed(had) || is_typed(gres)) &&
           !gres_is_same(had, gres);
}

bool place_is_bound(struct slurm *x, const struct ward *w)
{
    for (int i = 0; i < w->at.n_gpus && !x->can_move_typed; i++) {
        const struct slurm_slot *slot = slurm_slot_of(x, w->at.gpus[i]);

        if (slot && gres_names(gres_of(w), slot))
            return true;
    }
    return false;
}

int place_check(struct slurm *x, const struct ward *w, const struct spot *s, struct err *e)
{
    const char *gres;

    arena_reset(&x->scratch);
    gres = place_gres(x, w, s, e);
    if (!gres)
        return -ENODEV;
    if (ward_is_users(x, w) && place_needs_new(x, w, gres))
        return err_set(e, ENODEV,
                       "Slurm %s does not let a job that asked for %s ask for %s; it needs 23.02.6",
                       x->version, gres_of(w), gres);
    return 0;
}

/* Could it be on all of these, with that gres? One without types says nothing. */
bool place_has_gres(struct slurm *x, const struct spot *s, const char *gres)
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

    return arena_printf(&x->scratch, "%s-%d-%04x", x->site, job, (unsigned)(mark >> 48));
}

const char *place_note(struct slurm *x, const struct ward *w, const struct spot *s, int asked_run)
{
    struct arena *a = &x->scratch;
    const char *at = "";

    for (int i = 0; i < s->n_gpus; i++)
        at = arena_printf(a, "%s%s%s/%d", at, i ? "," : "", node_of(x, s->gpus[i]),
                          x->setup.state->gpus[s->gpus[i]].slot);
    at = arena_printf(a, "gogh1 token=%s at=%s limit=0", place_token(x, w->job), at);
    if (w->request)
        at = arena_printf(a, "%s%s", at, w->request);
    if (w->n_failures > 0)
        at = arena_printf(a, "%s failures=%d", at, w->n_failures);
    return asked_run < 0 ? at : arena_printf(a, "%s asked=%d", at, asked_run);
}

/* ---- where a run is ---- */

/* As the note says, if that is where it runs. */
static bool find_by_note(struct slurm *x, const struct slurm_job *j, struct spot *out)
{
    struct slurm_note note;
    const char *at;
    bool is_good = true;

    slurm_note_read(&x->scratch, j->comment, j->admin, &note);
    at = note.at;
    for (struct slice one = next_name(&at); one.len && is_good; one = next_name(&at)) {
        const char *bar = memrchr(one.at, '/', one.len);
        const size_t len = bar ? (size_t)(bar - one.at) : 0;
        const int node = place_node(x, (struct slice){ one.at, len });
        long slot = -1;

        is_good = bar && node >= 0 &&
                  text_to_long((struct slice){ bar + 1, one.len - len - 1 }, 0,
                               x->setup.state->nodes[node].n_gpus - 1, &slot) == 0;
        if (is_good)
            spot_add(out, x->setup.state->nodes[node].first_gpu + (int)slot);
    }
    return is_good && place_is_on(x, out, j->nodes) && place_has_gres(x, out, j->gres);
}

/* One GPU on each node, or a gres type that names it. */
static bool find_by_name(struct slurm *x, const struct slurm_job *j, struct spot *out)
{
    const char *nodes = j->nodes;

    if (!*j->gres)
        return false;
    for (struct slice name = next_name(&nodes); name.len; name = next_name(&nodes)) {
        const int node = place_node(x, name), before = out->n_gpus;
        const struct node *n = node < 0 ? NULL : &x->setup.state->nodes[node];

        for (int g = 0; n && g < n->n_gpus; g++) {
            const struct slurm_slot *slot = slurm_slot_of(x, n->first_gpu + g);

            if (slot && (n->n_gpus == 1 || gres_names(j->gres, slot)))
                spot_add(out, n->first_gpu + g);
        }
        if (out->n_gpus == before)
            return false;
    }
    return out->n_gpus > 0;
}

static bool find_by_devices(struct slurm *x, struct ward *w, struct spot *out)
{
    if (w->found == FOUND_YES && w->found_run == w->run) {
        spot_set(out, w->spare.gpus, w->spare.n_gpus, 0);
        return place_is_on(x, out, w->now->nodes);
    }
    if (w->found == FOUND_ASKED && w->found_run == w->run)
        return false;
    spot_clear(&w->spare);
    w->found = FOUND_ASKED;    // see ask_places
    w->found_run = w->run;
    return false;
}

bool place_find(struct slurm *x, struct ward *w, struct spot *out)
{
    if (find_by_note(x, w->now, out))
        return true;
    spot_clear(out);
    if (find_by_name(x, w->now, out))
        return true;
    spot_clear(out);
    if (find_by_devices(x, w, out))
        return true;
    spot_clear(out);
    return false;
}

/* The first GPU of the node that it was on, where nobody knows better. */
bool place_guess(struct slurm *x, const char *nodes, struct spot *out)
{
    const struct slice name = next_name(&nodes);
    const int node = name.len && !*nodes ? place_node(x, name) : -1;

    if (node < 0 || x->setup.state->nodes[node].n_gpus == 0)
        return false;
    spot_set(out, &x->setup.state->nodes[node].first_gpu, 1, 0);
    return true;
}

void place_heard(struct slurm *x, const struct wire_message *m)
{
    const char *number = wire_get(m, "id"), *node = wire_get(m, "node");
    const char *list = wire_get(m, "index");
    struct ward *w = NULL;

    for (int i = 0; i < x->n_active && number && !w; i++)
        if (x->active[i]->found == FOUND_ASKED && strcmp(x->active[i]->number, number) == 0)
            w = x->active[i];
    if (!w || !node || !list)
        return;
    for (struct slice one = next_name(&list); one.len; one = next_name(&list)) {
        long slot;
        const int gpu = text_to_long(one, 0, INT_MAX, &slot) < 0
                            ? -1
                            : state_find_gpu(x->setup.state, node, (int)slot);
        if (gpu >= 0)
            spot_add(&w->spare, gpu);
    }
}
