#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void err_fill(struct err *e, int code, const char *format, ...)
{
    const int was = errno;
    va_list args;

    assert(code > 0);
    if (e == NULL)
        return;
    e->code = code;
    va_start(args, format);
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    errno = was;
}

int err_prefix(struct err *e, const char *format, ...)
{
    char tail[sizeof e->text];
    const size_t max = sizeof e->text;
    va_list args;
    size_t n;

    memcpy(tail, e->text, max);
    va_start(args, format);
    vsnprintf(e->text, max, format, args);
    va_end(args);
    n = strlen(e->text);
    snprintf(e->text + n, max - n, ": %s", tail);
    return -e->code;
}
