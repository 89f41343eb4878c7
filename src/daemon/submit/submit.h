/* submit.h - what somebody asked for becomes a job: the body of POST /v1/jobs, read.
 *
 * Touches nothing: gives a spec to journal and, where nobody knows the workload yet, one to add
 * first. Bodies have been through schema_submit (daemon/http/shapes.h). Made by the API for each
 * submission; lives in the request's arena.
 */
#ifndef DAEMON_SUBMIT_SUBMIT_H
#define DAEMON_SUBMIT_SUBMIT_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

#include "catalog/cluster/job.h"
#include "catalog/workload.h"

struct arena;
struct caller;
struct catalog;
struct err;
struct estimator;
struct state;

/* What a submission is read against; all borrowed. */
struct submit_context {
    const struct caller *caller;
    const struct catalog *catalog;
    const struct state *state;
    const struct estimator *estimator;    // for a first guess of steps; NULL: there is none
    double now_s;

    /* A gang has as many GPUs on each of its nodes, as Slurm wants it: where a submission says
     * nothing of nodes, the fewest that can have it are chosen.
     */
    bool wants_even;

    /* Can processes of that user be started here? NULL: of everybody. */
    int (*may_run_as)(uid_t uid, struct err *e);

    /* The account called 'name', for those who submit for others (account_find). NULL: nobody may.
     */
    bool (*account)(const char *name, uid_t *uid, gid_t *gid);
};

struct submit {
    int again;    // the job that this very request made before; -1: it is new, and the rest counts
    struct job_spec spec;    // 'workload' counts where 'is_new_workload' is not set
    bool is_new_workload;    // add this one first; its index is the spec's workload
    struct workload workload;
    bool is_held;
};

/* The most that a program and its environment may take, as bytes of its texts: what Linux gives a
 * single string of either (MAX_ARG_STRLEN); the journal keeps it for good.
 */
#define SUBMIT_COMMAND_MAX (128 * 1024)

/* Read 'body' as the caller asked it with an idempotency key (NULL: none). 0, or
 *   -EINVAL    it makes no sense: the sentence names the field and the cure
 *   -EACCES    not in that name, or not as that user
 *   -EEXIST    a live job has that name
 *   -ENOTUNIQ  the key was used for another request
 */
int submit_read(struct arena *a, const struct submit_context *context, json_t *body,
                const char *key, struct submit *out, struct err *e);

/* Where GPUs are only had whole, their type is called so ("v100-16-whole" of "v100"); -1: none is.
 */
int submit_find_whole(struct arena *a, const struct catalog *c, const char *type);

/* A workload from an object of features by name, with 'name' and 'batch'. */
int submit_describe(struct arena *a, json_t *descriptor, struct workload *out, struct err *e);

#endif
