/* journal_kill STORE ROUNDS SEED - a writer that is killed again and again.
 *
 * Each round a child opens the store and journals events in groups, telling the parent the
 * last sequence number of each once it is committed. The parent kills it with SIGKILL at a
 * random moment, opens the store itself and looks: every acknowledged group is there, of the
 * others all or nothing, no event is there twice, and the rows are what the events add up to.
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "catalog/catalog.h"
#include "catalog/cluster/ledger.h"
#include "store/store.h"

struct desk {
    struct store *store;
    struct catalog catalog;
    struct ledger ledger;
};

static void must(int rc, const struct err *e, const char *what)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, e->text);
    exit(1);
}

static void desk_open(struct desk *d, const char *path)
{
    struct err e = { 0 };
    struct workload w;
    int index;

    must(store_open(path, STORE_CREATE, &d->store, &e), &e, "opening the store");
    catalog_init(&d->catalog);
    must(catalog_load(&d->catalog, d->store, &e), &e, "loading the catalog");
    workload_init(&w, "w");
    must(store_begin(d->store, &e), &e, "store");
    must(catalog_add_type(&d->catalog, gpu_type_builtin("v100"), &index, &e), &e, "type");
    must(catalog_add_workload(&d->catalog, &w, &index, &e), &e, "workload");
    must(store_commit(d->store, &e), &e, "store");
    must(ledger_open(&d->ledger, &d->catalog, d->store, &e), &e, "replaying");
}

static void desk_close(struct desk *d)
{
    ledger_close(&d->ledger);
    catalog_release(&d->catalog);
    store_close(d->store);
}

/* Groups have one to seven events. Where they end follows from the number alone, so that the
 * parent knows it as well: the first end after event 'seq'.
 */
static int64_t group_end(int64_t seq)
{
    int64_t end = 0;

    for (int64_t n = 0; end <= seq; n++)
        end += 1 + n * 5 % 7;
    return end;
}

/* Event number 'seq' follows from its number alone: a node, then job after job that is
 * submitted, started, makes progress and finishes. Its time is its number.
 */
static int add_next(struct desk *d, struct err *e)
{
    static const int gpu[] = { 0 };
    int64_t seq = d->ledger.last_seq + 1;
    int64_t turn = (seq - 2) % 4;
    char name[32];
    struct job_spec spec = {
        .name = name, .steps = 100, .deadline_s = NAN, .n_gpus = 1, .max_gpus = 1, .command = "{}"
    };
    struct event ev = { .time_s = (double)seq, .job = (int)((seq - 2) / 4), .steps_done = 10 };

    snprintf(name, sizeof name, "j%" PRId64, seq);
    if (seq == 1)
        ev = (struct event){
            .kind = EVENT_NODE_ADDED, .time_s = 1, .node = "n", .gpu_types = gpu, .n_gpus = 1
        };
    else if (turn == 0)
        ev = (struct event){ .kind = EVENT_JOB_SUBMITTED, .time_s = (double)seq, .spec = &spec };
    else if (turn == 1)
        ev = (struct event){ .kind = EVENT_JOB_STARTED,
                             .time_s = (double)seq,
                             .job = ev.job,
                             .gpus = gpu,
                             .n_gpus = 1 };
    else
        ev.kind = turn == 2 ? EVENT_JOB_PROGRESSED : EVENT_JOB_FINISHED;
    return ledger_add(&d->ledger, &ev, e);
}

static void write_group(struct desk *d)
{
    struct err e = { 0 };
    int64_t end = group_end(d->ledger.last_seq);

    must(ledger_begin(&d->ledger, &e), &e, "beginning");
    while (d->ledger.last_seq < end)
        must(add_next(d, &e), &e, "adding");
    must(ledger_commit(&d->ledger, &e), &e, "committing");
}

static _Noreturn void write_until_killed(const char *path, int tell)
{
    struct desk d;

    desk_open(&d, path);
    for (;;) {
        write_group(&d);
        int64_t seq = d.ledger.last_seq;
        if (write(tell, &seq, sizeof seq) != sizeof seq)
            exit(1);
    }
}

