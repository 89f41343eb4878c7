/* intake.h - a job that came by sbatch becomes a submission like any other.
 *
 * What a user promises is text after 'gogh:' in the job's comment (docs/slurm.md), where the gate
 * also puts '#GOGH' lines of the script:
 *
 *     sbatch --comment="gogh: workload=resnet50 batch=64 min-throughput=40 deadline=+6h steps=1e5"
 *
 * It becomes the body of POST /v1/jobs and goes through the same checks. GPUs come from what the
 * user asked Slurm for, as the gate kept it. Touches nothing but the accounts that it asks about.
 */
#ifndef DAEMON_SUBMIT_INTAKE_H
#define DAEMON_SUBMIT_INTAKE_H

#include <jansson.h>

#include "daemon/submit/submit.h"

struct accounts;
struct arena;
struct err;
struct slurm_job;

/* What follows 'gogh:' in a comment, which borrows; "" where there is nothing. */
const char *intake_promise_text(const char *comment);

/* The words 'key=value' of a promise as the body of a submission, yours, without what is to be run.
 * "+2h" counts from 'submit_s'. -EINVAL names the word and the cure.
 */
int intake_promise(struct arena *a, const char *text, double submit_s, json_t **out, struct err *e);

/* Read 'j' into 'out', as submit_read does: its owner is the Slurm job's, its key slurm_key's, its
 * command what sbatch was given (for show: Slurm runs it). Where that key is known already,
 * 'out->again' is the job, and nothing else counts.
 *   -EINVAL   it makes no sense; the sentence is for the user
 *   -EAGAIN   nobody can say now who its owner is
 */
int intake_read(struct accounts *known, struct arena *a, const struct submit_context *context,
                const struct slurm_job *j, struct submit *out, struct err *e);

#endif
