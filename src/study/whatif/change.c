#include "study/whatif/change.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/text.h"
#include "catalog/catalog.h"
#include "catalog/cluster/cluster.h"

#define GPUS_MAX 100000     // that are added at once: more is a slip
#define SIZE_MAX_GPUS 64    // of a node
#define ADDED "added-"      // and a number: a node that is added

/* ---- words ---- */

static bool parse_count(struct slice s, int most, int *out)
{
    double v;

    if (text_to_double(s, &v) < 0 || v < 1 || v > most || v != floor(v))
        return false;
    *out = (int)v;
    return true;
}

int change_parse_removed(struct arena *a, const char *text, struct fleet_change *out, struct err *e)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);

    *out = (struct fleet_change){ .type = arena_strndup(a, text, len) };
    if (len == 0 || (colon != NULL && !parse_count(slice_of(colon + 1), GPUS_MAX, &out->count)))
        return err_set(e, EINVAL, "--remove %s: want TYPE or TYPE:COUNT, as k80 or k80:4", text);
    return 0;
}

int change_parse_added(struct arena *a, const char *text, struct fleet_change *out, struct err *e)
{
    const char *by = strchr(text, 'x'), *at = strrchr(text, '@');
    size_t len = by == NULL ? 0 : at != NULL && at > by ? (size_t)(at - by - 1) : strlen(by + 1);

    *out = (struct fleet_change){ .is_added = true };
    if (len == 0 ||
        !parse_count((struct slice){ text, (size_t)(by - text) }, GPUS_MAX, &out->count) ||
        (at != NULL && !parse_count(slice_of(at + 1), SIZE_MAX_GPUS, &out->node_size)))
        return err_set(e, EINVAL,
                       "--add %s: want COUNTxTYPE, as 8xl40s, or with the size of its nodes, up to "
                       "%d GPUs: 8xl40s@4",
                       text, SIZE_MAX_GPUS);
    out->type = arena_strndup(a, by + 1, len);
    return 0;
}

int change_parse_watts(const char *text, double *out, struct err *e)
{
    static const struct {
        const char *unit;
        double w;
    } units[] = { { "kW", 1e3 }, { "W", 1 }, { "", 1 } };
    const size_t len = strspn(text, "0123456789.eE+-");

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(text + len, units[i].unit) == 0 &&
            text_to_double((struct slice){ text, len }, out) == 0 && *out >= 0 && *out <= 1e9) {
            *out *= units[i].w;
            return 0;
        }
    }
    return err_set(e, EINVAL, "%s: want watts, as 20kW, 500W or 500", text);
}

/* ---- nodes ---- */

/* A cluster in the making: nodes with room for what they had. */
struct fleet {
    struct arena *arena;
    struct cluster *is;
    int **types;    // (n_nodes) of the nodes' GPUs
    int cap_nodes, cap_types;
    int node_size;      // the site's largest
    int last_number;    // of a node that was added
};

static bool is_same_type(const char *one, const char *other)
{
    const struct gpu_type *builtin = gpu_type_builtin(one);

    return text_alike(one, other) || (builtin != NULL && builtin == gpu_type_builtin(other));
}

static int find_type(const struct cluster *cl, const char *name)
{
    for (int t = 0; t < cl->n_types; t++)
        if (text_alike(cl->types[t].name, name))
            return t;
    for (int t = 0; t < cl->n_types; t++)
        if (is_same_type(cl->types[t].name, name))
            return t;
    return -1;
}

int change_count(const struct cluster *cl, int type)
{
    int n = 0;

    for (int i = 0; i < cl->n_nodes; i++)
        for (int g = 0; g < cl->nodes[i].n_gpus; g++)
            n += cl->nodes[i].types[g] == type;
    return n;
}

