/* The GPUs of a node, as its gres line has them. */
#include "act/slurm/view.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "act/driver/hosts.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/text/text.h"

#define SLOTS_MAX 64     // of a node: the largest machines have 16
#define ITEMS_MAX 128    // of a gres line
#define NUMBER_MAX 15    // "v100_15" is the sixteenth v100; "rtx_2080" is a type

/* "gpu:v100:2": what, of which type (len 0: none), how many. */
struct item {
    struct slice what, type;
    long n;
};

struct line {
    struct item items[ITEMS_MAX];
    int n;
};

/* ---- reading ---- */

static struct slice part(struct slice *rest)
{
    const char *colon = memchr(rest->at, ':', rest->len);
    struct slice first = *rest;

    if (!colon) {
        *rest = (struct slice){ rest->at + rest->len, 0 };
        return first;
    }
    first.len = (size_t)(colon - rest->at);
    *rest = (struct slice){ colon + 1, rest->len - first.len - 1 };
    return first;
}

/* "gpu", "gpu:2", "gpu:v100", "gpu:v100:2"; "gpu:v100:no_consume:2" of old. */
static int item_read(struct slice text, struct item *out, struct err *e)
{
    const struct slice whole = text;
    const char *paren = memchr(text.at, '(', text.len);
    bool has_count = false;

    if (paren)
        text.len = (size_t)(paren - text.at);
    *out = (struct item){ .what = part(&text), .n = 1 };
    while (text.len > 0) {
        const struct slice p = part(&text);

        if (has_count)
            return err_set(e, EINVAL, "gres '%.*s': something follows the count", (int)whole.len,
                           whole.at);
        if (text_to_long(p, 0, INT_MAX, &out->n) == 0)
            has_count = true;
        else if (out->type.len == 0)
            out->type = p;
        else if (!slice_is(p, "no_consume"))
            return err_set(e, EINVAL, "gres '%.*s': want NAME:TYPE:COUNT", (int)whole.len,
                           whole.at);
    }
    return 0;
}

static int line_read(const char *at, struct line *out, struct err *e)
{
    out->n = 0;
    if (strcmp(at, "(null)") == 0 || strcmp(at, "N/A") == 0)
        return 0;
    while (*at) {
        const size_t len = hosts_item_len(at, '(', ')');    // "(S:0,1)"
        int rc;

        if (out->n == ITEMS_MAX)
            return err_set(e, EINVAL, "gres: more than %d things on one node", ITEMS_MAX);
        rc = item_read((struct slice){ at, len }, &out->items[out->n], e);
        if (rc < 0)
            return rc;
        out->n += len > 0;
        at += len;
        at += *at == ',';
    }
    return 0;
}

/* ---- slots ---- */

static bool same(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* "v100" of "v100_1"; what is not numbered like a device stays as it is. */
static struct slice stem(struct slice type)
{
    size_t len = type.len;
    long n;

    while (len > 0 && type.at[len - 1] >= '0' && type.at[len - 1] <= '9')
        len--;
    if (len < 2 || len == type.len || type.at[len - 1] != '_' ||
        text_to_long((struct slice){ type.at + len, type.len - len }, 0, NUMBER_MAX, &n) < 0)
        return type;
    return (struct slice){ type.at, len - 1 };
}

/* Of 'what' and, unless that is NULL, of exactly this type. */
static long count_of(const struct line *l, const char *what, const struct slice *type)
{
    long n = 0;

    for (int i = 0; i < l->n; i++)
        if (slice_is(l->items[i].what, what) && (!type || same(l->items[i].type, *type)))
            n += l->items[i].n;
    return n;
}

static const char *join(struct arena *a, const char *what, struct slice type)
{
    return type.len ? arena_printf(a, "%s:%.*s", what, (int)type.len, type.at) : what;
}

static const char *name_of(struct arena *a, struct slice type)
{
    return type.len ? arena_strndup(a, type.at, type.len) : "gpu";
}

/* What a gres line says of who shares this GPU, and how. */
static enum sharing sharing_of(const struct line *l, const char *type, long n_shards)
{
    if (n_shards > 1)
        return SHARING_TIMESLICE;
    if (sharing_is_slice(type))
        return SHARING_MIG;
    return count_of(l, "mps", NULL) > 0 ? SHARING_MPS : SHARING_UNKNOWN;
}

/* The only one of its gres type or, 'is_alone', of its node: whatever a job asks for there is on
 * it, and it is asked for without a type, which 22.05 does not take a second time.
 */
static struct slurm_slot exact_slot(struct arena *a, const struct line *l, const struct item *g,
                                    bool is_alone)
{
    const long n_shards = count_of(l, "shard", is_alone ? NULL : &g->type);
    const char *what = n_shards > 1 ? "shard" : "gpu", *type = name_of(a, stem(g->type));

    return (struct slurm_slot){ .type = type,
                                .gres = is_alone ? what : join(a, what, g->type),
                                .n_shards = n_shards > 1 ? (int)n_shards : 0,
                                .exact = SLURM_EXACT,
                                .sharing = sharing_of(l, type, n_shards) };
}

static struct slurm_slot slot_of(struct arena *a, const struct line *l, const struct item *g,
                                 long n_gpus)
{
    const long n_alike = count_of(l, "gpu", &g->type);

    if (n_gpus == 1 || (g->type.len && n_alike == 1))
        return exact_slot(a, l, g, n_gpus == 1);
    const char *type = name_of(a, g->type);
    return (struct slurm_slot){ .type = type,
                                .gres = n_alike == n_gpus ? "gpu" : join(a, "gpu", g->type),
                                .exact = SLURM_WHOLE,
                                .sharing = sharing_of(l, type, 0) };
}

int slurm_slots_read(struct arena *a, const char *gres, const struct slurm_slot **out,
                     struct err *e)
{
    struct line l;
    struct slurm_slot *slots;
    int rc = line_read(gres, &l, e), n = 0;
    long n_gpus;

    *out = NULL;
    if (rc < 0)
        return rc;
    n_gpus = count_of(&l, "gpu", NULL);
    if (n_gpus > SLOTS_MAX)
        return err_set(e, EINVAL, "gres '%.100s': more than %d GPUs on one node", gres, SLOTS_MAX);
    slots = ARENA_ARRAY(a, struct slurm_slot, (size_t)n_gpus);
    for (int i = 0; i < l.n; i++) {
        const struct item *g = &l.items[i];

        for (long k = 0; slice_is(g->what, "gpu") && k < g->n; k++)
            slots[n++] = slot_of(a, &l, g, n_gpus);
    }
    assert(n == n_gpus);
    *out = slots;
    return n;
}
