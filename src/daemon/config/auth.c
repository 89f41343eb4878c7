#include "daemon/config/auth.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/grow.h"
#include "base/text/text.h"
#include "base/text/words.h"
#include "daemon/config/config.h"

#define GROUPS_MAX 1024         // of one user; those beyond are not looked at
#define ENTRY_MAX (64 << 10)    // bytes of one passwd entry
#define DIGEST_BYTES 64
#define TOKEN_BYTES 32

struct auth {
    struct arena arena;
    struct auth_row *tokens;    // (n_tokens)
    int n_tokens;
    struct config_allow *allow;    // (n_allow)
    int n_allow;
    enum scope socket_scope;
    uid_t self;
    struct accounts peers;
};

const char *const scope_names[] = { "none", "read", "submit", "operate", "admin", NULL };

const char *scope_name(enum scope s)
{
    return scope_names[s];
}

int scope_by_name(const char *name)
{
    return text_find(scope_names, SCOPE_ADMIN + 1, name);
}

/* ---- the tokens file ---- */

static bool is_digest(struct slice s)
{
    if (s.len != DIGEST_BYTES)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (strchr("0123456789abcdef", s.at[i]) == NULL || s.at[i] == '\0')
            return false;
    return true;
}

static int parse_row(struct words *w, struct auth_row *out, struct err *e)
{
    const char *scope;

    for (int i = 0; i < w->n; i++)
        if (w->word[i].key.at != NULL)
            return err_set(e, EINVAL, "%s:%d: want 'NAME SCOPE OWNER DIGEST', not 'x=y'", w->name,
                           w->line);
    if (w->n != 4)
        return err_set(e, EINVAL, "%s:%d: want 'NAME SCOPE OWNER DIGEST', four words, not %d",
                       w->name, w->line, w->n);
    out->name = words_name(w, w->word[0].value);
    out->owner = words_name(w, w->word[2].value);
    if (out->name == NULL || out->owner == NULL) {
        const struct slice bad = w->word[out->name == NULL ? 0 : 2].value;

        return err_set(e, EINVAL, "%s:%d: '%.*s' is no name: 1 to 200 printable bytes", w->name,
                       w->line, (int)(bad.len < 60 ? bad.len : 60), bad.at);
    }
    scope = words_name(w, w->word[1].value);
    if (scope == NULL || scope_by_name(scope) <= SCOPE_NONE)
        return err_set(e, EINVAL, "%s:%d: the scope must be read, submit, operate or admin",
                       w->name, w->line);
    out->scope = (enum scope)scope_by_name(scope);
    if (!is_digest(w->word[3].value))
        return err_set(e, EINVAL,
                       "%s:%d: the digest must be 64 lower-case hex digits; 'gogh token new' makes "
                       "the line",
                       w->name, w->line);
    out->digest = arena_strndup(w->arena, w->word[3].value.at, DIGEST_BYTES);
    return 0;
}

static bool is_there(const struct auth_row *rows, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return true;
    return false;
}

int auth_parse(struct arena *arena, const char *file, const char *text, size_t len,
               struct auth_row **out, int *n, struct err *e)
{
    struct auth_row *rows = NULL, row;
    struct words w;
    int cap = 0, count = 0, rc;

    words_open(&w, arena, file, text, len);
    while ((rc = words_next(&w, e)) > 0) {
        row = (struct auth_row){ .uid = (uid_t)-1, .gid = (gid_t)-1 };    // nobody's yet
        rc = parse_row(&w, &row, e);
        if (rc == 0 && is_there(rows, count, row.name))
            rc = err_set(e, EINVAL, "%s:%d: there is a token '%s' already: use another name", file,
                         w.line, row.name);
        if (rc < 0)
            break;
        ARENA_GROW(arena, rows, count, cap);
        rows[count++] = row;
    }
    if (rc == 0) {
        *out = rows;
        *n = count;
    }
    return rc;
}

/* Whoever can read the digests can do nothing with them, but whoever can write may do everything.
 */
static int check_file(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return err_set(e, errno, "%s: %s; 'gogh token new' makes the file", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, EACCES, "%s: the tokens must be in a plain file", path);
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return err_set(e, EACCES, "%s: must belong to root or to the daemon's user: chown root %s",
                       path, path);
    if ((st.st_mode & (S_IRWXO | S_IWGRP)) != 0)
        return err_set(e, EACCES, "%s: others may read or write it: chmod 600 %s", path, path);
    return 0;
}

