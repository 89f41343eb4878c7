#include "daemon/http/schema.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "unit/suite.h"

static const char *const kinds[] = { "training", "inference", NULL };
static const struct field inner_fields[] = {
    { "name", FIELD_TEXT, .is_required = true, .low = 1, .high = 8, .about = "what it is called" },
    { "share", FIELD_NUMBER, .low = 0.25, .high = 1.5, .about = "a part" },
    { 0 },
};
static const struct schema inner = { "Inner", inner_fields };
static const struct field fields[] = {
    { "name", FIELD_TEXT, .is_required = true, .low = 1, .high = 8, .about = "what it is called" },
    { "kind", FIELD_TEXT, .words = kinds, .may_be_null = true, .about = "which kind" },
    { "steps", FIELD_WHOLE, .low = 1, .high = 1e12, .about = "how many" },
    { "offset", FIELD_WHOLE, .about = "any" },
    { "rate", FIELD_NUMBER, .may_be_null = true, .about = "steps/s" },
    { "hold", FIELD_FLAG, .about = "wait" },
    { "deadline", FIELD_TIME, .about = "until when" },
    { "argv", FIELD_TEXTS, .low = 1, .high = 3, .about = "the command" },
    { "env", FIELD_MAP, .low = 0, .high = 2, .about = "the environment" },
    { "first", FIELD_OBJECT, .of = &inner, .about = "one" },
    { "any", FIELD_OBJECT, .about = "whatever" },
    { "rest", FIELD_LIST, .of = &inner, .low = 0, .high = 2, .about = "more" },
    { 0 },
};
static const struct schema all = { "All", fields };

static const struct {
    const char *name, *given, *says;    // NULL: it is fine
} cases[] = {
    { "what is required is enough", "{\"name\": \"a\"}", NULL },
    { "everything",
      "{\"name\": \"a\", \"kind\": \"training\", \"steps\": 1e12, \"offset\": -3, \"rate\": 0.5,"
      "\"hold\": false, \"deadline\": \"2026-11-16T18:00:00Z\", \"argv\": [\"a\", \"b\"],"
      "\"env\": {\"A\": \"b\"}, \"first\": {\"name\": \"x\", \"share\": 0.25}, \"any\": {\"x\": [1]},"
      "\"rest\": [{\"name\": \"y\"}, {\"name\": \"z\"}]}",
      NULL },
    { "null where it may be", "{\"name\": \"a\", \"kind\": null, \"rate\": null}", NULL },
    { "null where it may not be", "{\"name\": null}", "'name' wants a text, not null" },
    { "not an object", "[]", "want an object, not a list" },
    { "something missing", "{\"steps\": 1}", "'name' is missing: what it is called" },
    { "something unknown", "{\"name\": \"a\", \"zzzzzzzz\": 1}",
      "/openapi.json lists those of All" },
    { "something misspelt", "{\"name\": \"a\", \"stepz\": 1}", "did you mean 'steps'?" },
    { "an empty name is near to nothing", "{\"name\": \"a\", \"\": 1}",
      "unknown field ''; /openapi.json" },
    { "a text for a number", "{\"name\": \"a\", \"rate\": \"1\"}",
      "'rate' wants a number, not a text" },
    { "a fraction for a whole number", "{\"name\": \"a\", \"steps\": 1.5}",
      "a whole number, not 1.5" },
    { "a whole number that is none any more", "{\"name\": \"a\", \"offset\": 1e300}",
      "a whole number, not 1e+300" },
    { "a number below", "{\"name\": \"a\", \"steps\": 0}", "from 1 to 1000000000000, not 0" },
    { "a number above", "{\"name\": \"a\", \"first\": {\"name\": \"x\", \"share\": 1.6}}",
      "'first.share' wants a number from 0.25 to 1.5, not 1.6" },
    { "a text too short", "{\"name\": \"\"}", "'name' wants 1 to 8 bytes, not 0" },
    { "a text too long", "{\"name\": \"123456789\"}", "'name' wants 1 to 8 bytes, not 9" },
    { "a word that is none of those", "{\"name\": \"a\", \"kind\": \"play\"}",
      "'kind' wants training or inference, not 'play'" },
    { "a flag that is a number", "{\"name\": \"a\", \"hold\": 1}",
      "wants true or false, not a number" },
    { "a time that is none", "{\"name\": \"a\", \"deadline\": \"soon\"}", "2026-11-16T18:00:00Z" },
    { "a number in a list of texts", "{\"name\": \"a\", \"argv\": [\"x\", 2]}",
      "'argv[1]' wants a text, not a number" },
    { "too few texts", "{\"name\": \"a\", \"argv\": []}", "1 to 3 texts, not 0" },
    { "too many texts", "{\"name\": \"a\", \"argv\": [\"\", \"\", \"\", \"\"]}",
      "1 to 3 texts, not 4" },
    { "a number in a map", "{\"name\": \"a\", \"env\": {\"A\": 1}}", "'env.A' wants a text" },
    { "too much in a map", "{\"name\": \"a\", \"env\": {\"A\": \"\", \"B\": \"\", \"C\": \"\"}}",
      "0 to 2 texts, not 3" },
    { "something unknown inside", "{\"name\": \"a\", \"first\": {\"nam\": \"x\"}}",
      "unknown field 'first.nam'; did you mean 'name'?" },
    { "something missing in a list", "{\"name\": \"a\", \"rest\": [{\"name\": \"x\"}, {}]}",
      "'rest[1].name' is missing" },
    { "a list that is too long", "{\"name\": \"a\", \"rest\": [{}, {}, {}]}",
      "0 to 2 objects, not 3" },
    { "a list for any object", "{\"name\": \"a\", \"any\": []}",
      "'any' wants an object, not a list" },
};

