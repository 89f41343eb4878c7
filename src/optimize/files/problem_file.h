/* problem_file.h - problems as JSON files, in and out (docs/formats/problem.md).
 *
 * Called by: `gogh optimize`, benches, tests. What problem_write wrote, problem_read reads as the
 * same problem, number for number. Whatever is read has passed problem_check.
 */
#ifndef OPTIMIZE_FILES_PROBLEM_FILE_H
#define OPTIMIZE_FILES_PROBLEM_FILE_H

#include <stddef.h>

struct arena;
struct buf;
struct err;
struct problem;

/* The most bytes of a problem: 10,000 kinds on one type, a byte or two over what is needed. */
#define PROBLEM_BYTES_MAX ((size_t)1 << 30)

/* Read the file at 'path' (plain or compressed; "-": standard input); everything is in 'a'.
 * 0, or -EINVAL and the like naming the file, the place in it, and the cure.
 */
int problem_read(struct arena *a, const char *path, struct problem *out, struct err *e);

/* The same from 'len' bytes of text; 'name' is for messages. */
int problem_parse(struct arena *a, const char *name, const char *text, size_t len,
                  struct problem *out, struct err *e);

/* Append the problem as JSON. 0, -ENOSPC past the buffer's ceiling, or -EINVAL for what a file
 * cannot say: 'low' below 'speed' at z = 0, a type or kind without a name.
 */
int problem_write(const struct problem *p, struct buf *out, struct err *e);

#endif
