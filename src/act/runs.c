#include "act/runs.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "catalog/cluster/job.h"

/* ---- sets of GPUs ---- */

void gpu_set_copy(struct gpu_set *s, const int *gpus, int n_gpus)
{
    int *copy = heap_array((size_t)n_gpus, sizeof *copy);

    if (n_gpus)
        memcpy(copy, gpus, (size_t)n_gpus * sizeof *copy);
    free(s->gpus);
    *s = (struct gpu_set){ .gpus = copy, .n_gpus = n_gpus };
}

void gpu_set_clear(struct gpu_set *s)
{
    free(s->gpus);
    *s = (struct gpu_set){ 0 };
}

void gpu_set_take(struct gpu_set *to, struct gpu_set *from)
{
    free(to->gpus);
    *to = *from;
    *from = (struct gpu_set){ 0 };
}

bool gpu_set_has(const struct gpu_set *s, int gpu)
{
    return gpus_have(s->gpus, s->n_gpus, gpu);
}

bool gpu_set_is(const struct gpu_set *s, const int *gpus, int n_gpus)
{
    return gpus_same(s->gpus, s->n_gpus, gpus, n_gpus);
}

/* ---- notices ---- */

static void on_timer(void *self)
{
    struct notices *q = self;

    if (q->on_news)
        q->on_news(q->to);
}

void notices_init(struct notices *q, struct loop *l, const char *name)
{
    *q = (struct notices){ 0 };
    loop_timer_init(&q->timer, l, name, on_timer, q);
}

void notices_push(struct notices *q, const struct run_notice *n)
{
    struct gpu_set at = { 0 };

    GROW(q->list, q->n, q->cap);
    gpu_set_copy(&at, n->gpus, n->n_gpus);
    q->list[q->n] = *n;
    q->list[q->n].gpus = at.gpus;
    q->list[q->n].reason = heap_text(n->reason);
    q->n++;
    notices_tell(q);
}

void notices_tell(struct notices *q)
{
    loop_timer_set(&q->timer, 0);
}

void notices_listen(struct notices *q, void (*f)(void *to), void *to)
{
    q->on_news = f;
    q->to = to;
    if (notices_first(q))
        notices_tell(q);
}

const struct run_notice *notices_first(const struct notices *q)
{
    return q->first < q->n ? &q->list[q->first] : NULL;
}

void notices_drop(struct notices *q)
{
    struct run_notice *n = &q->list[q->first++];

    free((int *)n->gpus);
    free((char *)n->reason);
    if (q->first == q->n)
        q->first = q->n = 0;
}

void notices_release(struct notices *q)
{
    loop_timer_clear(&q->timer);
    while (notices_first(q))
        notices_drop(q);
    free(q->list);
}