EACH(checked, cases)
{
    json_t *o = json_loads(cases[_i].given, JSON_DECODE_ANY, NULL);
    struct err e = { 0 };
    int rc = schema_check(&all, o, &e);

    ck_assert_ptr_nonnull(o);
    ck_assert_msg((rc == 0) == (cases[_i].says == NULL), "%s: %s", cases[_i].name, e.text);
    if (cases[_i].says != NULL)
        ck_assert_msg(strstr(e.text, cases[_i].says), "%s: %s", cases[_i].name, e.text);
    json_decref(o);
}

static const struct {
    const char *text;
    double want;    // NaN: none
} times[] = {
    { "1970-01-01T00:00:00Z", 0 },
    { "2026-11-16T18:00:00Z", 1794852000 },
    { "2026-11-16t18:00:00z", 1794852000 },
    { "2026-11-16T19:30:00+01:30", 1794852000 },
    { "2026-11-16T13:00:00-05:00", 1794852000 },
    { "2026-11-16T18:00:00.25Z", 1794852000.25 },
    { "2024-02-29T00:00:00Z", 1709164800 },
    { "2016-12-31T23:59:60Z", 1483228800 },
    { "1969-12-31T23:59:59Z", -1 },
    { "2100-02-29T00:00:00Z", NAN },
    { "2026-02-30T00:00:00Z", NAN },
    { "2026-13-01T00:00:00Z", NAN },
    { "2026-00-01T00:00:00Z", NAN },
    { "2026-11-16T24:00:00Z", NAN },
    { "2026-11-16T18:60:00Z", NAN },
    { "2026-11-16T18:00:61Z", NAN },
    { "2026-11-16T18:00:00", NAN },
    { "2026-11-16T18:00:00.Z", NAN },
    { "2026-11-16T18:00:00+1:00", NAN },
    { "2026-11-16T18:00:00+24:00", NAN },
    { "2026-11-16T18:00:00Z ", NAN },
    { " 2026-11-16T18:00:00Z", NAN },
    { "2026-11-16 18:00:00Z", NAN },
    { "2026-11-16", NAN },
    { "26-11-16T18:00:00Z", NAN },
    { "+026-11-16T18:00:00Z", NAN },
    { "", NAN },
};

EACH(a_time_is_strict, times)
{
    json_t *v = json_string(times[_i].text);
    double got = schema_time_s(v);

    ck_assert_msg(got == times[_i].want || (isnan(got) && isnan(times[_i].want)), "'%s': %f",
                  times[_i].text, got);
    json_decref(v);
}

static const struct {
    const char *field, *text, *want;    // as JSON; NULL: refused
} values[] = {
    { "name", "a b", "\"a b\"" },
    { "name", "", NULL },
    { "name", "\xff", NULL },
    { "kind", "inference", "\"inference\"" },
    { "kind", "none", NULL },
    { "steps", "12", "12" },
    { "steps", "1e3", "1000" },
    { "steps", "1.5", NULL },
    { "steps", "0", NULL },
    { "steps", "0x10", NULL },
    { "steps", "", NULL },
    { "rate", "0.5", "0.5" },
    { "rate", "nan", NULL },
    { "hold", "", "true" },
    { "hold", "true", "true" },
    { "hold", "1", "true" },
    { "hold", "0", "false" },
    { "hold", "maybe", NULL },
    { "deadline", "12.5", "12.5" },
    { "deadline", "1970-01-01T00:01:00Z", "60.0" },
    { "deadline", "tomorrow", NULL },
    { "argv", "a,b", "[\"a\",\"b\"]" },
    { "argv", "", NULL },
    { "argv", "a,b,c,d", NULL },
    { "first", "{}", NULL },
    { "env", "x", NULL },
};

EACH(a_text_of_a_query_gets_its_type, values)
{
    struct err e = { 0 };
    json_t *v = schema_value(schema_find(&all, values[_i].field), values[_i].text, &e);
    char *text = v != NULL ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;

    ck_assert_msg((v == NULL) == (values[_i].want == NULL), "%s=%s: %s", values[_i].field,
                  values[_i].text, text != NULL ? text : e.text);
    if (v != NULL)
        ck_assert_str_eq(text, values[_i].want);
    else
        ck_assert_ptr_nonnull(strstr(e.text, values[_i].field));
    json_decref(v);
    free(text);
}

TEST(it_describes_itself)
{
    static const char want[] =
        "{\"type\":\"object\",\"properties\":{"
        "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":8,"
        "\"description\":\"what it is called\"},"
        "\"share\":{\"type\":\"number\",\"minimum\":0.25,\"maximum\":1.5,\"description\":\"a part\"}},"
        "\"additionalProperties\":false,\"required\":[\"name\"]}";
    json_t *o = schema_openapi(&inner);
    json_t *whole = schema_openapi(&all);
    json_t *p = json_object_get(whole, "properties");
    char *text = json_dumps(o, JSON_COMPACT);

    ck_assert_str_eq(text, want);
    ck_assert_uint_eq(json_object_size(p), sizeof fields / sizeof *fields - 1);
    ck_assert(json_is_true(json_object_get(json_object_get(p, "kind"), "nullable")));
    ck_assert_str_eq(json_string_value(json_object_get(
                         json_object_get(json_object_get(p, "rest"), "items"), "$ref")),
                     "#/components/schemas/Inner");
    free(text);
    json_decref(o);
    json_decref(whole);
}
