#include "refine/trainer.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "catalog/catalog.h"
#include "estimate/model/model.h"

const struct trainer_options trainer_defaults = {
    .seed = 1,
    .growth = 0.25,
    .n_cells_min = 32,
    .n_families_min = 3,
};

/*                trainer_offer               work ends               trainer_take, _wait
 *     idle ------------------------> running ----------> is_done ------------------------> idle
 *
 * Between the first and the last arrow the fields below 'thread' are the worker's; is_done hands
 * them back.
 */
struct trainer {
    struct trainer_options options;
    int64_t n_measurements;    // of the catalog, at the last training
    uint64_t n_trainings;
    bool is_running;    // the owner's: there is a thread to join

    atomic_bool is_done;
    pthread_t thread;
    struct examples examples;
    const struct model *champion;    // borrowed
    struct model *challenger;
    int rc;
    struct err err;
};

struct trainer *trainer_create(const struct trainer_options *o, int64_t n_measurements)
{
    struct trainer *t = calloc(1, sizeof *t);

    assert(t);    // out of memory: stop
    t->options = *o;
    t->n_measurements = n_measurements;
    return t;
}

void trainer_destroy(struct trainer *t)
{
    if (!t)
        return;
    model_destroy(trainer_wait(t));
    free(t);
}

/* ---- on the worker's thread ---- */

static void *work(void *self)
{
    struct trainer *t = self;
    uint64_t seed = t->options.seed + t->n_trainings;
    char about[64];

    snprintf(about, sizeof about, "this site, training %d; seed %llu", (int)t->n_trainings,
             (unsigned long long)seed);
    t->rc = model_train(&t->examples, t->champion, seed, about, &t->challenger, &t->err);
    atomic_store(&t->is_done, true);
    return NULL;
}

/* ---- on the owner's thread ---- */

/* Do measured workloads come from this many families? One without a family is one of its own. */
static bool has_families(const struct catalog *c, int n_wanted)
{
    struct map seen = { 0 };
    int n = 0;

    for (int w = 0; w < c->n_workloads && n < n_wanted; w++) {
        const char *family = c->workloads[w].family;

        if (c->first_cell[w] < 0 || (family && map_get(&seen, family) >= 0))
            continue;
        if (family)
            map_set(&seen, family, n);
        n++;
    }
    map_release(&seen);
    return n >= n_wanted;
}

static bool has_news(const struct trainer *t, const struct catalog *c)
{
    int64_t learned = t->n_measurements <= c->n_measurements ? t->n_measurements : 0;

    /* Fewer than were learned from: that was another catalog. */
    return c->n_cells >= t->options.n_cells_min && c->n_measurements > learned &&
           (double)(c->n_measurements - learned) >= t->options.growth * (double)learned &&
           has_families(c, t->options.n_families_min);
}

bool trainer_offer(struct trainer *t, const struct catalog *c, const struct model *champion)
{
    if (t->is_running || !has_news(t, c))
        return false;
    t->n_measurements = c->n_measurements;
    t->n_trainings++;
    t->champion = champion;
    t->challenger = NULL;
    examples_take(c, &t->examples);
    atomic_store(&t->is_done, false);
    int rc = pthread_create(&t->thread, NULL, work, t);
    t->is_running = rc == 0;
    if (rc != 0) {
        log_warn("no thread to train on: %s", strerror(rc));
        examples_release(&t->examples);
    }
    return t->is_running;
}

bool trainer_is_busy(const struct trainer *t)
{
    return t->is_running;
}

struct model *trainer_wait(struct trainer *t)
{
    if (!t->is_running)
        return NULL;
    pthread_join(t->thread, NULL);
    struct model *m = t->challenger;
    t->is_running = false;
    t->challenger = NULL;
    if (t->rc < 0)
        log_warn("training: %s", t->err.text);
    examples_release(&t->examples);
    return m;
}

struct model *trainer_take(struct trainer *t)
{
    return t->is_running && atomic_load(&t->is_done) ? trainer_wait(t) : NULL;
}
