/* serve.h - what the files behind `gogh bench serve` share.
 *
 * A *test daemon* is a scratch directory with a store, runs and a configuration, and a real goghd
 * on it. Made by a part of the bench, which asks it questions over its socket (http.c), and ended
 * by it, daemon and all.
 */
#ifndef BENCH_SERVE_SERVE_H
#define BENCH_SERVE_SERVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/text/buf.h"

struct err;
struct samples;

/* ---- http.c: one connection that is kept, one question at a time ---- */

struct serve_conn {
    int fd;
    struct buf in;        // the answer as far as it has come
    size_t n_head;        // bytes up to its body; 0: not all there
    size_t n_all;         // of the whole answer
    int status;           // of HTTP
    double asked_s;       // on the stopwatch: when the question went out
    double answered_s;    // and when the last byte was there
};

int conn_open(const char *socket, struct serve_conn *c, struct err *e);
void conn_close(struct serve_conn *c);

/* Send a question; 'body' is JSON or NULL. The socket's buffer takes it at once. */
int conn_send(struct serve_conn *c, const char *method, const char *path, const char *body,
              struct err *e);

/* Read what is there: 1 when the answer is whole, 0 when more must come, -Exxx. */
int conn_read(struct serve_conn *c, struct err *e);

/* Both, and wait for the answer, a minute at most. Anything but 200 or 201 is -EREMOTEIO. */
int conn_ask(struct serve_conn *c, const char *method, const char *path, const char *body,
             struct err *e);
const char *conn_body(const struct serve_conn *c);

/* ---- store.c: what the daemon finds ---- */

#define SERVE_SECRET_SIZE 33

/* How much of everything. Each running job has a GPU of its own. */
struct serve_content {
    int n_gpus;     // at least as many as types
    int n_types;    // of GPUs; 0: 3
    int n_running, n_waiting, n_held, n_ended;
    bool is_drained;    // the box is: nothing starts
};

/* The line of a configuration that declares those GPUs. */
const char *serve_node(struct arena *a, const struct serve_content *c);

/* Write the store, and for each running job its run, kept by the process 'keeper'. Jobs are
 * numbered: first those that have ended, then those that run, wait and are held.
 */
int serve_fill(const char *dir, const struct serve_content *c, pid_t keeper, struct err *e);

/* What reports of a job's run carry. */
void serve_secret(int job, char out[SERVE_SECRET_SIZE]);

/* ---- daemon.c: the daemon ---- */

/* Jobs that report: each once a second, at its own moment in it. */
struct reporters {
    int fd;          // -1: nobody does
    int first, n;    // jobs
    int second;      // the next one
    double *at_s;    // (n) the moment, rising
    long n_sent, n_late, n_full;
};

struct test_daemon {
    struct arena arena;
    struct serve_content content;
    const char *dir, *config, *socket, *reports;
    pid_t daemon;      // 0: none runs
    pid_t stand_in;    // keeps every run, is every job, ignores everything; 0: none
    double ready_s;    // from exec to /readyz
    struct serve_conn conn;
    struct reporters reporters;
};

/* Make the directory 'name' in 'scratch' and what is in it. 'settings' are more lines of the
 * configuration.
 */
int daemon_make(struct test_daemon *r, const char *scratch, const char *name,
                const struct serve_content *c, const char *settings, struct err *e);
void daemon_release(struct test_daemon *r);    // ends what runs; the directory stays

/* Start the daemon and wait until it is ready, 60 s at most; end it. */
int daemon_start(struct test_daemon *r, struct err *e);
void daemon_stop(struct test_daemon *r);

/* Ask for /metrics, and find a number there; NaN: there is none of that name. */
int daemon_look(struct test_daemon *r, struct err *e);
double daemon_metric(const struct test_daemon *r, const char *name);

/* What the daemon has logged, in the daemon's arena. */
const char *daemon_log(struct test_daemon *r);

/* Look until a metric has reached a value. -ETIMEDOUT. */
int daemon_await(struct test_daemon *r, const char *name, double value, double limit_s,
                 struct err *e);

/* Seconds of CPU that the daemon has used, and its children that have ended. */
struct serve_cpu {
    double self_s, children_s;
    double wait_s;    // and that the loop's thread was ready and found no core free
};
struct serve_cpu daemon_cpu(const struct test_daemon *r);

/* Run a program to its end, its output up to 'size' bytes into 'out' (NULL: nowhere), and give how
 * long it took. -ETIMEDOUT: it was killed; -EREMOTEIO: it did not exit with 0; -ENOENT.
 */
int serve_run(char *const *argv, char *const *env, double limit_s, char *out, size_t size,
              double *took_s, struct err *e);

/* ---- serve.c: what came of it ---- */

/* The bench as it goes. */
struct serve_bench {
    const char *scratch;
    int scale;    // sizes are divided by this
    int runs;     // 0: as each part thinks best
    bool is_json;
    json_t *figures, *stalls;
    json_t *reports;     // what became of them; NULL: not run
    json_t *arrivals;    // what a cluster that fills up was like; NULL: not run
    bool has_no_slurm;
    double n_stalls, longest_ms;    // of all daemons
};

/* The median of 'values' (or the one value) with the smallest and the largest, beside the limit of
 * the figure 'name', which is in serve.c's table.
 */
void serve_tell(struct serve_bench *b, const char *name, struct samples *values);
void serve_tell_one(struct serve_bench *b, const char *name, double value);

/* A part that is one daemon, asked several times. It has a GPU for each job that runs, or 100. */
#define SERVE_FIGURES_MAX 6
typedef int serve_ask_f(struct serve_bench *b, struct test_daemon *r, struct samples *s,
                        struct err *e);
struct serve_part {
    const char *name;
    struct serve_content content;    // as a whole
    int runs;                        // unless it was said how many; 0: one, whatever was said
    const char *figures[SERVE_FIGURES_MAX];    // that asking adds to 's'
    serve_ask_f *ask;
    void (*remark)(struct serve_bench *b, struct test_daemon *r);    // NULL: nothing more to say
    int (*run)(struct serve_bench *b, struct err *e);                // or: all else
};
int serve_part_run(struct serve_bench *b, const struct serve_part *p, struct err *e);

/* What else a part has to say, a line of its own. */
void serve_remark(const struct serve_bench *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* How the loop did, of a daemon that is about to be stopped. */
int serve_note_loop(struct serve_bench *b, struct test_daemon *r, const char *part, struct err *e);

void serve_sleep_until(double at_s);    // on the stopwatch

int serve_scaled(const struct serve_bench *b, int n);

/* ---- parts in files of their own ---- */

serve_ask_f serve_submit, serve_report;                      // submit.c, reports.c
int serve_arrivals(struct serve_bench *b, struct err *e);    // arrivals.c
int serve_slurm(struct serve_bench *b, struct err *e);       // slurm.c

/* What became of the reports. */
void serve_remark_reports(struct serve_bench *b, struct test_daemon *r);

/* Let the daemon's jobs report, for 'n_seconds' in real time. reports.c */
int reporters_run(struct test_daemon *r, int n_seconds, struct err *e);
void reporters_close(struct reporters *p);

#endif
