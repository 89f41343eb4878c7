/* token.c - `gogh token`: who may come in by TCP. */
#include "cli/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/json.h"
#include "daemon/config/auth.h"

#define TOKENS_PATH "/etc/gogh/tokens"

static const char help[] =
    "Make, list and take away the tokens by which clients come in over TCP. The file holds\n"
    "their digests only: a token is shown once, when it is made. A daemon reads the file at\n"
    "its start and on SIGHUP (systemctl reload goghd), and must be able to read it:\n"
    "chown root:gogh FILE; chmod 640 FILE.\n"
    "\n"
    "  token new NAME      a new token, on standard output\n"
    "      --scope S         read, submit, operate or admin; each may do all that those before\n"
    "                        it may\n"
    "      --owner USER      whose account jobs are submitted for\n"
    "  token list          names, scopes and owners\n"
    "      --json            as JSON\n"
    "  token revoke NAME   it opens nothing any more\n"
    "\n"
    "  --tokens FILE       " TOKENS_PATH " unless given (docs/formats/tokens.md)\n"
    "\n"
    "Examples:\n"
    "  gogh token new ci --scope submit --owner ci\n"
    "  gogh token new grafana --scope read --owner nobody >grafana.token\n"
    "  gogh token revoke ci\n";

static const char *scope, *owner, *path = TOKENS_PATH;
static bool is_json;

static const struct cmd_option options[] = {
    CMD_TEXT("scope", scope),
    CMD_TEXT("owner", owner),
    CMD_TEXT("tokens", path),
    CMD_FLAG("json", is_json),
};

/* The file as it is; none is an empty one. */
struct token_file {
    const char *text;
    size_t len;
    bool is_there;
    struct stat st;
    struct auth_row *rows;    // (n)
    int n;
};

static int load(struct arena *a, struct token_file *out, struct err *e)
{
    int rc = 0;

    *out = (struct token_file){ .text = "" };
    if (stat(path, &out->st) == 0) {
        out->is_there = true;
        rc = file_read_text(a, path, NULL, AUTH_TOKENS_MAX, &out->text, &out->len, e);
    } else if (errno != ENOENT) {
        rc = err_set(e, errno, "%s: %s", path, strerror(errno));
    }
    return rc < 0 ? rc : auth_parse(a, path, out->text, out->len, &out->rows, &out->n, e);
}

/* A file that was there keeps its owner and mode; a new one is for nobody else. */
static int save(const struct token_file *was, const struct buf *text, struct err *e)
{
    const mode_t mask = umask(077);
    int rc = file_write(path, buf_text(text), text->len, e);

    umask(mask);
    if (rc == 0 && was->is_there &&
        (chown(path, was->st.st_uid, was->st.st_gid) < 0 ||
         chmod(path, was->st.st_mode & 0777) < 0))
        fprintf(stderr, "gogh: %s: has another owner or mode now: %s\n", path, strerror(errno));
    return rc;
}

static bool has(const struct token_file *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->rows[i].name, name) == 0)
            return true;
    return false;
}

static int do_new(struct arena *a, const char *name, struct err *e)
{
    const char *token = NULL, *line = NULL;
    struct token_file t;
    struct buf text;
    int rc = load(a, &t, e);

    if (rc == 0 && has(&t, name))
        rc = err_set(e, EEXIST, "%s: there is a token '%s' already: revoke it, or use another name",
                     path, name);
    if (rc == 0)
        rc = auth_make_token(a, name, (enum scope)scope_by_name(scope), owner, &token, &line, e);
    if (rc < 0)
        return rc;
    buf_init(&text, AUTH_TOKENS_MAX);
    rc = buf_append(&text, t.text, t.len);
    if (rc == 0 && t.len > 0 && t.text[t.len - 1] != '\n')
        rc = buf_puts(&text, "\n");
    if (rc == 0)
        rc = buf_puts(&text, line);
    rc = rc < 0 ? err_set(e, EFBIG, "%s: too many tokens: revoke some", path) : save(&t, &text, e);
    buf_release(&text);
    if (rc == 0)
        printf("%s\n", token);
    return rc;
}

