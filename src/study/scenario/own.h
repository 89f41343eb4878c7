/* own.h - a scenario of one's own inputs, as the command line names them.
 *
 *     gogh study --cluster site.cluster --trace june.trace --truth site.db --out june
 *     gogh study --cluster site.cluster --sacct june.sacct --out june
 *     gogh study --record gogh.record --out june
 *
 * What is said here could stand in a file just as well (scenario_write makes one of it). A record
 * becomes a cluster file, a trace and a store first, in a folder of the caller's.
 */
#ifndef STUDY_SCENARIO_OWN_H
#define STUDY_SCENARIO_OWN_H

#include "study/scenario/scenario.h"

struct err;

struct own_options {
    const char *cluster, *trace, *sacct, *record;    // files; NULL: not given
    const char *truth;                               // a store; NULL: the built-in tables
    const char *partition, *workload;                // of the accounting; NULL: all; usual
    const char *dir;                                 // where the files of a record go
    bool is_made;                                    // they are there already
};

/* '*path' as it is meant from everywhere, in 'a'; NULL stays. -Exxx: there is no such file. */
int own_absolute(struct arena *a, const char **path, struct err *e);

/* The scenario "site": the jobs as they were, under the policies that sites think of. */
int scenario_own(struct arena *a, const struct own_options *o, struct scenario *out, struct err *e);

#endif
