#include "probe/pair/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"

enum { LINES = 10 };    // of its last words that are told

static int make_secret(char out[REPORT_SECRET_BYTES + 1], struct err *e)
{
    unsigned char bytes[REPORT_SECRET_BYTES / 2];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_set(e, EIO, "the kernel gives no random bytes for a secret");
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

/* What is of the job around us, and no business of the program's. */
static bool is_ours(const char *entry)
{
    static const char *const ours[] = { "GOGH_REPORTS=", "GOGH_JOB=",   "GOGH_RUN=",
                                        "GOGH_SECRET=",  "GOGH_NAME=",  "GOGH_STEPS_DONE=",
                                        "GOGH_RESTART=", "GOGH_BATCH=", "GOGH_WORKLOAD=" };

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strncmp(entry, ours[i], strlen(ours[i])) == 0)
            return true;
    return false;
}

static char **make_env(const struct pair_program *p, struct arena *a)
{
    size_t n = 0, kept = 0;
    char **env;

    while (environ[n])
        n++;
    env = ARENA_ARRAY(a, char *, n + 7);
    for (size_t i = 0; i < n; i++)
        if (!is_ours(environ[i]))
            env[kept++] = environ[i];
    env[kept++] = arena_printf(a, "GOGH_REPORTS=%s", p->address);
    env[kept++] = arena_printf(a, "GOGH_JOB=%d", p->job);
    env[kept++] = arena_printf(a, "GOGH_RUN=%d", p->run);
    env[kept++] = arena_printf(a, "GOGH_SECRET=%s", p->secret);
    env[kept++] = arena_strdup(a, "GOGH_STEPS_DONE=0");
    env[kept++] = arena_strdup(a, "GOGH_RESTART=0");
    return env;
}

int program_start(struct pair_program *p, struct arena *a, int run, double grace_s,
                  void (*at_orphaned)(void), struct err *e)
{
    struct guard_order o = { .argv = p->argv, .grace_s = grace_s, .at_orphaned = at_orphaned };
    int rc = make_secret(p->secret, e);

    if (rc < 0)
        return rc;
    p->run = run;
    p->is_unfit = false;
    p->n_words = 0;
    p->words[0] = '\0';
    o.env = make_env(p, a);
    rc = guard_start(&o, &p->guard, e);
    p->is_there = rc == 0;
    return rc;
}

bool program_hear(struct pair_program *p, const char *bytes, size_t len, struct job_report *out)
{
    if (job_report_parse(bytes, len, out) < 0 || out->job != p->job || out->run != p->run ||
        !p->is_there || !job_report_is_signed(out, p->secret))
        return false;
    p->is_unfit = p->is_unfit || out->is_unfit;
    return true;
}

static void keep_words(struct pair_program *p, const char *bytes, size_t n)
{
    const size_t skip = n > PROGRAM_WORDS_MAX ? n - PROGRAM_WORDS_MAX : 0;
    const size_t fresh = n - skip, room = PROGRAM_WORDS_MAX - fresh;
    const size_t old = p->n_words < room ? p->n_words : room;

    memmove(p->words, p->words + p->n_words - old, old);
    memcpy(p->words + old, bytes + skip, fresh);
    p->n_words = old + fresh;
    p->words[p->n_words] = '\0';
}

bool program_read_words(struct pair_program *p)
{
    char bytes[4096];
    ssize_t n = 0;

    /* As much as a pipe holds: whoever writes without end gets his turn again. */
    for (int i = 0; i < 16; i++) {
        n = read(p->guard.errors, bytes, sizeof bytes);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
        for (ssize_t k = 0; k < n; k++)
            bytes[k] = bytes[k] ? bytes[k] : ' ';    // the words are a string
        keep_words(p, bytes, (size_t)n);
    }
    return true;
}

const char *program_last_lines(const struct pair_program *p)
{
    size_t at = p->n_words;
    int lines = 0;

    while (at > 0 && p->words[at - 1] == '\n')    // of the end
        at--;
    while (at > 0 && (p->words[at - 1] != '\n' || ++lines < LINES))
        at--;
    return p->words + at;
}

void program_end_words(int code, char *out, size_t size)
{
    if (code == GUARD_STUCK)
        snprintf(out, size, "cannot be killed: it hangs in a driver");
    else if (code == GUARD_LOST)
        snprintf(out, size, "ended, and nobody knows how: its guard was killed");
    else if (WIFSIGNALED(code))
        snprintf(out, size, "ended by signal %d (%s)", WTERMSIG(code), strsignal(WTERMSIG(code)));
    else
        snprintf(out, size, "ended with exit status %d", WEXITSTATUS(code));
}
