/* scraper.h - servers that are asked for their Prometheus page, now and then.
 *
 * For servers that do not report by themselves (vLLM, Triton): made by whoever knows where they
 * listen, on the loop's thread; pages are fetched and read on a worker, all that are due side by
 * side. Who is due while others are being asked is asked when these have answered, or two seconds
 * were over.
 */
#ifndef MONITOR_SERVERS_SCRAPER_H
#define MONITOR_SERVERS_SCRAPER_H

#include <stdbool.h>

#include "monitor/servers/scrape.h"

struct err;
struct loop;
struct scraper;

/* What 'job' served since the last page of it that was taken; or 'served' NULL: its page did not
 * come, or says nothing that is known, and why. Times are on the stopwatch; of the first page
 * nothing is told but that it is ready. False: not taken, and told once more with the next page.
 * Who is watched is not to be changed meanwhile.
 */
typedef bool scraper_f(void *self, int job, const struct served *served, const struct err *why);

/* Every 'every_s' or so, sooner while the first page has not come; 't' is borrowed until the
 * loop is settled. -ENOMEM: libcurl does not start.
 */
int scraper_create(struct loop *l, const struct scrape_table *t, double every_s, scraper_f *f,
                   void *self, struct scraper **out, struct err *e);
void scraper_destroy(struct scraper *s);    // NULL is fine

/* From now on, or at another place: what was seen of it before is forgotten. */
void scraper_watch(struct scraper *s, int job, const char *url, const struct scrape_promise *p);
void scraper_leave(struct scraper *s, int job);    // unknown ones are fine

#endif
