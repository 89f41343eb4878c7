/* client.h - the way to a daemon: one question, one answer.
 *
 * Made by commands that ask goghd, over its Unix socket or, with --url, over TLS with a token.
 * Lives as long as the command; answers live in it. docs/api.md has the questions.
 */
#ifndef CLI_CLIENT_CLIENT_H
#define CLI_CLIENT_CLIENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "cli/cmd.h"

struct client;
struct err;

/* What every such command can be told. */
struct client_options {
    const char *socket;    // --socket; else $GOGH_SOCKET, else the usual one
    const char *url;       // --url; else $GOGH_URL: "https://host:7117"
    const char *cacert;    // --cacert: PEM file to check its certificate with
    bool is_json;          // --json: print the answer as it came
};

extern struct client_options client_options;

/* For the end of a command's table of options. */
#define CLIENT_OPTIONS                                                              \
    CMD_TEXT("socket", client_options.socket), CMD_TEXT("url", client_options.url), \
        CMD_TEXT("cacert", client_options.cacert), CMD_FLAG("json", client_options.is_json)

/* For the end of a command's list of options. */
#define CLIENT_HELP                                                                             \
    "  --json           the daemon's answer as it is\n"                                         \
    "  --socket PATH    the daemon's socket ($GOGH_SOCKET, or /run/gogh/gogh.sock)\n"           \
    "  --url URL        a daemon elsewhere ($GOGH_URL): https://HOST:PORT, with the token of\n" \
    "                   $GOGH_TOKEN or ~/.config/gogh/token; --cacert FILE checks it\n"

/* A command's 'run': open a client, let the command 'ask', close it. */
int client_run(const struct cmd_call *call, struct err *e);

/* Commands about a period: --from and --to as given; NULL: the daemon's default. */
extern struct client_period {
    const char *from, *to;
} client_period;

#define PERIOD_OPTIONS CMD_TEXT("from", client_period.from), CMD_TEXT("to", client_period.to)

#define PERIOD_HELP                                                                              \
    "  --from TIME      begin (30 days before the end): \"2026-11-16 18:00\", 2026-11-16, -7d\n" \
    "  --to TIME        end (now)\n"

/* 'path' with the period behind it. */
int client_period_path(struct client *c, const char *path, const char **out, struct err *e);

/* Nothing is sent yet. -EINVAL: a token that others can read, ... */
int client_open(struct client **out, struct err *e);
void client_close(struct client *c);    // NULL is fine

/* Memory that lasts until client_close. */
struct arena *client_arena(struct client *c);

/* The daemon's answer to GET 'path', checked to be a JSON object, borrowed until client_close.
 * -ENOTCONN: it is not there. -EREMOTEIO: it says no, in its own words; -EAGAIN: not now.
 */
int client_get(struct client *c, const char *path, json_t **out, struct err *e);

/* A list that comes in pages: all of "jobs", say, of 'path' into 'into'. */
int client_list(struct client *c, const char *path, const char *key, json_t *into, struct err *e);

/* As client_get, with POST. 'body' (NULL: none) stays yours. With a 'key' (NULL: none) a connection
 * that breaks is tried once more: the daemon then sees that it is the same question.
 */
int client_post(struct client *c, const char *path, const json_t *body, const char *key,
                json_t **out, struct err *e);

/* The last answer's bytes. */
const char *client_text(const struct client *c);

/* 'text' as a part of a path or a query; and "path?name=value", or "&..." where it has one; as
 * it was when 'value' is NULL.
 */
const char *client_escape(struct client *c, const char *text);
const char *client_with(struct client *c, const char *path, const char *name, const char *value);

/* 128 random bits in hex, for an Idempotency-Key. */
const char *client_key(struct client *c);

/* A command's 'check': a job must be named. */
int client_check_job(const struct cmd_call *call);

/* GET 'path' and print the answer: as it came with --json, else as 'print' does. */
int client_show(struct client *c, const char *path,
                void (*print)(struct arena *a, const json_t *answer), struct err *e);

#endif
