/* command.h - what to run: the command of a job, and the launch of one run of it.
 *
 * A command is what a submission asks for (docs/formats/command.md). A launch is a command with
 * everything decided: made by 'local' when a run is started, read by its keeper, and by a later
 * daemon that finds the run; the file 'order' of docs/formats/run.md. Both live in the caller's
 * arena.
 */
#ifndef ACT_LOCAL_COMMAND_H
#define ACT_LOCAL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "catalog/cluster/engine.h"

struct arena;
struct err;
struct job;
struct job_spec;
struct state;

/* Larger ones would not pass execve(2), which takes 2 MB of arguments and environment. */
#define LAUNCH_BYTES_MAX ((size_t)4 << 20)

/* More than any node has. */
#define COMMAND_CPUS_MAX 100000
#define COMMAND_MIB_MAX (1 << 30)

struct command {
    char **argv;    // (n_argv) and NULL
    int n_argv;
    char **env;    // (n_env) "KEY=value", and NULL
    int n_env;
    const char *cwd;          // NULL: the owner's home
    const char *out, *err;    // files; NULL: in the run's directory
    long uid, gid;            // -1: not said
    double timeout_s;         // 0: none
    long retries;
    int checkpoint_signal;    // 0: killed at once
    double grace_s;           // NaN: not said
    long cpus, mem_mib;       // of its node, for each GPU; 0: not said
};

struct launch {
    struct command command;    // complete: with what GOGH sets in its environment
    long job, run;
    double submit_s;          // of the job: tells it from one of another store with its number
    double finish_after_s;    // a server has served its time then; 0: none
    const char *secret;       // of its reports
    int *gpus;                // (n_gpus) indices in the state
    int n_gpus;
    long limit_w;
    long n_failures;    // of earlier runs
    bool is_move;
};

/* -EINVAL names the key and what is wanted. */
int command_parse(struct arena *a, const char *json, struct command *out, struct err *e);

/* Is it well formed? */
int command_check(const char *json, struct err *e);

/* The command of a job, with the uid and gid that it is run by: ours, where it says none. */
int command_of_job(struct arena *a, const struct job_spec *s, struct command *out, struct err *e);

/* Is there a variable of the name of 'entry' ("NAME=", and whatever follows)? */
bool command_sets(char *const *env, int n_env, const char *entry);

/* What a replica is told of itself, "GOGH_PORT=20001" and the like, in 'a'; how many, 0 of others.
 */
#define REPLICA_ENV_MAX 8
int command_replica_env(struct arena *a, const struct state *st, const struct job_spec *s,
                        char *out[REPLICA_ENV_MAX]);

/* The file that 'path' means for a run of the job, "%j.log" as "12.log"; a '%' that stays one is
 * written as 'percent'. NULL of NULL.
 */
const char *command_file(struct arena *a, const char *path, const struct job *j, int run,
                         const char *percent);

/* What a command says of 'cpus' and 'mem_mib', quickly where it says nothing; NULL has none. */
struct engine_job command_needs(struct arena *scratch, const char *json);

const char *launch_encode(struct arena *a, const struct launch *o);
int launch_decode(struct arena *a, const char *text, size_t len, struct launch *out, struct err *e);

/* Read the file of the run whose directory 'dir' is open as. */
int launch_read(struct arena *a, int dir, struct launch *out, struct err *e);

#endif
