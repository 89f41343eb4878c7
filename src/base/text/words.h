/* words.h - files that people write: one thing a line, words and key=value.
 *
 *     # a comment
 *     job a1 at=0 workload="ResNet-18 (batch size 16)"    # also at a line's end
 *
 * Words are parted by blanks. A '#' where a word would begin ends the line. Quotes
 * keep blanks, '=' and '#'; inside them \" and \\ stand for " and \. A word that is
 * quoted from its beginning has no key. Knows where it is, so that an error can say so.
 */
#ifndef BASE_TEXT_WORDS_H
#define BASE_TEXT_WORDS_H

#include <stddef.h>

#include "base/text/text.h"

struct arena;
struct buf;
struct err;

#define WORDS_MAX 64    // more on a line is a mistake, not a sentence

struct word {
    struct slice key;      // before the '='; .at is NULL for a word without one
    struct slice value;    // the word itself where there is no key; quotes are gone
};

struct words {
    struct arena *arena;     // unquoted words live here
    const char *name;        // for messages: the file's name
    const char *at, *end;    // what is left to read
    int line;                // of the words below, 1-based
    int n;
    struct word word[WORDS_MAX];
};

/* Begin with 'text', which is kept, not copied. */
void words_open(struct words *w, struct arena *a, const char *name, const char *text, size_t len);

/* The words of the next line that has any. Returns 1, 0 at the end, or -EINVAL: an
 * unclosed quote, too many words.
 */
int words_next(struct words *w, struct err *e);

/* The value of the word 'w' as a terminated string, when it is a name as text_is_name
 * has it; NULL otherwise.
 */
const char *words_name(struct words *w, struct slice value);

/* Append 'value' to 'out' so that words_next reads it back: quoted where it must be. */
int words_put(struct buf *out, const char *value);

/* 'v' in the fewest digits that read back as the same number: in 'a', or appended to
 * 'out'.
 */
const char *words_number(struct arena *a, double v);
int words_put_number(struct buf *out, double v);

#endif
