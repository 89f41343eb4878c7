#include "cli/client/client.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "cli/cmd.h"
#include "cli/when.h"
#include "daemon/config/config.h"

/* The longest answer is that of `GET /v1/jobs`: some 700 bytes a job, 1000 jobs a page. */
#define ANSWER_MAX ((size_t)256 << 20)
#define PAGE_ROWS "1000"
#define TOKEN_MAX 4096
#define CONNECT_S 5L
#define ANSWER_S 180L    // a plan of a large cluster takes solve_s, a look back up to 120 s

struct client {
    struct arena arena;
    CURL *easy;
    const char *base;      // "http://gogh" or the URL
    const char *socket;    // NULL: by TCP
    struct curl_slist *headers;
    struct buf answer;
    json_t *answers;    // list: they live as long as the client
    char why[CURL_ERROR_SIZE];
};

struct client_options client_options;

/* ---- where it is ---- */

static int check_url(const char *url, struct err *e)
{
    if (strncmp(url, "https://", 8) == 0)
        return 0;
    if (strncmp(url, "http://", 7) == 0 && config_is_loopback(url + 7))
        return 0;
    return err_set(e, EINVAL,
                   "--url '%s': want https://HOST:PORT; plain http goes to this "
                   "machine only",
                   url);
}

/* $XDG_CONFIG_HOME/gogh/token or ~/.config/gogh/token; NULL: there is no home. */
static const char *token_path(struct client *c)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

    if (config != NULL && config[0] == '/')
        return arena_printf(&c->arena, "%s/gogh/token", config);
    return home != NULL ? arena_printf(&c->arena, "%s/.config/gogh/token", home) : NULL;
}

/* A token of the environment or of the file, which nobody else may read; NULL: neither. */
static int find_token(struct client *c, const char **out, struct err *e)
{
    const char *path = token_path(c), *text;
    struct stat st;
    size_t len;
    int rc;

    *out = getenv("GOGH_TOKEN");
    if (*out != NULL || path == NULL || stat(path, &st) < 0)
        return 0;
    if ((st.st_mode & 077) != 0)
        return err_set(e, EACCES, "%s: others can read this token; 'chmod 600' it", path);
    rc = file_read_text(&c->arena, path, NULL, TOKEN_MAX, &text, &len, e);
    if (rc == 0)
        *out = arena_strndup(&c->arena, text, strcspn(text, " \t\r\n"));
    return rc;
}

static int use_url(struct client *c, const char *url, struct err *e)
{
    const char *token = NULL;
    size_t len = strlen(url);
    int rc = check_url(url, e);

    if (rc == 0)
        rc = find_token(c, &token, e);
    if (rc < 0)
        return rc;
    while (len > 0 && url[len - 1] == '/')
        len--;
    c->base = arena_strndup(&c->arena, url, len);
    if (token != NULL)
        c->headers = curl_slist_append(c->headers,
                                       arena_printf(&c->arena, "Authorization: Bearer %s", token));
    if (client_options.cacert != NULL)
        curl_easy_setopt(c->easy, CURLOPT_CAINFO, client_options.cacert);
    return 0;
}

static int choose(struct client *c, struct err *e)
{
    const char *url = client_options.url, *socket = client_options.socket;

    if (url != NULL && socket != NULL)
        return err_set(e, EINVAL, "--url or --socket, not both");
    if (url == NULL && socket == NULL) {
        url = getenv("GOGH_URL");
        socket = getenv("GOGH_SOCKET");
    }
    if (url != NULL && client_options.socket == NULL && url[0] != '\0')
        return use_url(c, url, e);
    c->socket = socket != NULL && socket[0] != '\0' ? socket : CONFIG_SOCKET;
    c->base = "http://gogh";
    curl_easy_setopt(c->easy, CURLOPT_UNIX_SOCKET_PATH, c->socket);
    return 0;
}

/* ---- one exchange ---- */

static size_t take_bytes(char *bytes, size_t size, size_t n, void *self)
{
    struct client *c = self;

    return buf_append(&c->answer, bytes, size * n) == 0 ? size * n : 0;
}

