#include "cli/period.h"

#include "base/arena.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/when.h"

static int add(struct client *c, const char *name, const char *text, const char **path,
               struct err *e)
{
    double s = 0;

    if (text == NULL)
        return 0;
    if (when_time(text, when_now(), false, &s, e) < 0)
        return err_prefix(e, "--%s", name);
    *path = client_with(c, *path, name, arena_printf(client_arena(c), "%.3f", s));
    return 0;
}

int period_path(const struct period *p, struct client *c, const char *path, const char **out,
                struct err *e)
{
    int rc = add(c, "from", p->from, &path, e);

    if (rc == 0)
        rc = add(c, "to", p->to, &path, e);
    *out = path;
    return rc;
}
