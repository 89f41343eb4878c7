/* copy.h - a store as it is now, in a file of its own.
 *
 * Made by: whoever wants to begin again from here later (daemon/service/record.h). The copy is a
 * store like any other; it keeps no log beside it until somebody writes to it.
 */
#ifndef STORE_COPY_H
#define STORE_COPY_H

struct err;
struct store;

/* Copy what 's' has, outside of a transaction, to 'path', which must not exist; it is for its
 * owner's eyes only, since jobs' commands are in it. Takes as long as writing the file does. On an
 * error nothing is left there. -EEXIST, -ENOSPC, -EIO, ...
 */
int store_copy(struct store *s, const char *path, struct err *e);

#endif
