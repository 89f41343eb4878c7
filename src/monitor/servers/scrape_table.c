/* Which figures of a page are what. */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/embed.h"
#include "base/err.h"
#include "base/text/file.h"
#include "base/text/text.h"
#include "monitor/servers/scrape.h"
#include "monitor/servers/scrape_file.h"    // by the build: where the file is, its digest

EMBED(scrape_table, SCRAPE_FILE);

#define FILE_MAX ((size_t)1 << 20)    // SCRAPE_ROWS_MAX rows, and comments

static const char *const whats[] = {
    [SCRAPE_REQUESTS] = "requests", [SCRAPE_RUNNING] = "running", [SCRAPE_WAITING] = "waiting",
    [SCRAPE_BATCHES] = "batches",   [SCRAPE_COMPUTE] = "compute", [SCRAPE_E2E] = "e2e",
    [SCRAPE_TTFT] = "ttft",         [SCRAPE_TPOT] = "tpot",       [SCRAPE_PROMPT] = "prompt",
    [SCRAPE_OUTPUT] = "output",
};

enum { SERVER, VERSIONS, WHAT, METRIC, SCALE, WORDS };

/* Its words, at most WORDS + 1. */
static int split(struct slice line, struct slice words[WORDS + 1])
{
    size_t at = 0;
    int n = 0;

    while (n <= WORDS) {
        while (at < line.len && (line.at[at] == ' ' || line.at[at] == '\t'))
            at++;
        const size_t from = at;
        while (at < line.len && line.at[at] != ' ' && line.at[at] != '\t' && line.at[at] != '\r')
            at++;
        if (at == from)
            break;
        words[n++] = (struct slice){ line.at + from, at - from };
    }
    return n;
}

static bool keep_word(struct slice word, char *to, size_t size)
{
    if (word.len >= size || memchr(word.at, '\0', word.len))
        return false;
    memcpy(to, word.at, word.len);
    to[word.len] = '\0';
    return true;
}

static int read_row(const char *file, int line, const struct slice *words, int n,
                    struct scrape_row *out, struct err *e)
{
    int what = 0;

    *out = (struct scrape_row){ .scale = 1 };
    if (n < SCALE || n > WORDS)
        return err_set(e, EINVAL, "%s:%d: want SERVER VERSIONS WHAT METRIC [SCALE]", file, line);
    while (what < SCRAPE_WHATS && !slice_is(words[WHAT], whats[what]))
        what++;
    if (what == SCRAPE_WHATS)
        return err_set(e, EINVAL,
                       "%s:%d: '%.*s' is not known; write one of requests, running, waiting, "
                       "batches, compute, e2e, ttft, tpot, prompt, output",
                       file, line, slice_shown(words[WHAT]), words[WHAT].at);
    out->what = (enum scrape_what)what;
    if (!keep_word(words[SERVER], out->server, sizeof out->server) ||
        !keep_word(words[VERSIONS], out->versions, sizeof out->versions) ||
        !keep_word(words[METRIC], out->metric, sizeof out->metric))
        return err_set(e, EINVAL, "%s:%d: a word is too long; shorten it", file, line);
    if (n > SCALE && (text_to_double(words[SCALE], &out->scale) < 0 || !(out->scale > 0)))
        return err_set(e, EINVAL, "%s:%d: '%.*s' is no scale; write a number above 0", file, line,
                       slice_shown(words[SCALE]), words[SCALE].at);
    return 0;
}

int scrape_table_read(const char *text, size_t len, const char *file, struct scrape_table *out,
                      struct err *e)
{
    int line = 1;

    *out = (struct scrape_table){ 0 };
    for (size_t at = 0, end; at < len; at = end + 1, line++) {
        const char *newline = memchr(text + at, '\n', len - at);
        struct slice words[WORDS + 1];

        end = newline ? (size_t)(newline - text) : len;
        const int n = split((struct slice){ text + at, end - at }, words);
        if (n == 0 || words[0].at[0] == '#')
            continue;
        if (out->n == SCRAPE_ROWS_MAX)
            return err_set(e, E2BIG, "%s:%d: at most %d rows; leave some out", file, line,
                           SCRAPE_ROWS_MAX);
        const int rc = read_row(file, line, words, n, &out->rows[out->n], e);
        if (rc < 0)
            return rc;
        out->n++;
    }
    return 0;
}

const struct scrape_table *scrape_table_builtin(void)
{
    static struct scrape_table table;    // the same however often it is read
    // cppcheck-suppress comparePointers ; both are of the one file above
    const size_t len = (size_t)(gogh_scrape_table_end - gogh_scrape_table_begin);
    int rc = 0;

    if (table.n == 0)
        rc = scrape_table_read(gogh_scrape_table_begin, len, "data/scrape.table", &table, NULL);
    assert(rc == 0);
    return &table;
}

int scrape_table_load(const char *path, struct scrape_table *out, struct err *e)
{
    struct arena a;
    const char *text;
    size_t len;

    if (!path) {
        *out = *scrape_table_builtin();
        return 0;
    }
    arena_init(&a);
    int rc = file_read_text(&a, path, NULL, FILE_MAX, &text, &len, e);
    if (rc == 0)
        rc = scrape_table_read(text, len, path, out, e);
    arena_release(&a);
    return rc;
}
