/* sacct.h - what ran on a site: the accounting of Slurm as it prints it (docs/formats/sacct.md).
 *
 *     JobIDRaw|JobName|Submit|Start|ElapsedRaw|AllocTRES|NodeList
 *     812|resnet50|2026-03-02T08:00:05|2026-03-02T08:01:00|3600|cpu=8,gres/gpu:v100=2|gpu[001-002]
 *     812.batch|batch|...
 *
 * Made by sacct_parse; read by the history (history.h). Lives in the caller's arena, its texts too.
 */
#ifndef SIM_HISTORY_SACCT_H
#define SIM_HISTORY_SACCT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/text.h"

struct arena;
struct err;

/* The command whose output has all that is read here. */
#define SACCT_COMMAND                                                                           \
    "sacct --allusers --parsable2 --starttime 2026-01-01 --format JobIDRaw,JobID,JobName,User," \
    "Partition,State,Submit,Eligible,Start,End,ElapsedRaw,AllocTRES,ReqTRES,NodeList,Comment,"  \
    "AdminComment"

enum sacct_state {
    SACCT_COMPLETED,
    SACCT_FAILED,
    SACCT_CANCELLED,
    SACCT_TIMEOUT,
    SACCT_NODE_FAIL,
    SACCT_PREEMPTED,
    SACCT_RUNNING,
    SACCT_OTHER,    // or not told
    SACCT_STATES,
};
const char *sacct_state_name(enum sacct_state s);    // "completed", ...

/* GPUs (or shards) of one type, as gres.conf calls it. */
struct sacct_gres {
    const char *type;
    int n;
};

#define SACCT_TYPES_MAX 8
#define SACCT_GPUS_MAX 4096      // of one job, as job_spec_check has it
#define SACCT_NODES_MAX 4096     // of one job
#define SACCT_COLUMNS_MAX 256    // Slurm 24.11 knows 120 fields

/* One run of one job on GPUs: a requeued job has several. Times are seconds since 1970 of the
 * site's own clock, whatever its zone.
 */
struct sacct_job {
    int line;
    const char *id;                         // "12_3", as people know it
    const char *name, *user, *partition;    // "": not told
    enum sacct_state state;
    double submit_s;
    double ready_s;    // when nothing but GPUs kept it: Eligible, or Submit
    double start_s;
    double elapsed_s;    // above 0
    int n_gpus;          // whole ones
    int n_shards;        // of GPUs it shared; 0 where n_gpus is not
    int n_types;
    struct sacct_gres types[SACCT_TYPES_MAX];
    int n_nodes;
    const char *const *nodes;

    /* From "gogh: workload=... batch=... min-throughput=... rate=... urgency=..." in a comment; the
     * other keys that a live GOGH reads there are not needed.
     */
    const char *workload;     // NULL: not told
    double batch;             // NaN: not told
    double min_throughput;    // 0: not told
    double rate;              // 0: not told; a server's
    double urgency;           // 0: not told
    bool is_exclusive;        // "exclusive=yes": it shares with nobody
};

struct sacct {
    const char *name;    // of the file, for messages
    int n_jobs;
    struct sacct_job *jobs;    // in the file's order
    int n_states[SACCT_STATES];

    /* Lines that are no such run. */
    int n_lines;         // all but the header and empty ones
    int n_steps;         // "12.batch", "12.0"
    int n_elsewhere;     // of other partitions
    int n_unstarted;     // never ran, or for no time
    int n_cpu;           // no GPU
    int n_repeated;      // the same run once more
    int n_refused;       // not understood
    int refused_line;    // the first of these
    const char *refused_why;

    int n_requeued;    // runs, among the jobs, of jobs that had run before
    int n_unclear;     // comments that begin with "gogh:" and were not understood
};

/* Parse 'text'; 'name' is for messages; 'partition' NULL: all. A line that makes no sense is left
 * out and counted. -EINVAL: a column that is needed is missing (the text says which and how to get
 * it). A file of no jobs is none the less 0.
 */
int sacct_parse(struct arena *a, const char *name, const char *text, size_t len,
                const char *partition, struct sacct *out, struct err *e);

/* "gpu[001-003,7],login1" as names: '*n' of them, or -EINVAL. */
int sacct_hosts(struct arena *a, struct slice list, const char *const **names, int *n);

/* "2026-03-02T08:00:05" (or a blank for the T), or seconds, as seconds since 1970; NaN for
 * "Unknown", "None" and "". 0, or -EINVAL.
 */
int sacct_time(struct slice s, double *out);

/* Digits only, at most 9 of them, as a number. */
bool sacct_digits(struct slice s, long *out);

/* Nothing, "Unknown" or "None". */
bool sacct_is_nothing(struct slice s);

/* "[D-]HH:MM:SS[.sss]" or "MM:SS[.sss]" in seconds. 0, or -EINVAL. */
int sacct_elapsed(struct slice s, double *out);

#endif
