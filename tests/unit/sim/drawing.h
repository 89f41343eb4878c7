/* drawing.h - what traces of the small truth's jobs are drawn from: three slow GPUs and a fast one. */
#ifndef TESTS_SIM_DRAWING_H
#define TESTS_SIM_DRAWING_H

#include <string.h>

#include "base/arena.h"
#include "catalog/cluster/cluster.h"
#include "sim/trace/generate.h"
#include "unit/sim/small_truth.h"

struct drawing {
    struct small_truth small;
    struct arena arena;
    struct cluster cluster;
    struct trace_draw draw;
};

/* Lengths are those on the type 'reference'; NULL: on the usual one. */
static inline void drawing_open(struct drawing *s, const char *reference, uint64_t seed)
{
    static const char text[] = "gputype slow like=v100\ngputype fast like=v100\n"
                               "node a slow:3\nnode b fast:1\n";
    struct err e;

    small_truth_init(&s->small);
    arena_init(&s->arena);
    ck_assert_int_eq(cluster_parse(&s->arena, "c", text, strlen(text), &s->cluster, &e), 0);
    ck_assert_int_eq(
        trace_draw_init(&s->draw, &s->arena, &s->small.truth, &s->cluster, reference, seed, &e), 0);
}

static inline void drawing_close(struct drawing *s)
{
    arena_release(&s->arena);
    small_truth_release(&s->small);
}

#endif
