/* programs.h - what a site can be measured with: programs and the workloads that they run.
 *
 * Own ones from a file, a line each:
 *
 *     # what we train here
 *     workload=resnet50 batch=64 precision=fp16 -- python3 train.py --amp
 *
 * or the small benchmarks that ship with GOGH. Made by `gogh commission`; lives in its arena.
 */
#ifndef CLI_COMMISSION_PROGRAMS_H
#define CLI_COMMISSION_PROGRAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;

struct site_program {
    const char *workload;     // as it was written
    long batch;               // 0: nothing was said
    const char *precision;    // NULL: nothing was said
    bool is_new;              // the name is no slip
    const char **argv;        // (n_argv)
    int n_argv;
    int line;            // of the file; 0: of none
    const char *name;    // of the workload as the site has it; NULL: nobody asked yet
};

struct programs {
    struct site_program *list;
    int n;
    bool are_own;    // what the site runs, not benchmarks
};

/* Of a file's text; 'name' is for messages. -EINVAL with line and cure. */
int programs_parse(struct arena *a, const char *name, const char *text, size_t len,
                   struct programs *out, struct err *e);
int programs_read(struct arena *a, const char *path, struct programs *out, struct err *e);

/* What gogh-burn says that it can run. -ENOENT: it is not there. */
int programs_shipped(struct arena *a, struct programs *out, struct err *e);

/* The same from what it said: a list of objects with "name", its first argument, and "batch". */
int programs_parse_list(struct arena *a, const char *program, const char *text, size_t len,
                        struct programs *out, struct err *e);

/* As POST /v1/commission takes them. */
json_t *programs_json(const struct programs *p);

/* The one whose workload the site calls so; NULL: none. */
const struct site_program *programs_find(const struct programs *p, const char *name);

#endif
