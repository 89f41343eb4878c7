/* study.h - what `gogh study` was asked, and the runs that this makes.
 *
 * Options are parsed by study.c; choice.c makes scenarios and runs of them, table.c
 * prints what came out. Lives in the command's arena.
 */
#ifndef CLI_STUDY_STUDY_H
#define CLI_STUDY_STUDY_H

#include <stdbool.h>

#include "cli/cmd.h"
#include "study/scenario/own.h"
#include "study/scenario/scenario.h"

struct arena;
struct err;
struct results;

struct study_options {
    struct cmd_list scenarios, policies, loads, models, delays, promises;
    struct own_options own;
    long n_seeds, n_parallel, history;    // 0: not said
    long first_seed;                      // -1: not said
    const char *limits;                   // no, yes, both; NULL: not said
    const char *data, *out, *show;
    bool is_list, is_json, is_report;
};

/* The scenarios that were named, with what else was said of them, and their runs. */
struct study_runs {
    struct scenario *scenarios;
    int n_scenarios, cap_scenarios;
    struct study_run *keys;
    int n, cap;
};

/* Were one's own inputs given? */
bool study_is_own(const struct study_options *o);

/* Scenarios as they were asked for; without names, all that ship with the program. 0, the exit
 * status of what was told, or -Exxx.
 */
int study_scenarios(struct arena *a, const struct study_options *o, struct study_runs *out,
                    struct err *e);

/* Their runs, as far as data, policies and loads let them. */
int study_choose(struct arena *a, const struct study_options *o, struct study_runs *out,
                 struct err *e);

void study_print_table(struct arena *a, const struct results *b);

#endif
