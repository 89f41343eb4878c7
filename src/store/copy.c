/* copy.c - a store as it is now, in a file of its own. */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "store/inner.h"

static int copy_fail(sqlite3 *to, const char *path, struct err *e)
{
    int code = (sqlite3_errcode(to) & 0xff) == SQLITE_FULL ? ENOSPC : EIO;

    return err_set(e, code, "%s: a copy of the store: %s; make room there, or name another place",
                   path, sqlite3_errmsg(to));
}

static int copy_into(struct store *s, sqlite3 *to, const char *path, struct err *e)
{
    sqlite3_backup *b = sqlite3_backup_init(to, "main", s->db, "main");

    if (b == NULL)
        return copy_fail(to, path, e);
    sqlite3_backup_step(b, -1);
    if (sqlite3_backup_finish(b) != SQLITE_OK)
        return copy_fail(to, path, e);
    if (sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
        return copy_fail(to, path, e);
    return 0;
}

int store_copy(struct store *s, const char *path, struct err *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    sqlite3 *to = NULL;

    assert(!s->is_transaction);
    if (fd < 0)
        return err_set(e, errno, "%s: %s; move it away, or name another place", path,
                       strerror(errno));
    close(fd);
    int rc = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK
                 ? copy_into(s, to, path, e)
                 : copy_fail(to, path, e);
    sqlite3_close(to);
    if (rc < 0)
        unlink(path);
    return rc;
}
