/* doc.h - JSON documents: values out of them with messages that name the place, texts into them.
 *
 * Private to the files that read and write problems and plans.
 */
#ifndef OPTIMIZE_FILES_DOC_H
#define OPTIMIZE_FILES_DOC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct arena;
struct buf;
struct err;

/* A file being read. */
struct doc {
    struct arena *arena;
    const char *name;
    struct err *e;
};

/* An object in it: jobs[12], or the top with an index of -1. */
struct doc_at {
    json_t *object;
    const char *list;
    int index;
};

/* The file's text; NULL when it is no JSON object, and the error says where. */
json_t *doc_open(struct doc *f, const char *text, size_t len);

/* Fill the error: "FILE: jobs[12].key: ..."; 'key' may be NULL. -EINVAL. */
int doc_wrong(struct doc *f, const struct doc_at *at, const char *key, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Is it an object that has none but these keys (NULL-terminated)? A stranger is named with what
 * may have been meant.
 */
int doc_keys(struct doc *f, const struct doc_at *at, const char *const *known);

/* The value of a key where it is there; else '*out' stays. 0 or -EINVAL. */
int doc_number(struct doc *f, const struct doc_at *at, const char *key, double *out);
int doc_whole(struct doc *f, const struct doc_at *at, const char *key, int low, int high, int *out);
int doc_flag(struct doc *f, const struct doc_at *at, const char *key, bool *out);

/* A name, which must be there; in the arena. */
int doc_name(struct doc *f, const struct doc_at *at, const char *key, const char **out);

/* A list at a key: '*out' is NULL where the key is not there. */
int doc_list(struct doc *f, const struct doc_at *at, const char *key, json_t **out);

/* 'n' numbers: an array of them, or a text of numbers between blanks. 'what' names the place. */
int doc_row(struct doc *f, const struct doc_at *at, const char *what, json_t *row, double *out,
            int n);

/* How a value looks in a message: "null", "a text", "4.5". */
const char *doc_looks(struct doc *f, const json_t *v);

/* Append 's' as a JSON text. */
int doc_put_text(struct buf *out, const char *s);

#endif
