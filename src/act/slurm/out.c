/* The file that an output pattern of Slurm's means: Slurm keeps the pattern, and fills it in on the
 * node.
 */
#include "act/slurm/view.h"

#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/text/text.h"

#define PATH_ROOM 4096
#define WIDTH_MAX 10           // Slurm's own; more digits are not looked at
#define NO_TASK 4294967294u    // what Slurm writes for %a of a job that is of no array

/* The node that the script runs on: the first one, without its domain. Slurm has the host's name
 * here, which is the node's unless slurm.conf says NodeHostname.
 */
static bool put_node(struct buf *out, const struct slurm_job *j)
{
    const size_t len = strcspn(j->nodes, ",.");

    if (len == 0)
        return false;
    buf_append(out, j->nodes, len);
    return true;
}

/* One '%' and its letter. False: none that is known, or not yet. */
static bool put_mark(struct buf *out, const struct slurm_job *j, const char *user, char mark,
                     int width)
{
    const bool is_task = j->array >= 0 && j->task >= 0;
    const unsigned long task = is_task ? (unsigned long)j->task : NO_TASK;

    switch (mark) {
    case 'j':
    case 'J':    // a script is no step: no number behind it
        buf_printf(out, "%0*ld", width, j->id);
        return true;
    case 'A':
        buf_printf(out, "%0*ld", width, is_task ? j->array : j->id);
        return true;
    case 'a':
        buf_printf(out, "%0*lu", width, task);
        return true;
    case 'b':
        buf_printf(out, "%0*lu", width, task % 10);
        return true;
    case 'n':
    case 't':    // the script's own; steps have others
        buf_printf(out, "%0*d", width, 0);
        return true;
    case 's':
        buf_puts(out, "batch");
        return true;
    case 'x':
        buf_puts(out, j->name);
        return true;
    case 'u':
        buf_puts(out, user);
        return true;
    case 'N':
        return put_node(out, j);
    default:
        return false;
    }
}

/* A number before the letter is how many digits there are at least, as in "%4j". */
static const char *put_pattern(struct buf *out, const struct slurm_job *j, const char *user,
                               const char *p)
{
    const size_t digits = strspn(p + 1, "0123456789");
    const char *mark = p + 1 + digits;
    long width = 0;

    if (p[1] == '%') {
        buf_puts(out, "%");
        return p + 2;
    }
    if (digits > 0 && text_to_long((struct slice){ p + 1, digits }, 0, WIDTH_MAX, &width) < 0)
        width = WIDTH_MAX;
    if (*mark && put_mark(out, j, user, *mark, (int)width))
        return mark + 1;
    buf_append(out, p, 1);
    return p + 1;
}

const char *slurm_out_path(struct arena *a, const struct slurm_job *j, const char *user)
{
    const bool is_plain = strchr(j->out, '\\') != NULL;    // Slurm's way to say: no patterns
    struct buf out;

    if (!*j->out || (!is_plain && !strchr(j->out, '%') && j->out[0] == '/'))
        return j->out;
    buf_init(&out, PATH_ROOM);
    if (j->out[0] != '/' && j->cwd && j->cwd[0] == '/')
        buf_printf(&out, "%s/", j->cwd);
    for (const char *p = j->out; *p;) {
        if (!is_plain && *p == '%') {
            p = put_pattern(&out, j, user, p);
            continue;
        }
        if (*p != '\\')
            buf_append(&out, p, 1);
        p++;
    }
    return buf_keep(&out, a);
}