int client_open(struct client **out, struct err *e)
{
    struct client *c = calloc(1, sizeof *c);
    int rc;

    assert(c != NULL);
    arena_init(&c->arena);
    buf_init(&c->answer, ANSWER_MAX);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    c->easy = curl_easy_init();
    c->answers = json_array();
    assert(c->easy != NULL && c->answers != NULL);
    curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->why);
    curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
    curl_easy_setopt(c->easy, CURLOPT_TIMEOUT, ANSWER_S);
    curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
    curl_easy_setopt(c->easy, CURLOPT_USERAGENT, "gogh/" GOGH_VERSION);
    rc = choose(c, e);
    if (rc < 0) {
        client_close(c);
        return rc;
    }
    *out = c;
    return 0;
}

void client_close(struct client *c)
{
    if (c == NULL)
        return;
    curl_easy_cleanup(c->easy);
    curl_slist_free_all(c->headers);
    curl_global_cleanup();
    buf_release(&c->answer);
    json_decref(c->answers);
    arena_release(&c->arena);
    free(c);
}

struct arena *client_arena(struct client *c)
{
    return &c->arena;
}

/* Nobody answered, or the connection broke on the way. */
static int fail_of(struct client *c, CURLcode code, struct err *e)
{
    const char *where = c->socket != NULL ? c->socket : c->base;
    long os = 0;

    curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &os);
    if (code == CURLE_COULDNT_CONNECT && os == EACCES)
        return err_set(e, EACCES, "%s: this user may not open it; see 'socket' in gogh.conf(5)",
                       where);
    if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST)
        return err_set(e, ENOTCONN,
                       "nobody answers at %s (%s); is goghd running? 'systemctl "
                       "status goghd' says",
                       where, os > 0 ? strerror((int)os) : c->why);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, ENOTCONN,
                       "no answer from %s in time; is goghd well? 'systemctl status "
                       "goghd' says",
                       where);
    if (code == CURLE_WRITE_ERROR)
        return err_set(e, EFBIG, "%s: the answer is larger than %zu MiB", where, ANSWER_MAX >> 20);
    return err_set(e, ENOTCONN, "%s: %s; is goghd running? 'systemctl status goghd' says", where,
                   c->why[0] != '\0' ? c->why : curl_easy_strerror(code));
}

/* TLS failures are answers: somebody is there, and not who we think. */
static bool is_distrust(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_SSL_CONNECT_ERROR || code == CURLE_SSL_ISSUER_ERROR;
}

static bool is_broken(CURLcode code)
{
    return code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING ||
           code == CURLE_PARTIAL_FILE;
}

/* Too many questions, or a daemon that is about to stop: ask again. */
static bool is_later(long status)
{
    return status == 429 || status == 503;
}

/* The text of {"error": {"message": ...}}, or what HTTP says. */
static int refusal(struct client *c, long status, json_t *answer, struct err *e)
{
    const char *message =
        json_string_value(json_object_get(json_object_get(answer, "error"), "message"));

    if (message != NULL)
        return err_set(e, is_later(status) ? EAGAIN : EREMOTEIO, "%s", message);
    return err_set(e, EREMOTEIO, "%s answers with HTTP status %ld; is that goghd?",
                   c->socket != NULL ? c->socket : c->base, status);
}

static int read_answer(struct client *c, json_t **out, struct err *e)
{
    json_error_t wrong;
    json_t *o = json_loadb(buf_text(&c->answer), c->answer.len, JSON_REJECT_DUPLICATES, &wrong);
    long status = 0;

    if (o != NULL)
        json_array_append_new(c->answers, o);
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || status > 299)
        return refusal(c, status, o, e);
    if (!json_is_object(o))
        return err_set(e, EREMOTEIO, "%s answers, but not with JSON; is that goghd?",
                       c->socket != NULL ? c->socket : c->base);
    *out = o;
    return 0;
}

static int ask(struct client *c, const char *path, struct curl_slist *headers, bool may_repeat,
               json_t **out, struct err *e)
{
    CURLcode code = CURLE_OK;

    *out = NULL;
    curl_easy_setopt(c->easy, CURLOPT_URL, arena_printf(&c->arena, "%s%s", c->base, path));
    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers);
    for (int i = 0; i < 2; i++) {
        buf_clear(&c->answer);
        c->why[0] = '\0';
        code = curl_easy_perform(c->easy);
        if (!may_repeat || !is_broken(code))
            break;
    }
    if (is_distrust(code))
        return err_set(e, EREMOTEIO, "%s: %s; --cacert FILE names who signed its certificate",
                       c->base, c->why);
    return code == CURLE_OK ? read_answer(c, out, e) : fail_of(c, code, e);
}

