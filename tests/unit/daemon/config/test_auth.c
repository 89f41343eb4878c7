#include "daemon/config/auth.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/text/file.h"
#include "daemon/config/config.h"
#include "unit/suite.h"

static struct arena arena;
static char dir[256], path[300];
static struct config config;

static void set_up(void)
{
    const char *tmp = getenv("TMPDIR");

    arena_init(&arena);
    snprintf(dir, sizeof dir, "%s/gogh-auth-XXXXXX", tmp != NULL ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/tokens", dir);
    config = (struct config){ .tokens = path, .socket_scope = SCOPE_SUBMIT };
}

static void tear_down(void)
{
    unlink(path);
    rmdir(dir);
    arena_release(&arena);
}

FIXTURE(set_up, tear_down)

static void write_tokens(const char *text, mode_t mode)
{
    struct err e = { 0 };

    ck_assert_msg(file_write(path, text, strlen(text), &e) == 0, "%s", e.text);
    ck_assert_int_eq(chmod(path, mode), 0);
}

#define DIGEST "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const struct {
    const char *name, *text;
    int n;    // tokens; -1: refused
    const char *says;
} files[] = {
    { "nothing", "", 0, NULL },
    { "comments and two tokens",
      "# ours\nci submit ci " DIGEST "\n\n\"web page\" read www-data " DIGEST "  # note\n", 2,
      NULL },
    { "a scope that is none", "ci everything ci " DIGEST "\n", -1,
      "tokens:1: the scope must be read, submit, operate or admin" },
    { "the scope none", "ci none ci " DIGEST "\n", -1, "the scope must be" },
    { "a digest that is too short", "\nci read ci abc\n", -1, "tokens:2: the digest must be 64" },
    { "a digest in capitals",
      "ci read ci E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855\n", -1,
      "lower-case" },
    { "three words", "ci read ci\n", -1, "four words, not 3" },
    { "five words", "ci read ci " DIGEST " x\n", -1, "four words, not 5" },
    { "key=value", "name=ci read ci " DIGEST "\n", -1, "NAME SCOPE OWNER DIGEST" },
    { "a name twice", "ci read a " DIGEST "\nci read b " DIGEST "\n", -1,
      "tokens:2: there is a token 'ci' already" },
    { "an empty name", "\"\" read ci " DIGEST "\n", -1, "is no name" },
    { "a quote that is open", "\"ci read ci " DIGEST "\n", -1, "quote" },
};

EACH(a_file_of_tokens, files)
{
    struct auth_row *rows = NULL;
    struct err e = { 0 };
    int n = -1;
    int rc = auth_parse(&arena, "tokens", files[_i].text, strlen(files[_i].text), &rows, &n, &e);

    ck_assert_msg((rc == 0) == (files[_i].n >= 0), "%s: %s", files[_i].name, e.text);
    ck_assert_int_eq(n, files[_i].n);
    if (rc < 0)
        ck_assert_msg(strstr(e.text, files[_i].says), "%s: %s", files[_i].name, e.text);
    for (int i = 0; i < n; i++) {    // each can be written and read again
        struct auth_row *again = NULL;
        const char *line = auth_line(&arena, &rows[i]);
        int one = 0;

        ck_assert_int_eq(auth_parse(&arena, "t", line, strlen(line), &again, &one, &e), 0);
        ck_assert_int_eq(one, 1);
        ck_assert_str_eq(again->name, rows[i].name);
        ck_assert_str_eq(again->owner, rows[i].owner);
        ck_assert_int_eq(again->scope, rows[i].scope);
    }
}

static const struct {
    const char *name;
    mode_t mode;
    int want;
} modes[] = {
    { "for its owner", 0600, 0 },
    { "for its group to read", 0640, 0 },
    { "for everybody to read", 0644, -EACCES },
    { "for its group to write", 0660, -EACCES },
    { "for others to write", 0602, -EACCES },
};

EACH(a_file_that_others_may_read_is_refused, modes)
{
    struct auth *a = NULL;
    struct err e = { 0 };

    write_tokens("", modes[_i].mode);
    int rc = auth_open(&config, &a, &e);
    ck_assert_msg(rc == modes[_i].want, "%s: %s", modes[_i].name, e.text);
    if (rc < 0)
        ck_assert_ptr_nonnull(strstr(e.text, "chmod 600"));
    auth_close(a);
}

