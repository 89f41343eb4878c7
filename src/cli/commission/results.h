/* results.h - what gogh-pair has written (docs/formats/pair.md), as measurements and profiles.
 *
 * Made from each file by `gogh commission`, which hands it to the daemon.
 */
#ifndef CLI_COMMISSION_RESULTS_H
#define CLI_COMMISSION_RESULTS_H

#include <jansson.h>
#include <stddef.h>

struct arena;
struct err;

/* What was to be measured. */
struct result_of {
    const char *gpu;      // type
    const char *a, *b;    // workloads; b NULL: alone
};

/* The file's text as 'measurements', a list as POST /v1/measurements takes it, and 'profiles', by
 * workload what was seen of it alone: objects with features of a descriptor. Both are yours.
 * -EINVAL: it is no such file, or of another GPU type; 'name' is for messages.
 */
int results_parse(const char *name, const char *text, size_t len, const struct result_of *of,
                  json_t **measurements, json_t **profiles, struct err *e);

#endif
