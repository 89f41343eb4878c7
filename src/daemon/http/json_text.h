/* json_text.h - JSON written straight into text, for answers that are too large for a tree.
 *
 * A list of 10,000 jobs is some 300,000 values; as a tree of them it would take several times as
 * long to build as to write. Keys and values come in the order they are put; commas are ours.
 * Made by whoever answers, on the stack, of zeroes; the text is in its buffer.
 */
#ifndef DAEMON_HTTP_JSON_TEXT_H
#define DAEMON_HTTP_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The longest answer: 10,000 jobs take 5 MB. More than this is a mistake, and stops us. */
#define API_TEXT_MAX ((size_t)256 << 20)

struct api_text {
    char *data;    // from malloc, terminated; NULL until the first value
    size_t len, cap;
    bool has_item;    // the object or list that is open: then a comma comes
};

/* Objects and lists; 'key' NULL: inside a list, or the outermost. */
void api_put_open(struct api_text *t, const char *key, char bracket);    // '{' or '['
void api_put_close(struct api_text *t, char bracket);                    // '}' or ']'

/* Values; what is not known (NULL, NaN, infinite) is null. Times are to the millisecond, other
 * numbers to nine digits or to 1e-6, whichever is coarser.
 */
void api_put_text(struct api_text *t, const char *key, const char *value);
void api_put_number(struct api_text *t, const char *key, double value);
void api_put_time(struct api_text *t, const char *key, double value_s);
void api_put_whole(struct api_text *t, const char *key, long long value);
void api_put_flag(struct api_text *t, const char *key, bool value);
void api_put_null(struct api_text *t, const char *key);

#endif
