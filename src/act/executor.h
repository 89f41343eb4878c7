/* executor.h - the third door: what runs the jobs, an engine.
 *
 * Sides: processes of this box (act/local), Slurm (act/slurm), the simulator's world (sim/world),
 * and in tests one in memory. Everything that the daemon asks of an engine is here; nobody looks
 * behind it but who opens and closes it. What the daemon asks, and when:
 *
 *     before a plan       job_is_busy, gpu_is_busy, gpu_wake_s, rules: what must be left alone
 *     after it            executor_give: start, move, stop, one after another
 *     when a turn ends    next_change: what its users did by its own commands, to be journaled;
 *                         next, done: notices of runs, which the sensor makes observations of
 *     once it is on disk  committed; then job_is of each job that is new, held or released, and the
 *                         order to cancel, in the order in which that happened
 *     the disk refuses    undone: what was taken off since the last 'committed' comes again
 *     at any time         find, find_number, facts: for those who show a job or the engine
 *
 * Only orders fail. An order is idempotent: asking again for what is already so is 0. One that
 * returns 0 is accepted, not done; what came of it is told by a notice. What an engine cannot do it
 * says before it is asked to: in 'rules' of single jobs, in the flags below of everything.
 *
 * An engine has 'self', 'start', 'stop', 'move' and 'cancel'. Any other member may be NULL: then it
 * has nothing to say there. The functions below the struct know that, so call those.
 */
#ifndef ACT_EXECUTOR_H
#define ACT_EXECUTOR_H

#include <stdbool.h>
#include <sys/types.h>

struct arena;
struct devices;
struct engine_fact;
struct engine_rules;
struct err;
struct run_info;
struct run_notice;
struct state;

/* A job on its whole gang of GPUs (indices in the state). */
struct placement {
    int job;    // id in the state
    int n_gpus;
    const int *gpus;
    int limit_w;    // power limit; 0: the type's default
};

/* ORDER_LIMIT is a move to where the job is, under another power limit. */
enum order_kind { ORDER_NONE, ORDER_STOP, ORDER_MOVE, ORDER_LIMIT, ORDER_START, ORDER_CANCEL };

enum job_change { JOB_IS_NEW, JOB_IS_HELD, JOB_IS_RELEASED, JOB_IS_CANCELLED };

/* What a user did to a job by the engine's own commands. */
struct engine_change {
    enum job_change change;    // not JOB_IS_NEW
    int job;
    double time_s;
    const char *reason;    // a literal
};

struct executor {
    void *self;

    /* Start the whole gang or nothing. -ENODEV, -EINVAL, -ENOTSUP: this cannot be realised at all,
     * which 'rules' should have said; another error: not now.
     */
    int (*start)(void *self, const struct placement *p, struct err *e);

    /* Ask the job to checkpoint, then stop it; it will wait again. */
    int (*stop)(void *self, int job, struct err *e);

    /* Checkpoint, stop, start on other GPUs, as one order. */
    int (*move)(void *self, const struct placement *p, struct err *e);

    /* End the job for good; it will not come back. One that does not run is 0. */
    int (*cancel)(void *self, int job, struct err *e);

    /* Is an order about this job still being carried out? Is somebody still leaving this GPU, or on
     * the way to it? Plans leave both alone meanwhile. NULL: orders take no time.
     */
    bool (*job_is_busy)(void *self, int job);
    bool (*gpu_is_busy)(void *self, int gpu);

    /* Seconds until a job that is placed there could begin, since the GPU sleeps; 0: it is awake.
     * NULL: all are.
     */
    double (*gpu_wake_s)(void *self, int gpu);

    /* The host by which others reach a node (of the state); NULL: not known yet. Borrowed until the
     * loop's next turn. NULL function: by its name.
     */
    const char *(*node_address)(void *self, int node);