int client_get(struct client *c, const char *path, json_t **out, struct err *e)
{
    curl_easy_setopt(c->easy, CURLOPT_HTTPGET, 1L);
    return ask(c, path, c->headers, true, out, e);
}

int client_list(struct client *c, const char *path, const char *key, json_t *into, struct err *e)
{
    const char *at = client_with(c, path, "limit", PAGE_ROWS);
    json_t *page, *next;

    for (;;) {
        if (client_get(c, at, &page, e) < 0)
            return -e->code;
        json_array_extend(into, json_object_get(page, key));
        next = json_object_get(page, "next");
        if (!json_is_integer(next) || json_array_size(json_object_get(page, key)) == 0)
            return 0;
        at = client_with(c, client_with(c, path, "limit", PAGE_ROWS), "after",
                         arena_printf(&c->arena, "%lld", (long long)json_integer_value(next)));
    }
}

int client_post(struct client *c, const char *path, const json_t *body, const char *key,
                json_t **out, struct err *e)
{
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    struct curl_slist *headers = NULL;
    int rc;

    for (struct curl_slist *h = c->headers; h != NULL; h = h->next)
        headers = curl_slist_append(headers, h->data);
    if (text != NULL)
        headers = curl_slist_append(headers, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");    // no round trip before a large body
    if (key != NULL)
        headers = curl_slist_append(headers, arena_printf(&c->arena, "Idempotency-Key: %s", key));
    curl_easy_setopt(c->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, text != NULL ? text : "");
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE, text != NULL ? (long)strlen(text) : 0L);
    rc = ask(c, path, headers, key != NULL, out, e);
    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
    curl_slist_free_all(headers);
    free(text);
    return rc;
}

const char *client_text(const struct client *c)
{
    return buf_text(&c->answer);
}

/* ---- addresses ---- */

const char *client_escape(struct client *c, const char *text)
{
    char *escaped = curl_easy_escape(c->easy, text, (int)strlen(text));
    const char *copy;

    assert(escaped != NULL);
    copy = arena_strdup(&c->arena, escaped);
    curl_free(escaped);
    return copy;
}

const char *client_with(struct client *c, const char *path, const char *name, const char *value)
{
    if (value == NULL)
        return path;
    return arena_printf(&c->arena, "%s%c%s=%s", path, strchr(path, '?') != NULL ? '&' : '?', name,
                        client_escape(c, value));
}

struct client_period client_period;

/* "name=seconds", where that end of the period was given. */
static int add_time(struct client *c, const char *name, const char *text, const char **path,
                    struct err *e)
{
    double s = 0;

    if (text == NULL)
        return 0;
    if (when_time(text, when_now(), false, &s, e) < 0)
        return err_prefix(e, "--%s", name);
    *path = client_with(c, *path, name, arena_printf(&c->arena, "%.3f", s));
    return 0;
}

int client_period_path(struct client *c, const char *path, const char **out, struct err *e)
{
    int rc = add_time(c, "from", client_period.from, &path, e);

    if (rc == 0)
        rc = add_time(c, "to", client_period.to, &path, e);
    *out = path;
    return rc;
}

const char *client_key(struct client *c)
{
    unsigned char bits[16];
    char *hex = arena_alloc(&c->arena, 2 * sizeof bits + 1);

    if (getrandom(bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return NULL;
    for (size_t i = 0; i < sizeof bits; i++)
        snprintf(hex + 2 * i, 3, "%02x", bits[i]);
    return hex;
}

int client_run(const struct cmd_call *call, struct err *e)
{
    struct client *c = NULL;
    int rc = client_open(&c, e);

    if (rc == 0)
        rc = call->cmd->ask(c, call, e);
    client_close(c);
    return rc;
}

int client_check_job(const struct cmd_call *call)
{
    return call->words[0] != NULL ? 0 : cmd_misuse(call->cmd, "which job? its id or name");
}

int client_show(struct client *c, const char *path,
                void (*print)(struct arena *a, const json_t *answer), struct err *e)
{
    json_t *answer;
    int rc = client_get(c, path, &answer, e);

    if (rc == 0 && client_options.is_json)
        printf("%s\n", client_text(c));
    else if (rc == 0)
        print(&c->arena, answer);
    return rc;
}