/* "k80 (12), v100 (4)" */
static const char *types_text(struct arena *a, const struct cluster *cl)
{
    const char *text = "none";

    for (int t = 0, n = 0; t < cl->n_types; t++) {
        int count = change_count(cl, t);

        if (count > 0)
            text = arena_printf(a, "%s%s%s (%d)", n > 0 ? text : "", n > 0 ? ", " : "",
                                cl->types[t].name, count);
        n += count > 0;
    }
    return text;
}

/* 'most' GPUs of the type from a node; gives how many it had of them. */
static int take_from(struct fleet *f, int node, int type, int most)
{
    struct cluster_node *n = &f->is->nodes[node];
    int n_left = 0, n_taken = 0;

    for (int g = n->n_gpus - 1; g >= 0; g--)
        if (n->types[g] == type && n_taken < most) {
            f->types[node][g] = -1;
            n_taken++;
        }
    for (int g = 0; g < n->n_gpus; g++)
        if (f->types[node][g] >= 0)
            f->types[node][n_left++] = f->types[node][g];
    n->n_gpus = n_left;
    return n_taken;
}

static int remove_gpus(struct fleet *f, const struct fleet_change *c, struct err *e)
{
    int type = find_type(f->is, c->type), there = type < 0 ? 0 : change_count(f->is, type);
    int left = c->count > 0 ? c->count : there;

    if (there == 0)
        return err_set(e, EINVAL, "no GPU of type '%s' to remove; there are %s", c->type,
                       types_text(f->arena, f->is));
    if (left > there)
        return err_set(e, EINVAL, "%d GPUs of type %s cannot be removed: there are %d", left,
                       f->is->types[type].name, there);
    for (int i = f->is->n_nodes - 1; i >= 0 && left > 0; i--)
        left -= take_from(f, i, type, left);
    return 0;
}

static int largest_node(const struct cluster *cl)
{
    int most = 1;

    for (int i = 0; i < cl->n_nodes; i++)
        most = cl->nodes[i].n_gpus > most ? cl->nodes[i].n_gpus : most;
    return most;
}

/* The greatest number of nodes that are called as those that are added; 0: there is none. */
static int last_number(const struct cluster *cl)
{
    int last = 0, n;

    for (int i = 0; i < cl->n_nodes; i++) {
        const char *name = cl->nodes[i].name;

        if (strncmp(name, ADDED, strlen(ADDED)) == 0 &&
            parse_count(slice_of(name + strlen(ADDED)), INT_MAX / 2, &n))
            last = n > last ? n : last;
    }
    return last;
}

static void add_node(struct fleet *f, int type, int size)
{
    struct cluster *cl = f->is;
    int *types = ARENA_ARRAY(f->arena, int, (size_t)size);

    for (int g = 0; g < size; g++)
        types[g] = type;
    int cap = f->cap_nodes;    // the two grow alike
    ARENA_GROW(f->arena, f->types, cl->n_nodes, cap);
    ARENA_GROW(f->arena, cl->nodes, cl->n_nodes, f->cap_nodes);
    f->types[cl->n_nodes] = types;
    cl->nodes[cl->n_nodes++] = (struct cluster_node){
        .name = arena_printf(f->arena, ADDED "%d", ++f->last_number), .n_gpus = size, .types = types
    };
}

static int add_gpus(struct fleet *f, const struct fleet_change *c, struct err *e)
{
    struct cluster *cl = f->is;
    int type = find_type(cl, c->type), size = c->node_size > 0 ? c->node_size : f->node_size;
    const struct gpu_type *builtin = gpu_type_builtin(c->type);

    if (type < 0 && builtin == NULL)
        return err_set(e, EINVAL,
                       "GPU type '%s' is neither the site's nor built in ('gogh catalog gpus')",
                       c->type);
    if (type < 0) {
        if (cl->n_types == CATALOG_TYPES_MAX)
            return err_set(e, EINVAL, "more than %d GPU types", CATALOG_TYPES_MAX);
        int cap = f->cap_types;
        ARENA_GROW(f->arena, cl->is_described, cl->n_types, cap);
        ARENA_GROW(f->arena, cl->types, cl->n_types, f->cap_types);
        type = cl->n_types++;
        cl->is_described[type] = false;
        cl->types[type] = *builtin;
        cl->types[type].name = c->type;
    }
    for (int left = c->count; left > 0; left -= size)
        add_node(f, type, left < size ? left : size);
    return 0;
}

