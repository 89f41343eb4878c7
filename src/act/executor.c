#include "act/executor.h"

#include <errno.h>

#include "base/err.h"
#include "catalog/cluster/state.h"

int executor_give(const struct executor *x, enum order_kind order, const struct placement *p,
                  struct err *e)
{
    int rc = 0;

    switch (order) {
    case ORDER_STOP:
        rc = x->stop(x->self, p->job, e);
        break;
    case ORDER_CANCEL:
        rc = x->cancel(x->self, p->job, e);
        break;
    case ORDER_MOVE:
    case ORDER_LIMIT:
        rc = x->move(x->self, p, e);
        break;
    case ORDER_START:
        rc = x->start(x->self, p, e);
        break;
    case ORDER_NONE:
        return 0;
    }
    if (rc == 0 && x->on_order)
        x->on_order(x->order_to, order, p);
    return rc;
}

bool executor_job_is_busy(const struct executor *x, int job)
{
    return x->job_is_busy && x->job_is_busy(x->self, job);
}

bool executor_gpu_is_busy(const struct executor *x, int gpu)
{
    return x->gpu_is_busy && x->gpu_is_busy(x->self, gpu);
}

double executor_wake_s(const struct executor *x, int gpu)
{
    return x->gpu_wake_s ? x->gpu_wake_s(x->self, gpu) : 0;
}

const char *executor_address(const struct executor *x, const struct state *s, int node)
{
    if (node == x->node)
        return "127.0.0.1";
    return x->node_address ? x->node_address(x->self, node) : s->nodes[node].name;
}

bool executor_rules(const struct executor *x, struct arena *a, const int *jobs, int n_jobs,
                    struct engine_rules *out)
{
    return x->rules && x->rules(x->self, a, jobs, n_jobs, out);
}

void executor_job_is(const struct executor *x, int job, enum job_change change)
{
    if (x->job_is)
        x->job_is(x->self, job, change);
}

void executor_committed(const struct executor *x, bool is_on_disk)
{
    void (*f)(void *self) = is_on_disk ? x->committed : x->undone;

    if (f)
        f(x->self);
}

bool executor_next_change(const struct executor *x, struct engine_change *out)
{
    return x->next_change && x->next_change(x->self, out);
}

bool executor_find(const struct executor *x, int job, struct run_info *out)
{
    return x->find && x->find(x->self, job, out);
}

int executor_find_number(const struct executor *x, long number)
{
    return x->find_number ? x->find_number(x->self, number) : -1;
}

int executor_facts(const struct executor *x, struct engine_fact *out)
{
    return x->facts ? x->facts(x->self, out) : 0;
}

void executor_set_grace(const struct executor *x, double grace_s)
{
    if (x->set_grace)
        x->set_grace(x->self, grace_s);
}

void executor_close(const struct executor *x)
{
    if (x->close)
        x->close(x->self);
}

int order_check_job(const struct state *s, int job, struct err *e)
{
    return job < 0 || job >= s->n_jobs ? err_set(e, ENODEV, "there is no job %d", job) : 0;
}

int order_check(const struct state *s, const struct placement *p, struct err *e)
{
    if (order_check_job(s, p->job, e) < 0)
        return -ENODEV;
    if (p->n_gpus < 1)
        return err_set(e, ENODEV, "job %d cannot run on no GPU", p->job);
    for (int i = 0; i < p->n_gpus; i++)
        if (p->gpus[i] < 0 || p->gpus[i] >= s->n_gpus)
            return err_set(e, ENODEV, "there is no GPU %d", p->gpus[i]);
    return 0;
}
