#include "daemon/http/schema.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/text/text.h"

#define PATH_MAX_BYTES 160    // of "command.argv[3]" in a message
#define TIME_MAX_S 1e11       // the year 5138
#define NEAR 3                // letters that a misspelt name may be away from what was meant

/* ---- times ---- */

/* Does 'text' begin like 'form', in which 'd' is any digit and a letter is one of either case? */
static bool has_form(const char *text, const char *form)
{
    for (; *form != '\0'; form++, text++)
        if (*form == 'd' ? !isdigit((unsigned char)*text) : toupper((unsigned char)*text) != *form)
            return false;
    return true;
}

/* The number that the 'n' digits at 'p' are. */
static int digits(const char *p, int n)
{
    int v = 0;

    for (int i = 0; i < n; i++)
        v = 10 * v + (p[i] - '0');
    return v;
}

/* ".25"; NaN when digits are missing. */
static double take_fraction(const char **at)
{
    double v = 0, unit = 0.1;

    if (**at != '.')
        return 0;
    ++*at;
    if (!isdigit((unsigned char)**at))
        return NAN;
    while (isdigit((unsigned char)**at)) {
        v += unit * (*(*at)++ - '0');
        unit /= 10;
    }
    return v;
}

/* "Z" or "+01:00" to the end of the text, as seconds east of Greenwich; NaN otherwise. */
static double offset_s(const char *p)
{
    if (has_form(p, "Z"))
        return p[1] == '\0' ? 0 : (double)NAN;
    if ((*p != '+' && *p != '-') || !has_form(p + 1, "dd:dd") || p[6] != '\0')
        return NAN;
    const int hours = digits(p + 1, 2), minutes = digits(p + 4, 2);
    if (hours > 23 || minutes > 59)
        return NAN;
    return (*p == '-' ? -1 : 1) * (3600.0 * hours + 60.0 * minutes);
}

/* RFC 3339, section 5.6, and nothing else: a date without a time of day is no time. */
static double parse_time(const char *p)
{
    if (!has_form(p, "dddd-dd-ddTdd:dd:dd"))
        return NAN;
    const int month = digits(p + 5, 2), day = digits(p + 8, 2);
    const int hour = digits(p + 11, 2), minute = digits(p + 14, 2), second = digits(p + 17, 2);
    struct tm date = { .tm_year = digits(p, 4) - 1900, .tm_mon = month - 1, .tm_mday = day };
    const double date_s = (double)timegm(&date);    // which makes March of the 30th of February
    if (date.tm_mon != month - 1 || date.tm_mday != day || hour > 23 || minute > 59 || second > 60)
        return NAN;
    p += strlen("dddd-dd-ddTdd:dd:dd");
    const double fraction = take_fraction(&p);
    return date_s + 3600.0 * hour + 60.0 * minute + second + fraction - offset_s(p);
}

double schema_time_s(json_t *v)
{
    double t = NAN;

    if (json_is_number(v))
        t = json_number_value(v);
    else if (json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v))
        t = parse_time(json_string_value(v));
    return isfinite(t) ? t : (double)NAN;
}

/* ---- checking ---- */

/* Where we are in the object, for messages. */
struct schema_path {
    char path[PATH_MAX_BYTES];
};

static struct schema_path place_of(const struct schema_path *p, const char *name)
{
    struct schema_path at;

    snprintf(at.path, sizeof at.path, "%.96s%s%.60s", p->path, p->path[0] != '\0' ? "." : "", name);
    return at;
}

static struct schema_path place_item(const struct schema_path *p, size_t i)
{
    struct schema_path at;

    snprintf(at.path, sizeof at.path, "%.130s[%zu]", p->path, i);
    return at;
}

static const char *json_word(json_t *v)
{
    static const char *const words[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "a flag",
        [JSON_FALSE] = "a flag",     [JSON_NULL] = "null",
    };

    return words[json_typeof(v)];
}

static int want(const struct schema_path *at, const char *what, json_t *got, struct err *e)
{
    return err_set(e, EINVAL, "'%s' wants %s, not %s", at->path, what, json_word(got));
}

static bool has_bounds(const struct field *f)
{
    return f->low != 0 || f->high != 0;
}

static bool is_within(const struct field *f, double v)
{
    return !has_bounds(f) || (v >= f->low && v <= f->high);
}