const char *auth_line(struct arena *arena, const struct auth_row *r)
{
    struct buf b;

    buf_init(&b, 4096);
    (void)words_put(&b, r->name);
    (void)buf_printf(&b, " %s ", scope_name(r->scope));
    (void)words_put(&b, r->owner);
    (void)buf_printf(&b, " %s\n", r->digest);
    return buf_keep(&b, arena);
}

/* ---- opening ---- */

bool account_find(const char *name, uid_t *uid, gid_t *gid)
{
    char *room = heap_array(ENTRY_MAX, 1);
    struct passwd entry, *found = NULL;

    *uid = (uid_t)-1;
    *gid = (gid_t)-1;
    if (getpwnam_r(name, &entry, room, ENTRY_MAX, &found) == 0 && found != NULL) {
        *uid = found->pw_uid;
        *gid = found->pw_gid;
    }
    free(room);
    return *uid != (uid_t)-1;
}

static int open_tokens(struct auth *a, const char *path, struct err *e)
{
    const char *text = NULL;
    size_t len = 0;
    int rc = check_file(path, e);

    if (rc == 0)
        rc = file_read_text(&a->arena, path, NULL, AUTH_TOKENS_MAX, &text, &len, e);
    if (rc == 0)
        rc = auth_parse(&a->arena, path, text, len, &a->tokens, &a->n_tokens, e);
    for (int i = 0; i < a->n_tokens; i++)
        account_find(a->tokens[i].owner, &a->tokens[i].uid, &a->tokens[i].gid);
    return rc;
}

int auth_open(const struct config *c, struct auth **out, struct err *e)
{
    struct auth *a = heap_array(1, sizeof *a);

    arena_init(&a->arena);
    a->self = geteuid();
    a->socket_scope = (enum scope)c->socket_scope;
    a->n_allow = c->n_allow;
    a->allow = ARENA_ARRAY(&a->arena, struct config_allow, (size_t)c->n_allow);
    for (int i = 0; i < c->n_allow; i++) {
        a->allow[i] = c->allow[i];
        a->allow[i].name = arena_strdup(&a->arena, c->allow[i].name);
    }
    if (c->tokens != NULL && open_tokens(a, c->tokens, e) < 0) {
        auth_close(a);
        return -e->code;
    }
    *out = a;
    return 0;
}

void auth_close(struct auth *a)
{
    if (a == NULL)
        return;
    accounts_release(&a->peers);
    arena_release(&a->arena);
    free(a);
}

/* ---- peers of the socket ---- */

static bool is_member(const char *group, const gid_t *groups, int n)
{
    char *room = heap_array(ENTRY_MAX, 1);
    struct group entry, *found = NULL;
    bool is = false;

    if (getgrnam_r(group, &entry, room, ENTRY_MAX, &found) == 0 && found != NULL)
        for (int i = 0; i < n && !is; i++)
            is = groups[i] == found->gr_gid;
    free(room);
    return is;
}

/* What the configuration says of groups; -1: nothing. */
static int group_scope(const struct auth *a, const char *name, gid_t gid)
{
    gid_t *groups = heap_array(GROUPS_MAX, sizeof *groups);
    int n = GROUPS_MAX, scope = -1;

    if (getgrouplist(name, gid, groups, &n) < 0)
        n = GROUPS_MAX;    // the first ones are there
    for (int i = 0; i < a->n_allow; i++)
        if (a->allow[i].is_group && a->allow[i].scope > scope &&
            is_member(a->allow[i].name, groups, n))
            scope = a->allow[i].scope;
    free(groups);
    return scope;
}

static enum scope peer_scope(const struct auth *a, uid_t uid, const char *name, gid_t gid)
{
    bool has_groups = false;
    int scope = -1;

    if (uid == 0 || uid == a->self)
        return SCOPE_ADMIN;
    for (int i = 0; i < a->n_allow; i++) {
        if (!a->allow[i].is_group && strcmp(a->allow[i].name, name) == 0)
            return (enum scope)a->allow[i].scope;
        has_groups = has_groups || a->allow[i].is_group;
    }
    if (has_groups)
        scope = group_scope(a, name, gid);
    return scope >= 0 ? (enum scope)scope : a->socket_scope;
}

int auth_peer(struct auth *a, struct arena *arena, int fd, struct caller *out, struct err *e)
{
    struct ucred peer = { 0 };
    socklen_t len = sizeof peer;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return err_set(e, EACCES, "who is the peer of the socket: %s", strerror(errno));
    struct account *k = accounts_get(&a->peers, peer.uid, peer.gid);
    if (k == NULL)
        return err_set(e, EAGAIN,
                       "the system cannot say who user %u is now: come back soon, or look at its "
                       "directory service",
                       (unsigned)peer.uid);
    if (!k->has_scope)
        k->scope = peer_scope(a, k->uid, k->name, k->gid);
    k->has_scope = true;
    *out = (struct caller){
        .scope = k->scope,
        .owner = arena_strdup(arena, k->name),
        .uid = k->uid,
        .gid = k->gid,
    };
    return 0;
}

