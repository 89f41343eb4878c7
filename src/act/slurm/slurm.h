/* slurm.h - the executor for a Slurm cluster: jobs are Slurm's, GOGH says where and when.
 *
 * Every job that GOGH has is, or becomes, one Slurm job in GOGH's partition, found by its token
 * (docs/formats/slurm-driver.md). It waits there held; an order to start pins it to nodes and gres
 * and releases it; a stop or move asks it to save, requeues it held, and pins it anew. Whatever is
 * asked of Slurm goes through the driver, a process that may hang or die; what Slurm has done is
 * learned from views, taken every few seconds. So the truth is always Slurm's, and everything here
 * is a wish that is repeated until a view shows that it came true:
 *
 *     ABSENT --submit--> ASKED --seen, held--> HELD --pin--> WANTED --seen running--> RUNNING
 *        ^                                       ^                                       |
 *        |  Slurm lost it (crash)                '-- seen pending -- LEAVING <--requeue--'
 *        '------------------------ any           (a move: pinned anew)                   v
 *                                                                         ENDED (or not: requeued)
 *
 * Nothing is started twice: a job is submitted held and only one with its token is ever released.
 * On the loop's thread; nothing here waits.
 */
#ifndef ACT_SLURM_H
#define ACT_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "act/executor.h"
#include "act/runs.h"
#include "act/slurm/view.h"

struct catalog;
struct clock;
struct err;
struct job_spec;
struct loop;
struct slurm;
struct state;

struct slurm_setup {
    struct loop *loop;
    const struct clock *clock;
    const struct state *state;        // borrowed: specs, GPUs, names
    const struct catalog *catalog;    // borrowed
    const char *driver;               // program
    const char *commands;             // directory of Slurm's commands; NULL: by PATH
    const char *conf;                 // SLURM_CONF; NULL: Slurm's default
    const char *partition;            // GOGH's
    const char *site;                 // first part of tokens: 16 hex digits, the store's own
    const char *reports;              // address that jobs are told to report to (GOGH_REPORTS)
    bool only_watches;                // shadow mode: nothing but reading calls
    int theta;                        // jobs that may share a GPU
    double rate;                      // calls a second, on average
    double poll_s;                    // between two views; 2
    double grace_s;                   // to save, where a command says nothing else
    double patience_s;                // a pinned job that Slurm does not start is taken back; 60
    double wake_s;                    // a sleeping node's way back
    double sleep_after_s;    // a node without work is sent to sleep after this long; 0: never

    /* The secret of a job's reports (32 hex digits, borrowed until the next call); NULL: none. */
    const char *(*secret)(void *self, int job);
    void *secret_self;
};

int slurm_create(const struct slurm_setup *s, struct slurm **out, struct err *e);
void slurm_destroy(struct slurm *x);    // leaves the jobs running; NULL is fine

/* gpu_is_busy is true, too, for GPUs that jobs of other partitions hold, and of nodes that Slurm
 * keeps from us; gpu_wake_s is not 0 for sleeping nodes.
 */
struct executor slurm_executor(struct slurm *x);
struct runs slurm_runs(struct slurm *x);

/* A job that GOGH's state has is to be in Slurm, too: submit it soon. Called once its event is on
 * disk. One that came from Slurm is there already: the next view finds it by its key.
 */
void slurm_job_is_new(struct slurm *x, int job);

/* Jobs that came by sbatch have the key "slurm:ID:SUBMIT_S", so that nobody takes one in twice, and
 * the job is known before it carries a token. GOGH does not submit such a job again.
 */
#define SLURM_KEY "slurm:"
bool slurm_is_users(const struct job_spec *s);
void slurm_key(const struct slurm_job *j, char *out, size_t size);

/* Which job of the state it is; -1: none. Slurm sets a job's submit_s anew with each requeue, so
 * that its key is not enough.
 */
int slurm_find_job(struct slurm *x, const struct slurm_job *j);

/* This job of the view is not GOGH's to run, for this reason: it stays held, and its admin comment
 * says why.
 */
void slurm_refuse(struct slurm *x, const struct slurm_job *j, const char *why);

/* A user's or operator's wish through GOGH, once on disk: held ones must not run. */
void slurm_job_is_held(struct slurm *x, int job);

/* Called after each complete view (not owned), before its consequences are told as notices. */
typedef void slurm_view_f(void *self, const struct slurm_view *v);
void slurm_on_view(struct slurm *x, slurm_view_f *f, void *self);
const struct slurm_view *slurm_view(const struct slurm *x);    // the last; NULL: none yet

/* The slots of a node, as pins name them; the daemon made the state's nodes from the same. */
const struct slurm_slot *slurm_slot_of(const struct slurm *x, int gpu);    // NULL: not in Slurm

/* What the state has is on disk by now: notices that were taken off, and jobs that came. */
void slurm_is_safe(struct slurm *x);

/* What users did to jobs by Slurm's own commands, to be journaled: taken off one by one. */
enum slurm_deed { DEED_HELD, DEED_RELEASED, DEED_CANCELLED };
struct slurm_did {
    enum slurm_deed deed;
    int job;
    double time_s;
    const char *reason;    // NULL: by Slurm's commands
};
bool slurm_next_deed(struct slurm *x, struct slurm_did *out);

void slurm_set_grace(struct slurm *x, double grace_s);

struct slurm_stats {
    bool is_up;                  // Slurm answers
    const char *text;            // why not; NULL
    double view_s;               // wall time of the last view; NaN: none yet
    uint64_t n_calls, n_late;    // of the driver, as it counts them
    uint64_t n_drivers;          // started so far
    uint64_t n_views, n_resubmits,
        n_strays;           // strays: jobs with our token that are not ours to run
    int n_under_way;        // orders that are not carried out yet
    const char *version;    // Slurm's; NULL: not known yet
};
struct slurm_stats slurm_stats(const struct slurm *x);

#endif