TEST(a_file_that_is_not_there)
{
    struct auth *a = NULL;
    struct err e = { 0 };

    ck_assert_int_eq(auth_open(&config, &a, &e), -ENOENT);
    ck_assert_ptr_nonnull(strstr(e.text, "gogh token new"));
    config.tokens = dir;
    ck_assert_int_eq(auth_open(&config, &a, &e), -EACCES);
    config.tokens = NULL;    // nobody has a token then
    ck_assert_int_eq(auth_open(&config, &a, &e), 0);
    struct caller c;
    ck_assert_int_eq(auth_token(a, &arena, "x", &c, &e), -EACCES);
    auth_close(a);
}

TEST(a_new_token_opens_what_it_should)
{
    const char *token = NULL, *other = NULL, *line = NULL, *more = NULL;
    struct auth *a = NULL;
    struct caller c;
    struct err e = { 0 };

    ck_assert_int_eq(auth_make_token(&arena, "ci", SCOPE_SUBMIT, "root", &token, &line, &e), 0);
    ck_assert_int_eq(
        auth_make_token(&arena, "web page", SCOPE_READ, "no such user", &other, &more, &e), 0);
    ck_assert_uint_eq(strlen(token), 5 + 43);    // 256 bits
    ck_assert_str_ne(token, other);
    ck_assert_ptr_null(strstr(line, token + 5));    // only its digest is kept
    write_tokens(arena_printf(&arena, "%s%s", line, more), 0600);
    ck_assert_msg(auth_open(&config, &a, &e) == 0, "%s", e.text);

    ck_assert_int_eq(auth_token(a, &arena, token, &c, &e), 0);
    ck_assert_int_eq(c.scope, SCOPE_SUBMIT);
    ck_assert_str_eq(c.owner, "root");
    ck_assert_str_eq(c.token, "ci");
    ck_assert_uint_eq(c.uid, 0);
    ck_assert_int_eq(auth_token(a, &arena, other, &c, &e), 0);
    ck_assert_str_eq(c.token, "web page");
    ck_assert_uint_eq(c.uid, (uid_t)-1);

    ck_assert_int_eq(auth_token(a, &arena, "", &c, &e), -EACCES);
    ck_assert_int_eq(auth_token(a, &arena, arena_strndup(&arena, token, 47), &c, &e), -EACCES);
    ck_assert_int_eq(auth_token(a, &arena, arena_printf(&arena, "%s ", token), &c, &e), -EACCES);
    auth_close(a);
}

TEST(a_token_needs_a_name_and_a_scope)
{
    const char *token = NULL, *line = NULL;
    struct err e = { 0 };

    ck_assert_int_eq(auth_make_token(&arena, "", SCOPE_READ, "a", &token, &line, &e), -EINVAL);
    ck_assert_int_eq(auth_make_token(&arena, "a\nb", SCOPE_READ, "a", &token, &line, &e), -EINVAL);
    ck_assert_int_eq(auth_make_token(&arena, "a", SCOPE_READ, "", &token, &line, &e), -EINVAL);
    ck_assert_int_eq(auth_make_token(&arena, "a", SCOPE_NONE, "a", &token, &line, &e), -EINVAL);
}

/* ---- peers ---- */

/* Ask who a peer with this uid is: a child becomes that, and connects. */
static struct caller ask_as(struct auth *a, uid_t uid, gid_t gid)
{
    int pair[2];
    struct caller c = { 0 };
    struct err e = { 0 };
    char byte = 0;
    pid_t child;

