/* schema.h - what a JSON object, or a query, must look like: tables that check and describe.
 *
 * The one source of truth about shapes: requests are checked against them, /openapi.json is
 * printed from them, and tests hold the handlers' answers against them.
 */
#ifndef DAEMON_HTTP_SCHEMA_H
#define DAEMON_HTTP_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>

struct err;

enum field_type {
    FIELD_TEXT,      // low..high: bytes
    FIELD_NUMBER,    // low..high, finite
    FIELD_WHOLE,     // low..high
    FIELD_FLAG,
    FIELD_TIME,      // "2026-11-16T18:00:00Z", or seconds since 1970; no bounds
    FIELD_TEXTS,     // a list of texts; low..high: how many
    FIELD_MAP,       // an object of texts
    FIELD_OBJECT,    // 'of'; NULL: any object
    FIELD_LIST,      // of objects 'of'
};

struct field {
    const char *name;
    enum field_type type;
    bool is_required;
    bool may_be_null;
    double low, high;            // both 0: no bounds
    const char *const *words;    // FIELD_TEXT: one of these, NULL at the end; NULL: anything
    const struct schema *of;
    const char *about;    // one sentence without a full stop, with the unit
};

struct schema {
    const char *name;              // "Job"
    const struct field *fields;    // up to one without a name
};

/* 0, or -EINVAL naming the field, what was wrong, and the cure ("unknown field 'stepz'; did you
 * mean 'steps'?"). Unknown fields are refused, keys given twice have been by the parser.
 */
int schema_check(const struct schema *s, json_t *o, struct err *e);

/* One value that came as text (of a query): checked, and as JSON of the field's type (a time as
 * a number, a list of texts from words with commas between, a flag also from "", "1" and "0");
 * NULL with 'e' filled otherwise.
 */
json_t *schema_value(const struct field *f, const char *text, struct err *e);

/* The schema as OpenAPI 3.0 has it; schemas it refers to by "#/components/schemas/NAME". */
json_t *schema_openapi(const struct schema *s);

/* Such a reference: {"$ref": ...}. */
json_t *schema_ref(const struct schema *s);

/* One field's type, bounds and words, as a parameter's "schema" has them. */
json_t *schema_field_openapi(const struct field *f);

/* The field of that name; NULL: there is none. And the name that somebody may have meant. */
const struct field *schema_find(const struct schema *s, const char *name);
const char *schema_near(const struct schema *s, const char *name);

/* FIELD_TIME to seconds since 1970; NaN when it is none. A text is RFC 3339 with an offset. */
double schema_time_s(json_t *v);

#endif