static int check_number(const struct field *f, json_t *v, const struct schema_path *at,
                        struct err *e)
{
    double x = json_number_value(v);

    if (!json_is_number(v))
        return want(at, f->type == FIELD_WHOLE ? "a whole number" : "a number", v, e);
    if (!isfinite(x))
        return err_set(e, EINVAL, "'%s' wants a finite number", at->path);
    if (f->type == FIELD_WHOLE && (x != floor(x) || fabs(x) > 9007199254740992.0))
        return err_set(e, EINVAL, "'%s' wants a whole number, not %g", at->path, x);
    if (!is_within(f, x))
        return err_set(e, EINVAL, "'%s' wants a number from %.15g to %.15g, not %.15g", at->path,
                       f->low, f->high, x);
    return 0;
}

static int check_word(const struct field *f, const char *word, const struct schema_path *at,
                      struct err *e)
{
    char list[256] = "";
    size_t n = 0;

    for (int i = 0; f->words[i] != NULL; i++) {
        if (strcmp(f->words[i], word) == 0)
            return 0;
        const char *between = i == 0 ? "" : f->words[i + 1] != NULL ? ", " : " or ";
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", between, f->words[i]);
        if (n >= sizeof list)
            n = sizeof list - 1;
    }
    return err_set(e, EINVAL, "'%s' wants %s, not '%.60s'", at->path, list, word);
}

/* Are there as many as may be? */
static int check_count(const struct field *f, size_t n, const char *what,
                       const struct schema_path *at, struct err *e)
{
    if (is_within(f, (double)n))
        return 0;
    return err_set(e, EINVAL, "'%s' wants %.0f to %.0f %s, not %zu", at->path, f->low, f->high,
                   what, n);
}

static int check_text(const struct field *f, json_t *v, const struct schema_path *at, struct err *e)
{
    if (!json_is_string(v))
        return want(at, "a text", v, e);
    if (f->words != NULL)
        return check_word(f, json_string_value(v), at, e);
    return check_count(f, json_string_length(v), "bytes", at, e);
}

static int check_texts(const struct field *f, json_t *v, const struct schema_path *at,
                       struct err *e)
{
    size_t i;
    json_t *item;

    if (!json_is_array(v))
        return want(at, "a list of texts", v, e);
    json_array_foreach(v, i, item)
    {
        struct schema_path here = place_item(at, i);

        if (!json_is_string(item))
            return want(&here, "a text", item, e);
    }
    return check_count(f, json_array_size(v), "texts", at, e);
}

static int check_map(const struct field *f, json_t *v, const struct schema_path *at, struct err *e)
{
    const char *key;
    json_t *item;

    if (!json_is_object(v))
        return want(at, "an object of texts", v, e);
    json_object_foreach(v, key, item)
    {
        struct schema_path here = place_of(at, key);

        if (!json_is_string(item))
            return want(&here, "a text", item, e);
    }
    return check_count(f, json_object_size(v), "texts", at, e);
}

static int check_object(const struct schema *s, json_t *o, const struct schema_path *at,
                        struct err *e);

static int check_list(const struct field *f, json_t *v, const struct schema_path *at, struct err *e)
{
    size_t i;
    json_t *item;

    if (!json_is_array(v))
        return want(at, "a list of objects", v, e);
    if (check_count(f, json_array_size(v), "objects", at, e) < 0)
        return -EINVAL;
    json_array_foreach(v, i, item)
    {
        struct schema_path here = place_item(at, i);

        if (check_object(f->of, item, &here, e) < 0)
            return -EINVAL;
    }
    return 0;
}

static int check_time(json_t *v, const struct schema_path *at, struct err *e)
{
    double t = schema_time_s(v);

    if (isnan(t))
        return err_set(e, EINVAL,
                       "'%s' wants a time as \"2026-11-16T18:00:00Z\", or seconds since 1970",
                       at->path);
    if (!(t >= 0 && t <= TIME_MAX_S))
        return err_set(e, EINVAL, "'%s' wants a time from 0 to %.0f, not %g", at->path, TIME_MAX_S,
                       t);
    return 0;
}

