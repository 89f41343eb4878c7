/* program.h - one of the programs that gogh-pair measures: what it is told, and what it says.
 *
 * To the program gogh-pair is GOGH: it finds an address for its reports, a job, a run and a secret
 * in its environment, as any job does, and needs no change. Lives as long as gogh-pair; started
 * anew in each phase, as another run.
 */
#ifndef PROBE_PAIR_PROGRAM_H
#define PROBE_PAIR_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "monitor/report.h"
#include "probe/pair/guard.h"

struct arena;
struct err;

/* A traceback and what a runtime said before it. */
enum { PROGRAM_WORDS_MAX = 8192 };

struct pair_program {
    char **argv;          // ended by NULL
    int job;              // 1, 2
    char address[120];    // GOGH_REPORTS
    char secret[REPORT_SECRET_BYTES + 1];
    int run;          // of the phase
    bool is_there;    // started, and not known to have ended
    bool is_unfit;    // has said so in this run
    struct guard guard;
    char words[PROGRAM_WORDS_MAX + 1];    // the last of its standard error
    size_t n_words;
};

/* Start it as run 'run'; the environment of it is ours with its own address and secret, and is put
 * into 'a'.
 */
int program_start(struct pair_program *p, struct arena *a, int run, double grace_s,
                  void (*at_orphaned)(void), struct err *e);

/* A datagram of its address: true, and 'out', where it is this run's. */
bool program_hear(struct pair_program *p, const char *bytes, size_t len, struct job_report *out);

/* Take in what is there of its standard error. False: it is closed. */
bool program_read_words(struct pair_program *p);

/* The last few lines of that, and where these begin in 'words'. */
const char *program_last_lines(const struct pair_program *p);

/* "exit status 3" and the like, of what guard_close said. */
void program_end_words(int code, char *out, size_t size);

#endif
