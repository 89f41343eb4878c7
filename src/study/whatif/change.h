/* change.h - other GPUs than a site has: some removed, some added.
 *
 * Made from what a person writes on the command line; gives a cluster of its own, in the caller's
 * arena, and leaves the site's as it is.
 */
#ifndef STUDY_WHATIF_CHANGE_H
#define STUDY_WHATIF_CHANGE_H

#include <stdbool.h>

struct arena;
struct cluster;
struct err;

struct fleet_change {
    bool is_added;       // else removed
    int count;           // GPUs; 0: all there are
    const char *type;    // as it was written
    int node_size;       // of nodes that are added; 0: as large as the site's largest
};

/* "k80" or "k80:4". */
int change_parse_removed(struct arena *a, const char *text, struct fleet_change *out,
                         struct err *e);

/* "8xl40s" or "8xl40s@4": on nodes of 4. */
int change_parse_added(struct arena *a, const char *text, struct fleet_change *out, struct err *e);

/* "20kW", "500W" or "500", in watts. */
int change_parse_watts(const char *text, double *out, struct err *e);

/* 'from' after the changes, one after the other: GPUs go from the last nodes first, and a node
 * without any goes too; new ones come on nodes of their own. Types that no node has any more are
 * gone. -EINVAL: a type that is not there, or not so many of it, or that nobody knows; or nothing
 * is left.
 */
int change_apply(struct arena *a, const struct cluster *from, const struct fleet_change *changes,
                 int n, struct cluster *out, struct err *e);

/* How many GPUs of its type 'type' a cluster has. */
int change_count(const struct cluster *cl, int type);

/* The types of all of 'n' clusters, each once; the rest is the first one's. */
void change_unite(struct arena *a, const struct cluster *const *all, int n, struct cluster *out);

#endif
