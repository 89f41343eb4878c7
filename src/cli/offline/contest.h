/* contest.h - hierarchical model and network about campaigns left out, for `gogh train`. */
#ifndef CLI_OFFLINE_CONTEST_H
#define CLI_OFFLINE_CONTEST_H

#include <stdint.h>

struct catalog;
struct err;
struct model;

/* Hold it about every campaign of the catalog, as `gogh eval --split campaign` does, and put what
 * came out into 'm', which is still being made. A build without a network holds none.
 */
int contest_hold(const struct catalog *c, uint64_t seed, struct model *m, struct err *e);

#endif
