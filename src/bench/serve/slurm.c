/* slurm.c - the same questions to Slurm and to us, in turn, where there is one. */
#include "bench/serve/serve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/stats.h"

#define ASKS 20    // of each program
#define ASK_S 5.0

static bool has_slurm(void)
{
    char *argv[] = { "squeue", NULL };
    struct err e = { 0 };
    double took_s = 0;

    return serve_run(argv, NULL, ASK_S, NULL, 0, &took_s, &e) == 0;
}

static int time_program(char *const *argv, char *const *env, char *out, size_t size,
                        struct samples *ms, struct err *e)
{
    double took_s = 0;
    int rc = serve_run(argv, env, ASK_S, out, size, &took_s, e);

    if (rc == 0)
        samples_add(ms, 1e3 * took_s);
    return rc;
}

static void cancel(const char *id)
{
    char number[32];
    char *argv[] = { "scancel", number, NULL };
    struct err e = { 0 };
    double took_s = 0;

    snprintf(number, sizeof number, "%.*s", (int)strspn(id, "0123456789"), id);
    if (*number)
        (void)serve_run(argv, NULL, ASK_S, NULL, 0, &took_s, &e);
}

enum { SBATCH, SUBMIT, SQUEUE, JOBS, N_PROGRAMS };
static const char *const figures[N_PROGRAMS] = { "slurm-sbatch", "slurm-submit", "slurm-squeue",
                                                 "slurm-jobs" };

/* In turn, so that both see the same machine. What Slurm was given is held, and taken back. */
static int ask_both(const char *gogh, const char *socket, struct samples *m, struct err *e)
{
    char where[4200], id[64] = "";
    char *env[] = { where, NULL };
    char *sbatch[] = { "sbatch", "--parsable", "--hold", "--wrap", "true", NULL };
    char *squeue[] = { "squeue", NULL };
    char *submit[] = { (char *)gogh, "submit", "--hold", "--workload", "resnet50",
                       "--steps",    "1000",   "--",     "true",       NULL };
    char *jobs[] = { (char *)gogh, "jobs", NULL };

    snprintf(where, sizeof where, "GOGH_SOCKET=%s", socket);
    int rc = time_program(sbatch, NULL, id, sizeof id, &m[SBATCH], e);
    if (rc == 0)
        rc = time_program(submit, env, NULL, 0, &m[SUBMIT], e);
    if (rc == 0)
        rc = time_program(squeue, NULL, NULL, 0, &m[SQUEUE], e);
    if (rc == 0)
        rc = time_program(jobs, env, NULL, 0, &m[JOBS], e);
    cancel(id);
    return rc;
}

int serve_slurm(struct serve_bench *b, struct err *e)
{
    const struct serve_content content = { .n_gpus = 100 };
    struct samples m[N_PROGRAMS] = { 0 };
    struct test_daemon r;
    char self[4096];

    if (!has_slurm()) {
        serve_remark(b, "slurm: left out, for 'squeue' does not answer here");
        b->has_no_slurm = true;
        return 0;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    int rc = daemon_make(&r, b->scratch, "slurm", &content, "", e);
    if (rc == 0)
        rc = daemon_start(&r, e);
    for (int i = 0; i < serve_runs(b, ASKS) && rc == 0; i++)
        rc = ask_both(self, r.socket, m, e);
    if (rc == 0) {
        for (int i = 0; i < N_PROGRAMS; i++)
            serve_tell(b, figures[i], &m[i]);
        rc = serve_note_loop(b, &r, "slurm", e);
    }
    daemon_release(&r);
    for (int i = 0; i < N_PROGRAMS; i++)
        samples_release(&m[i]);
    return rc;
}