static int check_field(const struct field *f, json_t *v, const struct schema_path *at,
                       struct err *e)
{
    if (json_is_null(v) && f->may_be_null)
        return 0;
    switch (f->type) {
    case FIELD_TEXT:
        return check_text(f, v, at, e);
    case FIELD_NUMBER:
    case FIELD_WHOLE:
        return check_number(f, v, at, e);
    case FIELD_FLAG:
        return json_is_boolean(v) ? 0 : want(at, "true or false", v, e);
    case FIELD_TIME:
        return check_time(v, at, e);
    case FIELD_TEXTS:
        return check_texts(f, v, at, e);
    case FIELD_MAP:
        return check_map(f, v, at, e);
    case FIELD_OBJECT:
        return check_object(f->of, v, at, e);
    case FIELD_LIST:
        return check_list(f, v, at, e);
    }
    return 0;
}

const struct field *schema_find(const struct schema *s, const char *name)
{
    for (const struct field *f = s->fields; f->name != NULL; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

const char *schema_near(const struct schema *s, const char *name)
{
    const char *best = NULL;
    int limit = NEAR;

    for (const struct field *f = s->fields; f->name != NULL; f++)
        if (text_distance(name, f->name) < (int)strlen(f->name) &&
            text_is_nearer(name, f->name, &limit))
            best = f->name;
    return best;
}

static int unknown(const struct schema *s, const struct schema_path *at, const char *name,
                   struct err *e)
{
    const struct schema_path here = place_of(at, name);
    const char *meant = schema_near(s, name);

    if (meant != NULL)
        return err_set(e, EINVAL, "unknown field '%s'; did you mean '%s'?", here.path, meant);
    return err_set(e, EINVAL, "unknown field '%s'; /openapi.json lists those of %s", here.path,
                   s->name);
}

static int check_required(const struct schema *s, json_t *o, const struct schema_path *at,
                          struct err *e)
{
    for (const struct field *f = s->fields; f->name != NULL; f++)
        if (f->is_required && json_object_get(o, f->name) == NULL)
            return err_set(e, EINVAL, "'%s' is missing: %s", place_of(at, f->name).path,
                           f->about != NULL ? f->about : "give it");
    return 0;
}

static int check_object(const struct schema *s, json_t *o, const struct schema_path *at,
                        struct err *e)
{
    const char *key;
    json_t *v;

    if (!json_is_object(o))
        return at->path[0] != '\0' ? want(at, "an object", o, e)
                                   : err_set(e, EINVAL, "want an object, not %s", json_word(o));
    if (s == NULL)
        return 0;
    json_object_foreach(o, key, v)
    {
        const struct field *f = schema_find(s, key);
        const struct schema_path here = place_of(at, key);

        if (f == NULL)
            return unknown(s, at, key, e);
        if (check_field(f, v, &here, e) < 0)
            return -EINVAL;
    }
    return check_required(s, o, at, e);
}

int schema_check(const struct schema *s, json_t *o, struct err *e)
{
    const struct schema_path root = { "" };

    return check_object(s, o, &root, e);
}

/* ---- values that came as text ---- */

static json_t *split_texts(const char *text)
{
    json_t *list = json_array();

    while (*text != '\0') {
        size_t n = strcspn(text, ",");

        json_array_append_new(list, json_stringn(text, n));
        text += n + (text[n] == ',');
    }
    return list;
}

static json_t *read_number(const struct field *f, const char *text)
{
    double v = 0;

    if (text_to_double(slice_of(text), &v) < 0)
        return NULL;
    if (f->type == FIELD_WHOLE && v == floor(v) && fabs(v) <= 9007199254740992.0)
        return json_integer((json_int_t)v);
    return json_real(v);
}

static json_t *read_flag(const char *text)
{
    if (text[0] == '\0' || strcmp(text, "true") == 0 || strcmp(text, "1") == 0)
        return json_true();
    if (strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        return json_false();
    return NULL;
}

/* NULL: cannot be what it should be. */
static json_t *read_value(const struct field *f, const char *text)
{
    double v = 0;

    switch (f->type) {
    case FIELD_NUMBER:
    case FIELD_WHOLE:
        return read_number(f, text);
    case FIELD_FLAG:
        return read_flag(text);
    case FIELD_TIME:
        if (text_to_double(slice_of(text), &v) < 0)
            v = parse_time(text);
        return isfinite(v) ? json_real(v) : NULL;
    case FIELD_TEXTS:
        return split_texts(text);
    default:
        return NULL;
    }
}

json_t *schema_value(const struct field *f, const char *text, struct err *e)
{
    const struct schema_path root = { "" };
    const struct schema_path here = place_of(&root, f->name);
    json_t *asked = json_string(text);
    json_t *v;

    if (asked == NULL) {
        err_fill(e, EINVAL, "'%s' is not UTF-8; send it as %%XX of its UTF-8 bytes", f->name);
        return NULL;
    }
    v = f->type == FIELD_TEXT ? json_incref(asked) : read_value(f, text);
    if (check_field(f, v != NULL ? v : asked, &here, e) < 0) {
        json_decref(v);
        v = NULL;
    }
    json_decref(asked);
    return v;
}

/* ---- as OpenAPI has it ---- */

static void set_bound(json_t *o, const char *key, double v)
{
    if (v == floor(v) && fabs(v) < 1e15)
        json_object_set_new(o, key, json_integer((json_int_t)v));
    else if (isfinite(v))
        json_object_set_new(o, key, json_real(v));
}

static void set_bounds(json_t *o, const struct field *f, const char *low, const char *high)
{
    if (!has_bounds(f))
        return;
    set_bound(o, low, f->low);
    set_bound(o, high, f->high);
}

json_t *schema_ref(const struct schema *s)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", s->name));
}

static json_t *words_openapi(const struct field *f)
{
    json_t *words = json_array();

    for (int i = 0; f->words[i] != NULL; i++)
        json_array_append_new(words, json_string(f->words[i]));
    if (f->may_be_null)    // 3.0 wants null among them, too
        json_array_append_new(words, json_null());
    return words;
}

static json_t *type_openapi(const struct field *f)
{
    static const struct {
        const char *type, *format;
        const char *low, *high;    // what the bounds are called; NULL: there are none
    } as[] = {
        [FIELD_TEXT] = { "string", NULL, "minLength", "maxLength" },
        [FIELD_NUMBER] = { "number", NULL, "minimum", "maximum" },
        [FIELD_WHOLE] = { "integer", "int64", "minimum", "maximum" },
        [FIELD_FLAG] = { .type = "boolean" },
        [FIELD_TEXTS] = { "array", NULL, "minItems", "maxItems" },
        [FIELD_MAP] = { .type = "object" },
        [FIELD_OBJECT] = { .type = "object" },
        [FIELD_LIST] = { "array", NULL, "minItems", "maxItems" },
    };

    if (f->type == FIELD_TIME)
        return json_pack("{s:[{s:s, s:s}, {s:s}]}", "oneOf", "type", "string", "format",
                         "date-time", "type", "number");
    if (f->type == FIELD_OBJECT && f->of != NULL)
        return json_pack("{s:[o]}", "allOf", schema_ref(f->of));
    json_t *o = json_pack("{s:s}", "type", as[f->type].type);
    if (as[f->type].format != NULL)
        json_object_set_new(o, "format", json_string(as[f->type].format));
    if (f->type == FIELD_TEXTS || f->type == FIELD_MAP)
        json_object_set_new(o, f->type == FIELD_MAP ? "additionalProperties" : "items",
                            json_pack("{s:s}", "type", "string"));
    if (f->type == FIELD_LIST)
        json_object_set_new(o, "items", schema_ref(f->of));
    if (f->words != NULL)
        json_object_set_new(o, "enum", words_openapi(f));
    else if (as[f->type].low != NULL)
        set_bounds(o, f, as[f->type].low, as[f->type].high);
    return o;
}

json_t *schema_field_openapi(const struct field *f)
{
    json_t *o = type_openapi(f);

    if (f->may_be_null)
        json_object_set_new(o, "nullable", json_true());
    return o;
}

json_t *schema_openapi(const struct schema *s)
{
    json_t *properties = json_object();
    json_t *required = json_array();
    json_t *o = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                          "additionalProperties", 0);

    for (const struct field *f = s->fields; f->name != NULL; f++) {
        json_t *p = schema_field_openapi(f);

        if (f->about != NULL)
            json_object_set_new(p, "description", json_string(f->about));
        json_object_set_new(properties, f->name, p);
        if (f->is_required)
            json_array_append_new(required, json_string(f->name));
    }
    if (json_array_size(required) > 0)    // 3.0 does not allow an empty list
        json_object_set(o, "required", required);
    json_decref(required);
    return o;
}
