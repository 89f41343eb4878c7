/* Requests are checked before anything is run: words that become arguments cannot be options. */
#include "act/driver/task_inner.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "act/driver/hosts.h"
#include "base/err.h"

const char *task_get(const struct task *t, const char *key)
{
    return wire_get(&t->m, key);
}

/* A word that is safe as a part of an argument: it cannot be an option, nor end one. */
static bool is_word(const char *s, const char *also)
{
    if (!s || !*s || *s == '-')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr(also, *s))
            return false;
    return true;
}

/* "12" or "12_3". */
static bool is_id(const char *s)
{
    const size_t n = strspn(s, "0123456789");
    const size_t m = s[n] == '_' ? strspn(s + n + 1, "0123456789") : 0;

    return n > 0 && n <= 18 && m <= 18 && (s[n] == '\0' || (m > 0 && s[n + 1 + m] == '\0'));
}

int task_check_ids(const struct task *t, struct err *e)
{
    if (t->n_ids == 0)
        return err_set(e, EINVAL, "'%s' wants 'id'", t->m.verb);
    for (int i = 0; i < t->n_ids; i++)
        if (!is_id(t->ids[i]))
            return err_set(e, EINVAL, "'%.40s' is not a job's number, or ARRAY_TASK", t->ids[i]);
    return 0;
}

static int check_id(const struct task *t, struct err *e)
{
    if (t->n_ids != 1)
        return err_set(e, EINVAL, "'%s' wants one 'id'", t->m.verb);
    if (task_get(t, "uid") && wire_get_long(&t->m, "uid", -1) < 0)
        return err_set(e, EINVAL, "'uid' must be a number");
    return task_check_ids(t, e);
}

int task_check_hello(const struct task *t, struct err *e)
{
    if (wire_get_long(&t->m, "protocol", 0) != 1)
        return err_set(e, EINVAL, "'hello' wants protocol=1, which is all this driver speaks");
    return 0;
}

int task_check_partitions(const struct task *t, struct err *e)
{
    for (int i = 0; i < t->m.n_pairs; i++)
        if (strcmp(t->m.pairs[i].key, "partition") == 0 && !is_word(t->m.pairs[i].value, "._-"))
            return err_set(e, EINVAL, "'%.40s' is not a partition's name", t->m.pairs[i].value);
    return 0;
}

int task_check_pin(const struct task *t, struct err *e)
{
    const char *nodes = task_get(t, "nodes"), *gres = task_get(t, "gres");
    int rc = check_id(t, e);

    if (rc < 0)
        return rc;
    if (!nodes || !hosts_are_plain(nodes))
        return err_set(e, EINVAL, "'pin' wants nodes=a,b");
    if (gres && *gres && !is_word(gres, ":,_.-"))
        return err_set(e, EINVAL, "'%.40s' is not a gres", gres);
    if (task_get(t, "n_nodes") && wire_get_long(&t->m, "n_nodes", 0) < 1)
        return err_set(e, EINVAL, "'n_nodes' must be a number from 1 on");
    return 0;
}

int task_check_note(const struct task *t, struct err *e)
{
    if (task_get(t, "nodes"))
        return err_set(e, EINVAL, "'note' wants no 'nodes': that would be a 'pin'");
    if (!task_get(t, "admin"))
        return err_set(e, EINVAL, "'note' wants 'admin'");
    return check_id(t, e);
}

int task_check_signal(const struct task *t, struct err *e)
{
    if (!is_word(task_get(t, "signal"), ""))
        return err_set(e, EINVAL, "'signal' wants signal=USR1, or another one's name");
    return task_check_ids(t, e);
}

int task_check_power(const struct task *t, struct err *e)
{
    const char *state = task_get(t, "state");
    int n = 0;

    for (int i = 0; i < t->m.n_pairs; i++) {
        const char *name = t->m.pairs[i].value;

        if (strcmp(t->m.pairs[i].key, "node") != 0)
            continue;
        if (!hosts_are_plain(name))
            return err_set(e, EINVAL, "'%.40s' is not a node's name", name);
        n++;
    }
    if (n == 0 || !state || (strcmp(state, "up") != 0 && strcmp(state, "down") != 0))
        return err_set(e, EINVAL, "'power' wants 'node', and state=up or down");
    return 0;
}

int task_check_submit(const struct task *t, struct err *e)
{
    const char *cwd = task_get(t, "cwd");

    if (!is_word(task_get(t, "token"), "-_") || !task_get(t, "name") || !task_get(t, "script"))
        return err_set(e, EINVAL, "'submit' wants 'token', 'name' and 'script'");
    if (!is_word(task_get(t, "partition"), "._-"))
        return err_set(e, EINVAL, "'submit' wants a 'partition'");
    if (cwd && *cwd != '/')
        return err_set(e, EINVAL, "'%.40s' is a 'cwd' that does not begin with '/'", cwd);
    for (int i = 0; i < 2; i++) {
        const long n = wire_get_long(&t->m, i ? "gid" : "uid", -1);

        if (n < 0 || n >= (long)UINT_MAX)
            return err_set(e, EINVAL, "'submit' wants the numbers 'uid' and 'gid'");
    }
    for (int i = 0; i < t->m.n_pairs; i++) {
        const char *value = t->m.pairs[i].value;

        if (strcmp(t->m.pairs[i].key, "env") == 0 && (*value == '=' || !strchr(value, '=')))
            return err_set(e, EINVAL, "'%.40s' is not NAME=value", value);
    }
    return 0;
}
