/* auth.h - who is asking, and what they may do.
 *
 * On the Unix socket the kernel says who the peer is. Over TCP a bearer token does; tokens are
 * kept as SHA-256 digests in a file of lines 'NAME SCOPE OWNER DIGEST' (docs/formats/tokens.md).
 * Made by: auth_open, from the configuration; read anew on SIGHUP.
 */
#ifndef DAEMON_CONFIG_AUTH_H
#define DAEMON_CONFIG_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/map.h"

struct arena;
struct auth;
struct config;
struct err;

/* Each may do all that those before it may. */
enum scope {
    SCOPE_NONE,    // what needs no name: /healthz, /readyz, /openapi.json
    SCOPE_READ,
    SCOPE_SUBMIT,     // and cancel, hold and release one's own
    SCOPE_OPERATE,    // everybody's jobs; drain nodes
    SCOPE_ADMIN,
};
extern const char *const scope_names[];    // "none", "read", ..., NULL
const char *scope_name(enum scope s);
int scope_by_name(const char *name);    // -1: there is none

struct caller {
    enum scope scope;
    const char *owner;    // account that jobs of theirs belong to; NULL: nobody
    uid_t uid;            // of that account; (uid_t)-1: it has none here
    gid_t gid;
    const char *token;    // the token's name; NULL: came by the socket
};

/* Keeps nothing of 'c'. Refuses a tokens file that others may read or somebody else owns. */
int auth_open(const struct config *c, struct auth **out, struct err *e);
void auth_close(struct auth *a);    // NULL is fine

/* The peer of a Unix socket: the daemon's own user and root are admins, users and groups that
 * the configuration names get what it says (a line about the user counts before those about groups,
 * of which the highest does), everybody else its 'socket_scope'. An account without a name is
 * "uid:1234". -EAGAIN: the system cannot say who it is (struct accounts). Texts go into 'arena'.
 */
int auth_peer(struct auth *a, struct arena *arena, int fd, struct caller *out, struct err *e);

/* The holder of a token ("Bearer ..." without the word); compared in constant time. -EACCES. */
int auth_token(const struct auth *a, struct arena *arena, const char *token, struct caller *out,
               struct err *e);

/* One line of the tokens file. */
struct auth_row {
    const char *name;
    enum scope scope;
    const char *owner;
    const char *digest;    // 64 hex digits
    uid_t uid;             // of the owner's account, once it was looked up
    gid_t gid;
};

#define AUTH_TOKENS_MAX (1L << 20)    // bytes of the file: some 9,000 tokens

/* Lines of a tokens file, into 'arena'; 'file' is for messages. -EINVAL with line and cure. */
int auth_parse(struct arena *arena, const char *file, const char *text, size_t len,
               struct auth_row **out, int *n, struct err *e);

/* The line of a row, with its newline. */
const char *auth_line(struct arena *arena, const struct auth_row *r);

/* A new token (printable, 256 bits) and the line for the tokens file, both into 'arena'.
 * -EINVAL: not a name, or a scope that a token cannot have.
 */
int auth_make_token(struct arena *arena, const char *name, enum scope scope, const char *owner,
                    const char **token, const char **line, struct err *e);

/* The account called 'name': its uid and gid; false: there is none, and both are -1. */
bool account_find(const char *name, uid_t *uid, gid_t *gid);

/* An account, as the system has it. */
struct account {
    char *name;        // heap; NULL: the system has not said yet
    double until_s;    // on the stopwatch: ask again then
    uid_t uid;
    gid_t gid;
    bool has_scope;    // of a peer, once it was found
    enum scope scope;
};

/* Accounts that were asked about: asking may be slow where a directory service answers, so what the
 * system says is remembered for AUTH_FRESH_S. While it does not answer, what it said before goes on
 * to count. When there are ACCOUNTS_MAX all are forgotten: any local user may come as many.
 */
#define AUTH_FRESH_S 600.0
#define ACCOUNTS_MAX 4096
struct accounts {
    struct map_u64 by_uid;
    struct account *list;    // (n)
    int n, cap;
};
void accounts_release(struct accounts *a);

/* 'uid', until the next one is asked for; NULL: the system never said anything. Of an account that
 * it does not have the name is "uid:1234", and the group 'otherwise'.
 */
struct account *accounts_get(struct accounts *a, uid_t uid, gid_t otherwise);

#endif
