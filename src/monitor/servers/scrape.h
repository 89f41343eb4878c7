/* scrape.h - what a server's Prometheus page says of its requests.
 *
 * Which figures of a page are what, is a table: data/scrape.table ships with the program, a site
 * may have its own (docs/formats/scrape.md). Two pages and the time between them are what was
 * served meanwhile. Pure: pages are fetched elsewhere (scraper.h).
 */
#ifndef MONITOR_SERVERS_SCRAPE_H
#define MONITOR_SERVERS_SCRAPE_H

#include <stddef.h>

struct err;
struct served;

enum scrape_what {
    SCRAPE_REQUESTS,    // answered, cumulative
    SCRAPE_RUNNING,     // now
    SCRAPE_WAITING,     // now
    SCRAPE_BATCHES,     // cumulative
    SCRAPE_COMPUTE,     // seconds that requests were in batches, each with its own, cumulative
    SCRAPE_COUNTS,
    SCRAPE_E2E = SCRAPE_COUNTS,    // histograms: from arrival to answer,
    SCRAPE_TTFT,                   // to the first token,
    SCRAPE_TPOT,                   // for a token, the mean of a request;
    SCRAPE_PROMPT,                 // tokens of a prompt,
    SCRAPE_OUTPUT,                 // and of an answer
    SCRAPE_WHATS,
    SCRAPE_HISTOGRAMS = SCRAPE_WHATS - SCRAPE_COUNTS,
};

#define SCRAPE_ROWS_MAX 64
#define SCRAPE_NAME_BYTES 96
#define SCRAPE_BUCKETS_MAX 64

struct scrape_row {
    char server[32], versions[32];
    enum scrape_what what;
    char metric[SCRAPE_NAME_BYTES];
    double scale;
};

struct scrape_table {
    int n;
    struct scrape_row rows[SCRAPE_ROWS_MAX];
};

/* 'file' names the text in what is wrong with it. -EINVAL: a line is not of the form; -E2BIG. */
int scrape_table_read(const char *text, size_t len, const char *file, struct scrape_table *out,
                      struct err *e);
const struct scrape_table *scrape_table_builtin(void);

/* A site's own table; NULL: the one that ships. Negative errno values of files, too. */
int scrape_table_load(const char *path, struct scrape_table *out, struct err *e);

struct scrape_histogram {
    double sum, count;    // NaN: not told
    int n;
    double le[SCRAPE_BUCKETS_MAX];       // ascending; the last may be infinite
    double below[SCRAPE_BUCKETS_MAX];    // cumulative
};

struct scrape_page {
    double counts[SCRAPE_COUNTS];    // NaN: not told
    struct scrape_histogram histograms[SCRAPE_HISTOGRAMS];
};

/* Of several rows for one thing, the first that the page has counts; figures of several models or
 * engines are added up. 0, or -ENOENT: the page has nothing of the table.
 */
int scrape_parse(const struct scrape_table *t, const char *text, size_t len,
                 struct scrape_page *out);

struct scrape_promise {
    double latency_s, ttft_s, tpot_s;    // 0: none
};

/* What was served between two pages, that are so old on the clock of whoever asks; no bins. Counts
 * that fall are those of a server that began anew: false. So is more than there can be.
 */
void scrape_between(const struct scrape_page *before, double from_s, const struct scrape_page *now,
                    double to_s, const struct scrape_promise *p, struct served *out);

#endif