static void print_json(const struct token_file *t)
{
    json_t *list = json_array();

    for (int i = 0; i < t->n; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s}", "name", t->rows[i].name, "scope",
                                        scope_name(t->rows[i].scope), "owner", t->rows[i].owner));
    json_print(list, 0);
}

static int do_list(struct arena *a, struct err *e)
{
    struct token_file t;
    int rc = load(a, &t, e);

    if (rc == 0 && !t.is_there)
        rc = err_set(e, ENOENT, "%s: is not there; 'gogh token new' makes it", path);
    if (rc < 0)
        return rc;
    if (is_json) {
        print_json(&t);
        return 0;
    }
    printf("%-24s %-8s %s\n", "NAME", "SCOPE", "OWNER");
    for (int i = 0; i < t.n; i++)
        printf("%-24s %-8s %s\n", t.rows[i].name, scope_name(t.rows[i].scope), t.rows[i].owner);
    return 0;
}

/* Is this line the token's? Comments and blank lines are nobody's. */
static bool is_line_of(struct arena *a, const char *line, size_t len, const char *name)
{
    struct auth_row *row = NULL;
    int n = 0;

    return auth_parse(a, "", line, len, &row, &n, NULL) == 0 && n == 1 &&
           strcmp(row->name, name) == 0;
}

static int do_revoke(struct arena *a, const char *name, struct err *e)
{
    struct token_file t;
    struct buf text;
    int rc = load(a, &t, e);

    if (rc == 0 && !has(&t, name))
        rc = err_set(e, ENOENT, "%s: there is no token '%s'; 'gogh token list' names them", path,
                     name);
    if (rc < 0)
        return rc;
    buf_init(&text, AUTH_TOKENS_MAX);
    for (const char *p = t.text, *end = t.text + t.len; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t len = newline != NULL ? (size_t)(newline - p) + 1 : (size_t)(end - p);

        if (!is_line_of(a, p, len, name))
            (void)buf_append(&text, p, len);    // shorter than what was read
        p += len;
    }
    rc = save(&t, &text, e);
    buf_release(&text);
    return rc;
}

static int check(const struct cmd_call *call)
{
    const char *verb = call->words[0], *name = call->words[1];
    const bool is_new = cmd_is(verb, "new"), is_list = cmd_is(verb, "list");

    if (!is_new && !is_list && !cmd_is(verb, "revoke"))
        return cmd_misuse(call->cmd, "say what to do: new, list or revoke");
    if (is_list ? name != NULL : name == NULL)
        return cmd_misuse(call->cmd, is_list ? "'list' takes no name" : "say which token: NAME");
    if (is_new && (scope == NULL || scope_by_name(scope) <= SCOPE_NONE))
        return cmd_misuse(call->cmd, "--scope wants read, submit, operate or admin");
    if (is_new && owner == NULL)
        return cmd_misuse(call->cmd, "say whose jobs it submits: --owner USER");
    if (!is_new && (scope != NULL || owner != NULL))
        return cmd_misuse(call->cmd, "--scope and --owner are for 'token new'");
    if (!is_list && is_json)
        return cmd_misuse(call->cmd, "--json is for 'token list'");
    return 0;
}

static int run(const struct cmd_call *call, struct err *e)
{
    const char *verb = call->words[0], *name = call->words[1];

    if (strcmp(verb, "list") == 0)
        return do_list(call->arena, e);
    return strcmp(verb, "new") == 0 ? do_new(call->arena, name, e)
                                    : do_revoke(call->arena, name, e);
}

const struct cmd cmd_token = {
    .name = "token",
    .synopsis = "token new NAME --scope S --owner USER | list | revoke NAME  [--tokens FILE]",
    .summary = "who may come in by TCP",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 2,
    .check = check,
    .run = run,
};
