/* slurm.c - the same questions to Slurm and to us, in turn, where there is one. */
#include "bench/serve/serve.h"

#include <stdio.h>
#include <string.h>

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

enum { SBATCH, SUBMIT, SQUEUE, JOBS };

/* In turn, so that both see the same machine. What Slurm was given is held, and taken back. */
static int ask_both(struct serve_bench *b, struct test_daemon *r, struct samples *m, struct err *e)
{
    char gogh[] = "/proc/self/exe", where[4200], id[64] = "";
    char *env[] = { where, NULL };
    char *sbatch[] = { "sbatch", "--parsable", "--hold", "--wrap", "true", NULL };
    char *squeue[] = { "squeue", NULL };
    char *submit[] = { gogh,      "submit", "--hold", "--workload", "resnet50",
                       "--steps", "1000",   "--",     "true",       NULL };
    char *jobs[] = { gogh, "jobs", NULL };

    (void)b;
    snprintf(where, sizeof where, "GOGH_SOCKET=%s", r->socket);
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
    static const struct serve_part part = {
        .name = "slurm",
        .runs = ASKS,
        .figures = { "slurm-sbatch", "slurm-submit", "slurm-squeue", "slurm-jobs" },
        .ask = ask_both,
    };

    if (has_slurm())
        return serve_part_run(b, &part, e);
    serve_remark(b, "slurm: left out, for 'squeue' does not answer here");
    b->has_no_slurm = true;
    return 0;
}