    /* What cannot be done with these jobs (ids in the state), in 'a' (catalog/cluster/engine.h).
     * False: every placement can be had. NULL: always.
     */
    bool (*rules)(void *self, struct arena *a, const int *jobs, int n_jobs,
                  struct engine_rules *out);

    /* What the state has of this job is on disk. JOB_IS_CANCELLED is an order. */
    void (*job_is)(void *self, int job, enum job_change change);

    /* Everything that was taken off is on disk; or it is not, and comes again. */
    void (*committed)(void *self);
    void (*undone)(void *self);

    /* The next change that a user made, taken off; false: there is none. */
    bool (*next_change)(void *self, struct engine_change *out);

    /* The next notice of a run (act/runs.h): 1, or 0. It stays the next one until 'done'. 'f' is
     * called when there are new notices or changes, to listen soon.
     */
    int (*next)(void *self, struct run_notice *out);
    void (*done)(void *self);
    void (*on_news)(void *self, void (*f)(void *to), void *to);

    /* The present or last run of a job; false: it never had one. The job that the engine's own
     * number means; -1: none.
     */
    bool (*find)(void *self, int job, struct run_info *out);
    int (*find_number)(void *self, long number);

    /* How the engine itself is, for status and metrics: at most ENGINE_FACTS_MAX; how many. */
    int (*facts)(void *self, struct engine_fact *out);

    /* May this daemon start processes of that user? -EPERM says why not, and the cure. */
    int (*may_run_as)(uid_t uid, struct err *e);

    void (*set_grace)(void *self, double grace_s);    // to save, from the next stop on
    void (*close)(void *self);                        // leaves the jobs running

    /* What holds as long as it is open. */
    const char *only_watches;    // why plans are not acted on and nobody may submit; NULL: not so
    bool needs_even_gangs;       // as many GPUs on each node of a gang
    bool takes_limits;           // some of its GPUs take power limits
    bool may_sleep;              // GPUs without work draw less
    int node;    // of the state: this machine, with 'devices' in its slots; -1: none is
    struct devices *devices;    // NULL: of no GPU the driver is here

    /* Told of each order that was accepted (executor_give); NULL: nobody. */
    void (*on_order)(void *to, enum order_kind order, const struct placement *p);
    void *order_to;
};

/* One thing that an engine says of itself. */
#define ENGINE_FACTS_MAX 16
enum fact_kind { FACT_FLAG, FACT_TEXT, FACT_TIME, FACT_COUNT, FACT_GAUGE };
struct engine_fact {
    enum fact_kind kind;
    const char *key;              // in the status; NULL: not there
    const char *metric, *help;    // in the metrics; NULL: not there
    double number;                // NaN: not known
    const char *text;             // FACT_TEXT; NULL: there is none
};

/* For engines: does the state have this job, and the GPUs that it shall have? -ENODEV. */
int order_check_job(const struct state *s, int job, struct err *e);
int order_check(const struct state *s, const struct placement *p, struct err *e);

int executor_give(const struct executor *x, enum order_kind order, const struct placement *p,
                  struct err *e);
bool executor_job_is_busy(const struct executor *x, int job);
bool executor_gpu_is_busy(const struct executor *x, int gpu);
double executor_wake_s(const struct executor *x, int gpu);
const char *executor_address(const struct executor *x, const struct state *s, int node);
bool executor_rules(const struct executor *x, struct arena *a, const int *jobs, int n_jobs,
                    struct engine_rules *out);
void executor_job_is(const struct executor *x, int job, enum job_change change);
void executor_committed(const struct executor *x, bool is_on_disk);
bool executor_next_change(const struct executor *x, struct engine_change *out);
bool executor_find(const struct executor *x, int job, struct run_info *out);
int executor_find_number(const struct executor *x, long number);
int executor_facts(const struct executor *x, struct engine_fact *out);
void executor_set_grace(const struct executor *x, double grace_s);
void executor_close(const struct executor *x);

#endif