/* ---- accounts ---- */

void accounts_release(struct accounts *a)
{
    for (int i = 0; i < a->n; i++)
        free(a->list[i].name);
    free(a->list);
    map_u64_release(&a->by_uid);
    *a = (struct accounts){ 0 };
}

/* Ask the system about 'uid', and keep what it says; if it says nothing now, 'k' stays. */
static void account_learn(struct account *k, uid_t uid, gid_t otherwise)
{
    char *room = heap_array(ENTRY_MAX, 1);
    struct passwd entry, *found = NULL;
    char name[32];

    snprintf(name, sizeof name, "uid:%u", (unsigned)uid);
    int rc = getpwuid_r(uid, &entry, room, ENTRY_MAX, &found);
    if (rc == 0 || rc == ENOENT || rc == ESRCH) {
        free(k->name);
        k->name = heap_text(found != NULL ? found->pw_name : name);
        k->uid = uid;
        k->gid = found != NULL ? found->pw_gid : otherwise;
        k->until_s = clock_stopwatch_s() + AUTH_FRESH_S;
        k->has_scope = false;
    }
    free(room);
}

struct account *accounts_get(struct accounts *a, uid_t uid, gid_t otherwise)
{
    int i = map_u64_get(&a->by_uid, uid);

    if (i < 0 && a->n == ACCOUNTS_MAX)
        accounts_release(a);
    if (i < 0) {
        GROW(a->list, a->n, a->cap);
        i = a->n++;
        a->list[i] = (struct account){ 0 };
        map_u64_set(&a->by_uid, uid, i);
    }
    struct account *k = &a->list[i];
    if (k->name == NULL || clock_stopwatch_s() > k->until_s)
        account_learn(k, uid, otherwise);
    return k->name != NULL ? k : NULL;
}

/* ---- tokens ---- */

/* Looks at every byte, whatever the first ones are. */
static bool is_same(const char *a, const char *b)
{
    volatile unsigned char differs = 0;

    for (int i = 0; i < DIGEST_BYTES; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

int auth_token(const struct auth *a, struct arena *arena, const char *token, struct caller *out,
               struct err *e)
{
    const struct auth_row *found = NULL;
    char digest[DIGEST_BYTES + 1];

    file_digest(token, strlen(token), digest);
    for (int i = 0; i < a->n_tokens; i++)    // all of them, so that time tells nothing
        if (is_same(a->tokens[i].digest, digest))
            found = &a->tokens[i];
    if (found == NULL)
        return err_set(e, EACCES, "nobody has this token; 'gogh token list' names those there are");
    *out = (struct caller){
        .scope = found->scope,
        .owner = arena_strdup(arena, found->owner),
        .uid = found->uid,
        .gid = found->gid,
        .token = arena_strdup(arena, found->name),
    };
    return 0;
}

/* 32 bytes as 43 letters of base64url. */
static void spell(const unsigned char *bytes, char *out)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned held = 0;
    int n_bits = 0;

    for (int i = 0; i < TOKEN_BYTES; i++) {
        held = (held << 8 | bytes[i]) & 0xffff;
        for (n_bits += 8; n_bits >= 6; n_bits -= 6)
            *out++ = letters[held >> (n_bits - 6) & 63];
    }
    *out++ = letters[held << (6 - n_bits) & 63];
    *out = '\0';
}

int auth_make_token(struct arena *arena, const char *name, enum scope scope, const char *owner,
                    const char **token, const char **line, struct err *e)
{
    unsigned char bytes[TOKEN_BYTES];
    char spelt[48], digest[DIGEST_BYTES + 1];
    const struct auth_row row = { .name = name, .scope = scope, .owner = owner, .digest = digest };

    if (!text_is_name(slice_of(name)) || !text_is_name(slice_of(owner)))
        return err_set(e, EINVAL, "'%.60s' is no name: 1 to 200 printable bytes",
                       text_is_name(slice_of(name)) ? owner : name);
    if (scope == SCOPE_NONE)
        return err_set(e, EINVAL, "a token needs a scope: read, submit, operate or admin");
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_set(e, EIO, "the system has no random numbers: %s", strerror(errno));
    spell(bytes, spelt);
    *token = arena_printf(arena, "gogh_%s", spelt);
    file_digest(*token, strlen(*token), digest);
    *line = auth_line(arena, &row);
    return 0;
}
