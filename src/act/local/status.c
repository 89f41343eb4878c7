#include "act/local/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/text.h"

/* ---- reading ---- */

/* The next word of '*line', which loses it; empty at the end. */
static struct slice next_word(struct slice *line)
{
    const char *blank = line->len ? memchr(line->at, ' ', line->len) : NULL;
    struct slice word = { line->at, blank ? (size_t)(blank - line->at) : line->len };
    const size_t used = word.len + (blank != NULL);

    line->at += used;
    line->len -= used;
    return word;
}

static bool next_long(struct slice *line, long low, long high, long *out)
{
    return text_to_long(next_word(line), low, high, out) == 0;
}

static bool next_process(struct slice *line, pid_t *pid, uint64_t *start)
{
    long p = 0, s = 0;

    if (!next_long(line, 1, INT_MAX, &p) || !next_long(line, 0, LONG_MAX, &s))
        return false;
    *pid = (pid_t)p;
    *start = (uint64_t)s;
    return true;
}

static bool next_time(struct slice *line, double *out)
{
    return text_to_double(next_word(line), out) == 0;
}

static void take_taken(struct slice line, struct status *s)
{
    struct slice boot;
    uint64_t start = 0;
    pid_t pid = 0;

    if (!next_process(&line, &pid, &start))
        return;
    boot = next_word(&line);
    if (boot.len != BOOT_ID_SIZE - 1 || memchr(boot.at, 0, boot.len))
        return;
    memcpy(s->boot, boot.at, boot.len);
    s->keeper_pid = pid;
    s->keeper_start = start;
    s->is_taken = true;
}

static void take_started(struct slice line, struct status *s)
{
    uint64_t start = 0;
    double time_s = 0;
    pid_t pid = 0;

    if (!next_process(&line, &pid, &start) || !next_time(&line, &time_s))
        return;
    s->pid = pid;
    s->start = start;
    s->started_s = time_s;
    s->is_started = true;
}

static const struct {
    const char *name;
    enum ended how;
    bool has_code;
} ends[] = {
    { "exit", ENDED_EXIT, true },        { "signal", ENDED_SIGNAL, true },
    { "timeout", ENDED_TIMEOUT, false }, { "stopped", ENDED_STOPPED, false },
    { "served", ENDED_SERVED, false },   { "failed", ENDED_FAILED, false },
};

static void take_ended(struct slice line, struct status *s)
{
    struct slice word;
    double time_s = 0;
    long code = 0;
    size_t i = 0;

    if (!next_time(&line, &time_s))
        return;
    word = next_word(&line);
    while (i < sizeof ends / sizeof *ends && !slice_is(word, ends[i].name))
        i++;
    if (i == sizeof ends / sizeof *ends || (ends[i].has_code && !next_long(&line, 0, 255, &code)))
        return;
    s->ended = ends[i].how;
    s->ended_s = time_s;
    s->code = (int)code;
    snprintf(s->text, sizeof s->text, "%.*s", (int)(line.len < 600 ? line.len : 600), line.at);
}

static void take_line(struct slice line, struct status *s)
{
    struct slice word = next_word(&line);

    if (slice_is(word, "taken"))
        take_taken(line, s);
    else if (slice_is(word, "started"))
        take_started(line, s);
    else if (slice_is(word, "stopping"))
        s->is_stopping = next_time(&line, &s->stopping_s) || s->is_stopping;
    else if (slice_is(word, "ended"))
        take_ended(line, s);
}

void status_parse(const char *text, size_t len, struct status *out)
{
    const char *end;

    *out = (struct status){ 0 };
    while (len > 0 && (end = memchr(text, '\n', len)) != NULL) {
        const size_t used = (size_t)(end - text);

        if (used < STATUS_LINE_MAX)
            take_line((struct slice){ text, used }, out);
        text += used + 1;
        len -= used + 1;
    }
}

int status_read(int dir, struct status *out)
{
    int fd = openat(dir, "status", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char text[STATUS_BYTES_MAX];
    ssize_t n;

    *out = (struct status){ 0 };
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    n = pread(fd, text, sizeof text, 0);
    if (n >= 0)
        status_parse(text, (size_t)n, out);
    else
        n = -errno;
    close(fd);
    return n < 0 ? (int)n : 0;
}

/* ---- what it means ---- */

bool status_is_incapable(const struct status *s)
{
    return (s->ended == ENDED_SIGNAL || (s->ended == ENDED_EXIT && s->code != 0)) && s->text[0];
}

bool status_is_bad(const struct status *s)
{
    return !status_is_incapable(s) &&
           (s->ended == ENDED_TIMEOUT || s->ended == ENDED_FAILED || s->ended == ENDED_SIGNAL ||
            (s->ended == ENDED_EXIT && s->code != 0));
}

/* As the CUDA and HIP runtimes say it of the call that failed. Not what PyTorch warns of when it
 * starts ("... is not compatible with the current PyTorch installation"): such a program may run
 * all the same, and fail for another reason.
 */
const char *status_incapable_words(const char *text, size_t len)
{
    static const char *const words[] = {
        "no kernel image is available for execution on the device",
        "CUDA driver version is insufficient for CUDA runtime version",
        "device kernel image is invalid",
        "hipErrorNoBinaryForGpu",
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (memmem(text, len, words[i], strlen(words[i])))
            return words[i];
    return NULL;
}

/* ---- writing ---- */

int status_open(int dir)
{
    int fd = openat(dir, "status", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);

    /* How it ended must find room on a disk that has filled up since. Not every file system can. */
    if (fd >= 0)
        (void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, STATUS_BYTES_MAX);
    return fd >= 0 ? fd : -errno;
}

static bool is_torn(int fd)
{
    struct stat st;
    char last = '\n';

    return fstat(fd, &st) == 0 && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 &&
           last != '\n';
}

int status_append(int fd, const char *format, ...)
{
    char line[STATUS_LINE_MAX + 2];
    const int skip = is_torn(fd) ? 0 : 1;    // a newline in front ends the torn line
    va_list args;
    ssize_t sent;
    size_t n;

    line[0] = '\n';
    va_start(args, format);
    vsnprintf(line + 1, STATUS_LINE_MAX - 1, format, args);
    va_end(args);
    for (n = 1; line[n]; n++)
        if ((unsigned char)line[n] < ' ' || line[n] == 0x7f)
            line[n] = '?';    // of a program's name, say
    line[n++] = '\n';
    sent = write(fd, line + skip, n - (size_t)skip);
    if (sent < 0)
        return -errno;
    if ((size_t)sent != n - (size_t)skip)
        return -ENOSPC;
    return fdatasync(fd) == 0 || errno == EINVAL ? 0 : -errno;
}