/* ---- clusters ---- */

static void begin(struct fleet *f, const struct cluster *from)
{
    struct cluster *cl = f->is;
    const size_t n_nodes = (size_t)from->n_nodes, n_types = (size_t)from->n_types;

    *cl = *from;
    f->cap_nodes = from->n_nodes;
    f->cap_types = from->n_types;
    f->node_size = largest_node(from);
    f->last_number = last_number(from);
    cl->nodes = ARENA_ARRAY(f->arena, struct cluster_node, n_nodes);
    f->types = ARENA_ARRAY(f->arena, int *, n_nodes);
    cl->types = ARENA_ARRAY(f->arena, struct gpu_type, n_types);
    cl->is_described = ARENA_ARRAY(f->arena, bool, n_types);
    memcpy(cl->types, from->types, n_types * sizeof *cl->types);
    memcpy(cl->is_described, from->is_described, n_types * sizeof *cl->is_described);
    for (int i = 0; i < from->n_nodes; i++) {
        const struct cluster_node *n = &from->nodes[i];

        f->types[i] = ARENA_ARRAY(f->arena, int, (size_t)n->n_gpus);
        memcpy(f->types[i], n->types, (size_t)n->n_gpus * sizeof *n->types);
        cl->nodes[i] = *n;
        cl->nodes[i].types = f->types[i];
    }
}

/* Nodes without GPUs, and types without nodes, are let go of. */
static void tidy(struct fleet *f)
{
    struct cluster *cl = f->is;
    int *now = ARENA_ARRAY(f->arena, int, (size_t)cl->n_types), n_types = 0, n_nodes = 0;

    for (int t = 0; t < cl->n_types; t++) {
        now[t] = -1;
        if (change_count(cl, t) == 0)
            continue;
        cl->types[n_types] = cl->types[t];
        cl->is_described[n_types] = cl->is_described[t];
        now[t] = n_types++;
    }
    cl->n_gpus = 0;
    for (int i = 0; i < cl->n_nodes; i++) {
        for (int g = 0; g < cl->nodes[i].n_gpus; g++)
            f->types[i][g] = now[f->types[i][g]];
        cl->n_gpus += cl->nodes[i].n_gpus;
        if (cl->nodes[i].n_gpus > 0)
            cl->nodes[n_nodes++] = cl->nodes[i];
    }
    cl->n_types = n_types;
    cl->n_nodes = n_nodes;
}

int change_apply(struct arena *a, const struct cluster *from, const struct fleet_change *changes,
                 int n, struct cluster *out, struct err *e)
{
    struct fleet f = { .arena = a, .is = out };
    int rc = 0;

    begin(&f, from);
    for (int i = 0; i < n && rc == 0; i++)
        rc = changes[i].is_added ? add_gpus(&f, &changes[i], e) : remove_gpus(&f, &changes[i], e);
    if (rc < 0)
        return rc;
    tidy(&f);
    return out->n_gpus > 0 ? 0 : err_set(e, EINVAL, "no GPU would be left: keep some, or add some");
}

void change_unite(struct arena *a, const struct cluster *const *all, int n, struct cluster *out)
{
    struct fleet f = { .arena = a, .is = out };

    begin(&f, all[0]);
    for (int i = 1; i < n; i++)
        for (int t = 0; t < all[i]->n_types; t++) {
            if (find_type(out, all[i]->types[t].name) >= 0)
                continue;
            int cap = f.cap_types;
            ARENA_GROW(a, out->is_described, out->n_types, cap);
            ARENA_GROW(a, out->types, out->n_types, f.cap_types);
            out->is_described[out->n_types] = false;
            out->types[out->n_types++] = all[i]->types[t];
        }
}
