/* text.h - strict reading of small pieces of text.
 *
 * Nothing here guesses: a number is a whole number or a whole decimal, or the
 * caller hears that it is not.
 */
#ifndef BASE_TEXT_TEXT_H
#define BASE_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A run of bytes inside somebody else's memory; not terminated. */
struct slice {
    const char *at;
    size_t len;
};

struct slice slice_of(const char *s);
bool slice_is(struct slice s, const char *word);
int slice_shown(struct slice s);            // how much of a user's text an error repeats
struct slice slice_trim(struct slice s);    // without blanks at either end

/* The next item of a list that is parted by 'separator'; '*list' moves behind it. False: no more.
 */
bool slice_next(const char **list, char separator, struct slice *item);

/* The whole slice as a finite decimal number ("1e9", "-0.5"); no hex, no "nan",
 * no blanks. Returns 0, -EINVAL, or -ERANGE when it does not fit a double.
 */
int text_to_double(struct slice s, double *out);

/* The whole slice as a decimal integer within [low, high]. 0, -EINVAL or -ERANGE. */
int text_to_long(struct slice s, long low, long high, long *out);

/* True for well-formed UTF-8 (no surrogates, nothing overlong, no NUL). On false,
 * '*bad' (if given) is the offset of the first offending byte.
 */
bool text_is_utf8(const char *bytes, size_t len, size_t *bad);

/* True when 's' is a name we let into files and tables: 1 to 200 printable bytes,
 * valid UTF-8, no control characters, no leading or trailing blank.
 */
bool text_is_name(struct slice s);

/* Compare without regard to ASCII case and to '-', '_' and ' ' ("RTX 2080 Ti" is
 * "rtx-2080ti"): how people write GPU and model names.
 */
bool text_alike(const char *a, const char *b);

/* What 'name' is another name for, by text_alike, of 'n' rows (the name, others for it): else
 * itself.
 */
#define TEXT_ALIASES 5
const char *text_unalias(const char *const (*rows)[TEXT_ALIASES], int n, const char *name);

/* Where 'word' is among 'n' others; -1: nowhere. */
int text_find(const char *const *words, int n, const char *word);

/* How many letters one must add, drop or change to make one of the other, without regard
 * to case; of the first 100 bytes.
 */
int text_distance(const char *a, const char *b);

/* What somebody meant who wrote 'typed', of several words: true where 'word' is no further off
 * than '*limit', which then says how near a better one has to be.
 */
bool text_is_nearer(const char *typed, const char *word, int *limit);

/* The one of several, NULL behind the last, that is meant; NULL: none is within 'limit'. */
const char *text_nearest(const char *typed, const char *const *words, int limit);

#endif