/* One row of the journal: numbers without gaps, each once. */
static int look_at(void *self, const struct row_event *row)
{
    int64_t *last = self;

    if (row->seq != *last + 1 || row->time_s != (double)row->seq) {
        fprintf(stderr, "event %" PRId64 " of time %g after %" PRId64 "\n", row->seq, row->time_s,
                *last);
        return -1;
    }
    *last = row->seq;
    return 0;
}

/* Where job 'i' stands after event 'seen'. */
static bool is_as_expected(const struct job *j, int64_t seen)
{
    int64_t n = seen - (2 + 4 * (int64_t)j->id) + 1;    // events of this job

    if (n >= 4)
        return j->state == JOB_FINISHED && j->n_held == 0 && j->steps_done == 10;
    if (n >= 2)
        return j->state == JOB_RUNNING && j->n_held == 1 && j->steps_done == (n == 3 ? 10 : 0);
    return j->state == JOB_WAITING;
}

static bool check_state(const struct ledger *l, int64_t seen)
{
    if (l->state.n_jobs != (int)((seen + 2) / 4)) {
        fprintf(stderr, "%d jobs after %" PRId64 " events\n", l->state.n_jobs, seen);
        return false;
    }
    if (l->is_behind) {
        fprintf(stderr, "there are events without rows\n");
        return false;
    }
    for (int i = 0; i < l->state.n_jobs; i++)
        if (!is_as_expected(l->state.jobs[i], seen)) {
            fprintf(stderr, "job %d after event %" PRId64 " is %s\n", i, seen,
                    job_state_name(l->state.jobs[i]->state));
            return false;
        }
    return true;
}

static bool check(const char *path, int64_t acknowledged, int64_t *last)
{
    struct desk d;
    struct err e = { 0 };
    int64_t seen = 0;

    desk_open(&d, path);
    bool is_fine = store_each_event(d.store, 0, look_at, &seen, &e) == 0;
    bool is_whole = seen == acknowledged || seen == group_end(acknowledged);
    if (!is_whole || d.ledger.last_seq != seen) {
        fprintf(stderr,
                "%" PRId64 " acknowledged, %" PRId64 " in the journal, %" PRId64 " applied\n",
                acknowledged, seen, d.ledger.last_seq);
        is_fine = false;
    }
    is_fine = check_state(&d.ledger, seen) && is_fine;
    *last = seen;
    desk_close(&d);
    return is_fine;
}

/* Start a writer, kill it after some acknowledgements and some more microseconds. */
static int64_t kill_one(const char *path, struct rng *r, int64_t before)
{
    int64_t seq = before, n_wanted = (int64_t)rng_below(r, 12);
    double linger_s = rng_between(r, 0, 0.004);
    int ends[2];

    if (pipe(ends) != 0)
        exit(1);
    pid_t child = fork();
    if (child == 0)
        write_until_killed(path, ends[1]);
    close(ends[1]);
    for (int64_t n = 0; n < n_wanted; n++)
        if (read(ends[0], &seq, sizeof seq) != sizeof seq)
            break;
    double until_s = clock_stopwatch_s() + linger_s;
    while (clock_stopwatch_s() < until_s)
        ;
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    while (read(ends[0], &seq, sizeof seq) == sizeof seq)
        ;
    close(ends[0]);
    if (!WIFSIGNALED(status)) {
        fprintf(stderr, "the writer ended by itself\n");
        exit(1);
    }
    return seq;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: journal_kill STORE ROUNDS SEED\n");
        return 2;
    }
    long rounds = strtol(argv[2], NULL, 10);
    int64_t last = 0;
    struct rng r;

    rng_init(&r, strtoull(argv[3], NULL, 10), "kill");
    for (long i = 0; i < rounds; i++) {
        int64_t acknowledged = kill_one(argv[1], &r, last);
        if (!check(argv[1], acknowledged, &last)) {
            fprintf(stderr, "round %ld\n", i);
            return 1;
        }
    }
    printf("%ld writers killed, %" PRId64 " events kept\n", rounds, last);
    return last < rounds;    // or nothing was tested
}
