/* json.h - JSON as everybody here writes and reads it, on top of jansson. */
#ifndef BASE_TEXT_JSON_H
#define BASE_TEXT_JSON_H

#include <jansson.h>
#include <stddef.h>

/* JSON has no NaN: what is not known is null. NULL is null, too. */
json_t *json_number_or_null(double v);
json_t *json_text_or_null(const char *text);

/* A number of an object, or NaN; a text, or NULL. */
double json_number_of(const json_t *o, const char *key);
const char *json_text_of(const json_t *o, const char *key);

/* Print it to standard output with a newline behind, and let go of it. 'flags' are jansson's. */
void json_print(json_t *j, size_t flags);

#endif