    /* The credentials of a socket pair are those of its maker: so the child makes it. */
    int handed[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, handed), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        union {
            struct cmsghdr head;
            char room[CMSG_SPACE(sizeof(int))];
        } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
                                .cmsg_level = SOL_SOCKET,
                                .cmsg_type = SCM_RIGHTS } };
        struct iovec io = { &byte, 1 };
        struct msghdr m = { .msg_iov = &io,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control };

        if (setgid(gid) < 0 || setuid(uid) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
            _exit(1);
        memcpy(CMSG_DATA(&control.head), &pair[0], sizeof(int));
        _exit(sendmsg(handed[1], &m, 0) != 1);
    }
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec io = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
    };
    int status = -1, fd = -1;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(recvmsg(handed[0], &m, 0), 1);
    memcpy(&fd, CMSG_DATA(&control.head), sizeof(int));
    ck_assert_msg(auth_peer(a, &arena, fd, &c, &e) == 0, "%s", e.text);
    close(fd);
    close(handed[0]);
    close(handed[1]);
    return c;
}

TEST(our_own_user_is_an_admin)
{
    const struct passwd *me = getpwuid(geteuid());
    struct auth *a = NULL;
    struct caller c = { 0 };
    struct err e = { 0 };
    int pair[2];

    config.tokens = NULL;
    ck_assert_int_eq(auth_open(&config, &a, &e), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    ck_assert_int_eq(auth_peer(a, &arena, pair[0], &c, &e), 0);
    ck_assert_int_eq(c.scope, SCOPE_ADMIN);
    ck_assert_uint_eq(c.uid, geteuid());
    ck_assert_ptr_null(c.token);
    if (me != NULL)
        ck_assert_str_eq(c.owner, me->pw_name);
    close(pair[0]);
    close(pair[1]);
    auth_close(a);
}

static struct config_allow allow[] = {
    { .is_group = true, .name = "adm", .scope = SCOPE_READ },
    { .is_group = true, .name = "daemon", .scope = SCOPE_OPERATE },
    { .is_group = false, .name = "bin", .scope = SCOPE_ADMIN },
    { .is_group = false, .name = "games", .scope = SCOPE_READ },
    { .is_group = true, .name = "games", .scope = SCOPE_ADMIN },
    { .is_group = true, .name = "no-such-group", .scope = SCOPE_ADMIN },
};

static const struct {
    const char *name, *user;
    enum scope want;
} peers[] = {
    { "nobody in particular gets what the socket gives", "nobody", SCOPE_SUBMIT },
    { "a user that is named", "bin", SCOPE_ADMIN },
    { "a member of a group that is named", "daemon", SCOPE_OPERATE },
    { "a user counts before its group", "games", SCOPE_READ },
};

EACH(peers_get_what_the_configuration_says, peers)
{
    const struct passwd *p = getpwnam(peers[_i].user);
    struct auth *a = NULL;
    struct err e = { 0 };

    if (geteuid() != 0 || p == NULL) {
        fprintf(stderr, "skipped: only root can be somebody else\n");
        return;
    }
    const uid_t uid = p->pw_uid;
    const gid_t gid = p->pw_gid;
    config.tokens = NULL;
    config.allow = allow;
    config.n_allow = (int)(sizeof allow / sizeof *allow);
    ck_assert_int_eq(auth_open(&config, &a, &e), 0);
    for (int i = 0; i < 2; i++) {    // the second time from memory
        struct caller c = ask_as(a, uid, gid);

        ck_assert_msg(c.scope == peers[_i].want, "%s: %s", peers[_i].name, scope_name(c.scope));
        ck_assert_str_eq(c.owner, peers[_i].user);
        ck_assert_uint_eq(c.uid, uid);
    }
    auth_close(a);
}

TEST(an_account_without_a_name_has_a_number)
{
    struct auth *a = NULL;
    struct err e = { 0 };

    if (geteuid() != 0) {
        fprintf(stderr, "skipped: only root can be somebody else\n");
        return;
    }
    config.tokens = NULL;
    config.socket_scope = SCOPE_READ;
    ck_assert_int_eq(auth_open(&config, &a, &e), 0);
    struct caller c = ask_as(a, 54321, 54321);
    ck_assert_str_eq(c.owner, "uid:54321");
    ck_assert_int_eq(c.scope, SCOPE_READ);
    auth_close(a);
}

TEST(scopes_have_names)
{
    for (int s = SCOPE_NONE; s <= SCOPE_ADMIN; s++)
        ck_assert_int_eq(scope_by_name(scope_name((enum scope)s)), s);
    ck_assert_int_eq(scope_by_name("Read"), -1);
    ck_assert_int_eq(scope_by_name(""), -1);
}
