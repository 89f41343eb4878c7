/* view.h - a Slurm cluster at one moment: its nodes, and the jobs that matter to us.
 *
 * Made by act/slurm from the driver's answers to 'nodes' and 'jobs'; read by the reconciler there,
 * by newcomers.c and by the daemon's intake. Lives until the next one.
 */
#ifndef ACT_SLURM_VIEW_H
#define ACT_SLURM_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "catalog/sharing.h"

struct arena;
struct err;
struct wire_message;

enum slurm_state {
    SLURM_PENDING,
    SLURM_STARTING,       // CONFIGURING: its node wakes, or its prolog runs
    SLURM_RUNNING,        // SUSPENDED and STOPPED too
    SLURM_ENDING,         // COMPLETING; its devices are not free yet
    SLURM_COMPLETED,      // exit 0
    SLURM_CANCELLED,      // by somebody
    SLURM_TIMEOUT,        // took longer than Slurm's limit
    SLURM_FAILED,         // FAILED, OUT_OF_MEMORY, BOOT_FAIL, DEADLINE
    SLURM_NODE_FAILED,    // NODE_FAIL, PREEMPTED, REVOKED: no fault of its own
};

enum slurm_hold { HOLD_NONE, HOLD_USER, HOLD_ADMIN };

struct slurm_job {
    long id;
    long array, task;    // -1: not of an array
    uid_t uid;
    const char *partition;
    enum slurm_state state;
    const char *reason;    // as Slurm has it
    enum slurm_hold held;
    const char *nodes, *pin;    // names parted by commas; "": none
    const char *gres;
    int n_nodes;
    int run;
    double submit_s, start_s, end_s;    // NaN: not yet
    int exit_code, signal;
    const char *name, *comment, *admin;
    const char *command, *cwd, *out;
    int cpus, mem_mib;       // of each of its nodes; 0: not said
    const char *features;    // that its nodes must have, as "a&b"; "": none
    long limit_s;            // it may run so long; 0: for ever
};

/* A job of another partition that holds GPUs. */
struct slurm_other {
    long id;
    const char *nodes, *gres;
    int cpus, mem_mib;    // of each of them
};

enum slurm_node_flag {
    SLURM_NODE_DOWN = 1,        // down, not responding, invalid: nothing runs there
    SLURM_NODE_DRAINED = 2,     // drain, fail, maint, reserved: what runs goes on
    SLURM_NODE_ASLEEP = 4,      // powered down, or on the way there
    SLURM_NODE_WAKING = 8,      // powering up
    SLURM_NODE_IN_USE = 16,     // allocated or mixed, by anybody
    SLURM_NODE_SINKING = 32,    // on the way down, ASLEEP too: cannot be woken yet
    SLURM_NODE_UNHEARD = 64,    // slurmctld has just begun, and not heard of it yet
};

struct slurm_node {
    const char *name;
    const char *address;    // that others reach it by: its name, unless Slurm was told another
    unsigned flags;
    const char *gres;    // as configured
    const char *reason;
    int cpus, mem_mib;       // it has; 0: not said
    const char *features;    // "a,b"
    long limit_s;            // the partition's, for jobs there; 0: none
};

struct slurm_view {
    double time_s;     // wall clock, when it was asked for
    double asked_s;    // the same on the stopwatch
    bool is_whole;     // no line was left out: who is not in it is not in Slurm
    int n_jobs, n_others, n_nodes;
    struct slurm_job *jobs;    // by rising id
    struct slurm_other *others;
    struct slurm_node *nodes;    // in Slurm's order
};

/* One line of an answer into a value; texts are copied into 'a'. -EINVAL names the key. */
int slurm_job_read(struct arena *a, const struct wire_message *m, struct slurm_job *out,
                   struct err *e);
int slurm_node_read(struct arena *a, const struct wire_message *m, struct slurm_node *out,
                    struct err *e);

/* Where a job writes, '/home/%u/train-%j.out' as the file that it is, in 'a'; 'user' is its owner's
 * name. What cannot be known, as the node of a job that has not started (%N), stays as it is
 * written. "" where Slurm did not say.
 */
const char *slurm_out_path(struct arena *a, const struct slurm_job *j, const char *user);

/* As Slurm's commands name it: "12", or "12_3" of an array's task. */
void slurm_number(const struct slurm_job *j, char *out, size_t size);

/* Jobs that came by sbatch have the key "slurm:NUMBER:SUBMIT_S", so that nobody takes one in twice,
 * and the job is known before it carries a token.
 */
#define SLURM_KEY "slurm:"
void slurm_key(const struct slurm_job *j, char *out, size_t size);

/* ---- what GOGH writes into comments ---- */

#define SLURM_TOKEN_MAX 32

/* The admin comment, or a comment "gogh: token=...", read. */
struct slurm_note {
    bool is_ours;                   // it begins as GOGH's do
    bool is_new;                    // left by the gate, and not taken in yet
    char token[SLURM_TOKEN_MAX];    // "": none
    const char *at;                 // "node/slot,node/slot"; "": none
    const char *gres;               // what the user asked for, as the gate kept it; "": nothing
    int n_nodes;                    // 0: not said
    bool is_held;                   // the user asked for a hold
    char secret[33];                // "": none
    int n_failures;                 // runs that ended badly before the last pin
    int asked_run;                  // the run that was asked to save and exit by itself; -1: none
};

/* 'comment' and 'admin' of a job; texts in 'a'. What is not of the form is as if absent. */
void slurm_note_read(struct arena *a, const char *comment, const char *admin,
                     struct slurm_note *out);

/* The job that a token of this site names, "SITE-JOB-XXXX" or as once "SITE-JOB"; -1: none of the
 * first 'n_jobs'.
 */
int slurm_token_job(const char *token, const char *site, int n_jobs);

/* ---- a node's GPUs ---- */

enum slurm_exact {
    SLURM_EXACT,    // one GPU on the node, or one gres type for each: a place can be told
    SLURM_WHOLE,    // several alike: Slurm takes the first free one; nobody shares there
};

/* A slot is a GPU as the state has it (node, index). */
struct slurm_slot {
    const char
        *type;    // name of its GPU type: "v100" of gres type "v100" or "v100_1"; "gpu" of none
    const char *gres;    // what a pin asks for: "shard", "shard:v100_1", "gpu", "gpu:v100"
    int n_shards;        // of this GPU; 0: it is had whole
    enum slurm_exact exact;
    enum sharing sharing;    // as gres names say: shards take turns; "a100_1g.5gb" is a slice, MIG
};

/* The slots of a node from its gres ("gpu:v100_0:1(S:0),gpu:v100_1:1,shard:v100_0:2,..."), in 'a'.
 * 0 or more; a node without GPUs has none. -EINVAL: not understood; the text says what and why.
 */
int slurm_slots_read(struct arena *a, const char *gres, const struct slurm_slot **out,
                     struct err *e);

#endif
