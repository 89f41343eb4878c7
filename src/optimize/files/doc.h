/* doc.h - JSON documents: values out of them with messages that name the place, texts into them.
 *
 * Private to the files that read and write problems and plans. What reads is false when it failed;
 * the error is filled then, so that readings are chained with &&.
 */
#ifndef OPTIMIZE_FILES_DOC_H
#define OPTIMIZE_FILES_DOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text/buf.h"

struct arena;
struct err;
struct problem;
struct problem_field;

/* A file being read. */
struct doc {
    struct arena *arena;
    const char *name;
    struct err *e;
};

/* An object in it: jobs[12], or the top with an index of -1. */
struct doc_at {
    const struct doc *doc;
    json_t *object;
    const char *list;
    int index;
};

/* The file's text; NULL when it is no JSON object, and the error says where. */
json_t *doc_open(const struct doc *f, const char *text, size_t len);

/* Fill the error: "FILE: jobs[12].key: ..."; 'key' may be NULL. Always false. */
bool doc_wrong(const struct doc_at *at, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Is it an object that has none but these keys (NULL-terminated)? A stranger is named with what
 * may have been meant.
 */
bool doc_keys(const struct doc_at *at, const char *const *known);

/* The value of a key where it is there; else '*out' stays. */
bool doc_number(const struct doc_at *at, const char *key, double *out);
bool doc_whole(const struct doc_at *at, const char *key, int low, int high, int *out);
bool doc_flag(const struct doc_at *at, const char *key, bool *out);

/* One of two words, the first where the key is not there: '*out' says whether it is the second. */
bool doc_either(const struct doc_at *at, const char *key, const char *first, const char *second,
                bool *out);

/* The numbers of a struct (problem.h). */
bool doc_fields(const struct doc_at *at, const struct problem_field *fields, void *out);

/* A name, which must be there; in the arena. */
bool doc_name(const struct doc_at *at, const char *key, const char **out);

/* A list of 'n' entries, at most 'max', at a key; NULL and 0 where the key is not there. */
bool doc_list(const struct doc_at *at, const char *key, int max, json_t **out, int *n);

/* The number of one of 'n' things, "the group's 4 GPUs"; -1: of none, and the error is filled. */
int doc_index(const struct doc_at *at, const char *key, const json_t *v, const char *whose, int n,
              const char *things);

/* 'n' numbers: an array of them, or a text of numbers between blanks. 'what' names the place. */
bool doc_row(const struct doc_at *at, const char *what, json_t *row, double *out, int n);

/* How a value looks in a message: "null", "a list", "4.5". */
const char *doc_looks(const struct doc_at *at, const json_t *v);

/* A file being written: after the first failure all further writing is idle. */
struct doc_out {
    const struct problem *p;
    struct buf *buf;
    struct err *e;
    int rc;
};

#define doc_put(o, ...) ((o)->rc = (o)->rc ? (o)->rc : buf_printf((o)->buf, __VA_ARGS__))
void doc_put_number(struct doc_out *o, double x);                   // in the fewest digits
void doc_put_text(struct doc_out *o, const char *s);                // as a JSON text
void doc_put_pair(struct doc_out *o, const char *key, double x);    // , "key": x
void doc_put_fields(struct doc_out *o, const struct problem_field *fields, const void *from);
void doc_put_numbers(struct doc_out *o, const char *key, const double *x, int n);
void doc_put_ints(struct doc_out *o, const char *key, const int *x, int n);

#endif
