#include "monitor/servers/scraper.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/loop.h"
#include "monitor/pages/fetch.h"
#include "monitor/sensor.h"

/* A server that is asked. */
struct scraped {
    int job;
    unsigned n;    // which watch of it this is: pages of an older one are dropped
    char *url;
    struct scrape_promise promise;
    double page_s;    // when the last page came; NaN: none
    struct scrape_page page;
};

/* One round; the worker's in between. */
struct scrape_round {
    struct scraper *scraper;    // NULL: it is gone
    const struct scrape_table *table;
    int n;
    struct asked {
        int job;
        unsigned n;
        char *url;
        double at_s;    // when its page was asked for
        struct err why;
        int rc;
        struct scrape_page page;
    } * asked;    // (n)
};

struct scraper {
    struct loop *loop;
    const struct scrape_table *table;
    double every_s;
    scraper_f *f;
    void *self;
    struct scraped **servers;    // (n_servers) in no order
    int n_servers, cap_servers;
    unsigned n_watches;
    struct scrape_round *under_way;
    struct loop_timer timer;
};

/* ---- on the worker ---- */

static void work(void *self)
{
    struct scrape_round *r = self;
    struct fetch *pages = heap_array((size_t)r->n, sizeof *pages);

    for (int i = 0; i < r->n; i++)
        pages[i] = (struct fetch){ .url = r->asked[i].url };
    fetch_all(pages, r->n);
    for (int i = 0; i < r->n; i++) {
        struct asked *a = &r->asked[i];

        a->rc = pages[i].rc;
        a->why = pages[i].why;
        if (a->rc == 0)
            a->rc = scrape_parse(r->table, buf_text(&pages[i].text), pages[i].text.len, &a->page);
        if (a->rc == -ENOENT)
            err_fill(&a->why, ENOENT,
                     "%s: nothing that the table of metrics has; name the server's", a->url);
        buf_release(&pages[i].text);
    }
    free(pages);
}

/* ---- back on the loop ---- */

static int find(const struct scraper *s, int job)
{
    for (int i = 0; i < s->n_servers; i++)
        if (s->servers[i]->job == job)
            return i;
    return -1;
}

static void take_page(struct scraper *s, struct scraped *x, const struct asked *a)
{
    struct scrape_latency latency[SCRAPE_LATENCIES];
    struct served told;

    if (a->rc < 0) {
        s->f(s->self, a->job, NULL, NULL, &a->why);
        return;
    }
    const bool is_first = isnan(x->page_s);
    scrape_between(is_first ? &a->page : &x->page, is_first ? a->at_s : x->page_s, &a->page,
                   a->at_s, &x->promise, &told, latency);
    x->page = a->page;
    x->page_s = a->at_s;
    s->f(s->self, a->job, &told, latency, NULL);
}

static void round_free(struct scrape_round *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->asked[i].url);
    free(r->asked);
    free(r);
}

static void done(void *self)
{
    struct scrape_round *r = self;
    struct scraper *s = r->scraper;

    for (int i = 0; i < r->n && s; i++) {
        const int at = find(s, r->asked[i].job);

        if (at >= 0 && s->servers[at]->n == r->asked[i].n)
            take_page(s, s->servers[at], &r->asked[i]);
        s = r->scraper;
    }
    if (s)
        s->under_way = NULL;
    round_free(r);
}

static void on_timer(void *self)
{
    struct scraper *s = self;

    loop_timer_set(&s->timer, s->every_s);
    if (s->under_way || s->n_servers == 0)
        return;
    struct scrape_round *r = heap_array(1, sizeof *r);
    r->scraper = s;
    r->table = s->table;
    r->n = s->n_servers;
    r->asked = heap_array((size_t)r->n, sizeof *r->asked);
    for (int i = 0; i < r->n; i++) {
        r->asked[i].job = s->servers[i]->job;
        r->asked[i].n = s->servers[i]->n;
        r->asked[i].url = heap_text(s->servers[i]->url);
        r->asked[i].at_s = clock_stopwatch_s();
    }
    s->under_way = r;
    loop_work(s->loop, "servers' pages", work, done, r);
}

/* ---- who is asked ---- */

void scraper_watch(struct scraper *s, int job, const char *url, const struct scrape_promise *p)
{
    struct scraped *x = heap_array(1, sizeof *x);

    scraper_leave(s, job);
    *x = (struct scraped){
        .job = job, .n = s->n_watches++, .url = heap_text(url), .promise = *p, .page_s = NAN
    };
    GROW(s->servers, s->n_servers, s->cap_servers);
    s->servers[s->n_servers++] = x;
}

void scraper_leave(struct scraper *s, int job)
{
    const int at = find(s, job);

    if (at < 0)
        return;
    free(s->servers[at]->url);
    free(s->servers[at]);
    s->servers[at] = s->servers[--s->n_servers];
}

int scraper_create(struct loop *l, const struct scrape_table *t, double every_s, scraper_f *f,
                   void *self, struct scraper **out, struct err *e)
{
    if (fetch_begin() < 0)
        return err_set(e, ENOMEM, "pages of servers: libcurl does not start");
    struct scraper *s = heap_array(1, sizeof *s);
    *s = (struct scraper){ .loop = l, .table = t, .every_s = every_s, .f = f, .self = self };
    loop_timer_init(&s->timer, l, "servers' pages", on_timer, s);
    loop_timer_set(&s->timer, 0);
    *out = s;
    return 0;
}

void scraper_destroy(struct scraper *s)
{
    if (!s)
        return;
    loop_timer_clear(&s->timer);
    if (s->under_way)
        s->under_way->scraper = NULL;
    while (s->n_servers > 0)
        scraper_leave(s, s->servers[0]->job);
    free(s->servers);
    free(s);
}
