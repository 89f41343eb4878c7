#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum log_level log_limit = LOG_WARN;

void log_set_level(enum log_level level)
{
    log_limit = level;
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const names[] = { "error", "warning", "info", "debug" };
    const int saved = errno;    // logging a failure must not change it
    char line[2048];
    va_list args;
    ssize_t sent;
    size_t n;

    if (level > log_limit)
        return;
    n = (size_t)snprintf(line, sizeof line, "gogh: %s: ", names[level]);
    va_start(args, format);
    vsnprintf(line + n, sizeof line - n - 1, format, args);
    va_end(args);
    n = strlen(line);
    line[n++] = '\n';
    sent = write(STDERR_FILENO, line, n);
    (void)sent;    // a closed stderr: there is nobody left to tell
    errno = saved;
}
