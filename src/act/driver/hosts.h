/* hosts.h - Slurm's lists of nodes ("gpu[1-3,07],big") and plain ones ("gpu1,gpu2,...").
 *
 * Used by the driver in both directions; results live in the caller's arena. Pure.
 */
#ifndef ACT_DRIVER_HOSTS_H
#define ACT_DRIVER_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;

/* More names than a list of any cluster has, and few enough that nobody makes us write a gigabyte
 * with "a[0-99999999]".
 */
#define HOSTS_MAX 65536

/* Every name, parted by commas, in the order of the list. -EINVAL: not a list, or longer than
 * HOSTS_MAX names.
 */
int hosts_expand(struct arena *a, const char *list, const char **out, struct err *e);

/* The same names in brackets where neighbours differ in a last number only; order is kept. */
const char *hosts_compress(struct arena *a, const char *names);

/* How long the first item of a list is: up to a comma that is not between 'open' and 'close'. */
size_t hosts_item_len(const char *list, char open, char close);

/* True for a list of plain names, as they are in slurm.conf: letters, digits, '.', '_', '-'. */
bool hosts_are_plain(const char *names);

#endif
