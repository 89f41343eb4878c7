/* write.c - a cluster as the text that describes it. */
#include "catalog/cluster/cluster.h"

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/text/words.h"

void cluster_node_put(const struct cluster *cl, const struct cluster_node *n, struct buf *out)
{
    struct arena scratch;

    arena_init(&scratch);
    words_put(out, n->name);
    for (int from = 0, to; from < n->n_gpus; from = to) {
        for (to = from + 1; to < n->n_gpus && n->types[to] == n->types[from];)
            to++;
        buf_puts(out, " ");
        words_put(out, arena_printf(&scratch, "%s:%d", cl->types[n->types[from]].name, to - from));
    }
    buf_puts(out, "\n");
    arena_release(&scratch);
}

void cluster_setting_put(const struct cluster_setting *set, struct buf *out)
{
    buf_printf(out, "%s ", set->key);
    if (set->word != NULL)
        buf_puts(out, set->word);
    else
        words_put_number(out, set->value);
    buf_puts(out, "\n");
}

static void put_settings(const struct cluster *cl, struct buf *out)
{
    struct cluster_setting is, normal;
    struct cluster_settings defaults;

    cluster_defaults(&defaults);
    for (int i = 0; cluster_setting(&cl->settings, i, &is); i++) {
        cluster_setting(&defaults, i, &normal);
        if (is.value == normal.value)
            continue;
        buf_puts(out, "set ");
        cluster_setting_put(&is, out);
    }
}

int cluster_write(const struct cluster *cl, struct buf *out)
{
    for (int i = 0; i < cl->n_nodes; i++) {
        buf_puts(out, "node ");
        cluster_node_put(cl, &cl->nodes[i], out);
    }
    for (int i = 0; i < cl->n_types; i++) {
        buf_puts(out, "gputype ");
        words_put(out, cl->types[i].name);
        gpu_type_put(&cl->types[i], out);
        buf_puts(out, "\n");
    }
    put_settings(cl, out);
    return buf_puts(out, "");
}
