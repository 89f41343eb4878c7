#include "optimize/prices/fork_join.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct helper {
    part_f *work;
    void *self;
};

static void *run_second(void *arg)
{
    struct helper *s = arg;

    s->work(s->self, 1, 2);
    return NULL;
}

void fork_join(int threads, part_f *work, void *self)
{
    struct helper s = { work, self };
    pthread_t other;
    bool has_other = threads > 1 && pthread_create(&other, NULL, run_second, &s) == 0;

    work(self, 0, 2);
    if (has_other)
        pthread_join(other, NULL);
    else
        run_second(&s);
}
