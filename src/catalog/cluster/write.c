/* write.c - a cluster as the text that describes it. */
#include "catalog/cluster/cluster.h"

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/text/words.h"

/* " v100:4 a100:2", neighbours of one type together. */
static void put_gpus(const struct cluster *cl, const struct cluster_node *n, struct buf *out)
{
    struct arena scratch;

    arena_init(&scratch);
    for (int from = 0, to; from < n->n_gpus; from = to) {
        for (to = from + 1; to < n->n_gpus && n->types[to] == n->types[from];)
            to++;
        buf_puts(out, " ");
        words_put(out, arena_printf(&scratch, "%s:%d", cl->types[n->types[from]].name, to - from));
    }
    arena_release(&scratch);
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
        buf_printf(out, "set %s ", is.key);
        if (is.word != NULL)
            buf_puts(out, is.word);
        else
            words_put_number(out, is.value);
        buf_puts(out, "\n");
    }
}

int cluster_write(const struct cluster *cl, struct buf *out)
{
    for (int i = 0; i < cl->n_nodes; i++) {
        buf_puts(out, "node ");
        words_put(out, cl->nodes[i].name);
        put_gpus(cl, &cl->nodes[i], out);
        buf_puts(out, "\n");
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
