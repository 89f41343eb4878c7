/* scenario_text.h - a scenario as a person writes it down (docs/formats/scenario.md).
 *
 *     # ten GPUs of three generations
 *     title   "10 GPUs of built-in types: needs no data"
 *     node    old-1 p100:4
 *     truth   builtin
 *     jobs    drawn 200
 *     load    0.7
 *     policy  fifo-fastest gogh bound
 *     limits  both
 *
 * Made by scenario_parse; lives in the caller's arena, which must have the text as long.
 */
#ifndef STUDY_SCENARIO_TEXT_H
#define STUDY_SCENARIO_TEXT_H

#include <stddef.h>

#include "study/scenario/scenario.h"

struct buf;
struct err;

/* As files have them. */
enum { SCENARIO_JOBS = JOBS_SACCT + 1, SCENARIO_TRUTHS = TRUTH_STORE + 1 };
extern const char *const scenario_jobs_names[SCENARIO_JOBS],
    *const scenario_truths[SCENARIO_TRUTHS];

/* Parse 'text'; 'file' is for messages. Reads no other file: what it names is only noted. -EINVAL
 * with line and cure. Its name and its command are the caller's to fill in.
 */
int scenario_parse(struct arena *a, const char *file, const char *text, size_t len,
                   struct scenario *out, struct err *e);

/* Does what it says go together? -EINVAL; 'file', or its name, is for the message. */
int scenario_check(const char *file, const struct scenario *s, struct err *e);

/* Read and parse a file, and its cluster file where it names one. Files that it names are meant
 * from where it lies. Its name is the file's.
 */
int scenario_read(struct arena *a, const char *path, struct scenario *out, struct err *e);

/* Take the cluster from a file, as the scenario's own lines would give it. */
int scenario_use_cluster(struct arena *a, const char *path, struct scenario *s, struct err *e);

/* The same text that scenario_parse reads, without comments: parse(write(s)) gives s, but for name
 * and command. -ENOSPC: no room.
 */
int scenario_write(const struct scenario *s, struct buf *out);

#endif
