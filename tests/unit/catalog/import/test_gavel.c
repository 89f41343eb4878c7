#include "catalog/import/import.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "unit/catalog/import/drafts.h"
#include "unit/suite.h"

FIXTURE(set_up, tear_down)

static int read_text(const char *throughputs, const char *isolated, struct err *e)
{
    struct draft_text one = { "one.json", throughputs, strlen(throughputs) };
    struct draft_text two = { "two.json", isolated, isolated != NULL ? strlen(isolated) : 0 };

    return gavel_read(&d, &one, isolated != NULL ? &two : NULL, NULL, e);
}

#define A "\"('A (batch size 4)', 1)\""
#define B "\"('B', 1)\""
#define A2 "\"('A (batch size 4)', 2)\""
#define B2 "\"('B', 2)\""

/* ---- what is read ---- */

/* Rows as "workload gpu neighbour n_gpus spread fits throughput", one a line. */
static const char *show_rows(void)
{
    char *text = arena_strdup(&d.arena, "");

    for (int i = 0; i < d.n_rows; i++) {
        const struct measurement *m = &d.rows[i];

        text = arena_printf(&d.arena, "%s%s %s %s %d %d %d %g\n", text,
                            d.workloads[m->key.workload].name, d.types[m->key.gpu_type].name,
                            m->key.neighbour >= 0 ? d.workloads[m->key.neighbour].name : "-",
                            m->key.n_gpus, m->key.is_spread, m->fits,
                            isnan(m->throughput) ? 0 : m->throughput);
    }
    return text;
}

static const struct {
    const char *name, *throughputs, *isolated, *want;
    int n_dropped, n_copies;
} reads[] = {
    { "an isolated speed is a row", "{\"k80\": {" A ": {\"null\": 2.5}}}", NULL,
      "A (batch size 4) k80 - 1 0 1 2.5\n", 0, 0 },
    { "zero at one worker means that it does not fit", "{\"k80\": {" B ": {\"null\": 0}}}", NULL,
      "B k80 - 1 0 0 0\n", 0, 0 },
    { "a pair is taken from both of its jobs, each its own speed",
      "{\"k80\": {" A ": {" B ": [1, 2]}, " B ": {" A ": [2, 1]}}}", NULL,
      "A (batch size 4) k80 B 1 0 1 1\nB k80 A (batch size 4) 1 0 1 2\n", 0, 0 },
    { "a pair that is listed once gives both sides", "{\"k80\": {" A ": {" B ": [1, 2]}}}", NULL,
      "A (batch size 4) k80 B 1 0 1 1\nB k80 A (batch size 4) 1 0 1 2\n", 0, 0 },
    { "job types without workers are of one worker",
      "{\"k80\": {\"A\": {\"null\": 2, \"B\": [1, 3]}}, \"p100\": {\"B\": {\"null\": 4}}}", NULL,
      "A k80 - 1 0 1 2\nB p100 - 1 0 1 4\nA k80 B 1 0 1 1\nB k80 A 1 0 1 3\n", 0, 0 },
    { "a job beside itself that was measured twice is two rows",
      "{\"k80\": {" B ": {" B ": [3, 4]}}}", NULL, "B k80 B 1 0 1 3\nB k80 B 1 0 1 4\n", 0, 0 },
    { "a job beside itself is one row", "{\"k80\": {" B ": {" B ": [3, 3]}}}", NULL,
      "B k80 B 1 0 1 3\n", 0, 0 },
    { "a pair of zeros does not fit", "{\"k80\": {" A ": {" B ": [0, 0]}}}", NULL,
      "A (batch size 4) k80 B 1 0 0 0\nB k80 A (batch size 4) 1 0 0 0\n", 0, 0 },
    { "several workers are a gang, and their zeros are dropped",
      "{\"k80\": {" A2 ": {\"null\": 5, " B2 ": [0, 0]}, " B2 ": {\"null\": 0}}}", NULL,
      "A (batch size 4) k80 - 2 0 1 5\n", 2, 0 },
    { "a pair of gangs is kept when it was measured",
      "{\"k80\": {" B2 ": {" B2 ": [4, 4], " A ": [1, 1]}}}", NULL, "B k80 B 2 0 1 4\n", 1, 0 },
    { "an unconsolidated GPU is the same type with its gangs spread",
      "{\"k80_unconsolidated\": {" B ": {\"null\": 1, " B ": [1, 1]}, " B2 ": {\"null\": 3}},"
      " \"k80\": {" B ": {\"null\": 1, " B ": [1, 1]}}}",
      NULL, "B k80 - 2 1 1 3\nB k80 - 1 0 1 1\nB k80 B 1 0 1 1\n", 0, 2 },
    { "isolated speeds of another file keep the slowdowns of this one",
      "{\"k80\": {" A ": {\"null\": 10, " B ": [5, 3]}, " B ": {\"null\": 4}}}",
      "{\"k80\": {" A ": {\"null\": 20}, " B ": {\"null\": 2}}}",
      "A (batch size 4) k80 - 1 0 1 20\nB k80 - 1 0 1 2\n"
      "A (batch size 4) k80 B 1 0 1 10\nB k80 A (batch size 4) 1 0 1 1.5\n",
      0, 0 },
    { "a slowdown above one is kept as measured",
      "{\"k80\": {" B ": {\"null\": 4, " B ": [5, 5]}}}", NULL,
      "B k80 - 1 0 1 4\nB k80 B 1 0 1 5\n", 0, 0 },
};

EACH(the_meaning_of_a_value_depends_on_where_it_stands, reads)
{
    struct err e = { 0 };

    ck_assert_msg(read_text(reads[_i].throughputs, reads[_i].isolated, &e) == 0, "%s: %s",
                  reads[_i].name, e.text);
    ck_assert_msg(strcmp(show_rows(), reads[_i].want) == 0, "%s:\n%s", reads[_i].name, show_rows());
    ck_assert_int_eq(d.report.n_dropped, reads[_i].n_dropped);
    ck_assert_int_eq(d.report.n_copies, reads[_i].n_copies);
}

TEST(types_have_the_names_of_the_file_and_built_in_figures)
{
    ck_assert_int_eq(read_text("{\"v100\": {" A ": {\"null\": 1}},"
                               " \"zz9\": {" A ": {\"null\": 1}}}",
                               NULL, NULL),
                     0);
    ck_assert_str_eq(d.types[0].name, "v100");
    ck_assert(d.types[0].cap_w > 0);
    ck_assert(isnan(d.types[1].cap_w));
    ck_assert_str_eq(d.workloads[0].family, "A");
    ck_assert_double_eq(d.workloads[0].batch, 4);
}

/* ---- what is refused ---- */

static const struct {
    const char *name, *given, *want;
} refusals[] = {
    { "nothing", "", "line 1" },
    { "half an object", "{\"k80\": {", "line 1, column" },
    { "an array", "[]", "want an object of GPU types" },
    { "no GPU", "{}", "want an object of GPU types" },
    { "a GPU that is a number", "{\"k80\": 5}", "k80: want an object" },
    { "a job that is a number", "{\"k80\": {" B ": 5}}", "k80.\"('B', 1)\": want an object" },
    { "a job key without workers among others", "{\"k80\": {" A ": {\"null\": 1}, \"B\": {}}}",
      "k80.\"B\": want a job type" },
    { "a job key with workers among others", "{\"k80\": {\"B\": {\"null\": 1}, " A ": {}}}",
      "k80.\"('A (batch size 4)', 1)\": want a job type" },
    { "a job key with no name", "{\"k80\": {\"('', 1)\": {}}}", "want a job type" },
    { "an empty job key", "{\"k80\": {\"\": {}}}", "want a job type" },
    { "nothing but the suffix", "{\"_unconsolidated\": {" B ": {\"null\": 1}}}",
      "_unconsolidated: a suffix without a GPU type" },
    { "a pair that contradicts its mirror",
      "{\"k80\": {" A ": {" B ": [1, 2]}, " B ": {" A ": [2, 3]}}}",
      "k80.\"('A (batch size 4)', 1)\".\"('B', 1)\": contradicts "
      "k80.\"('B', 1)\".\"('A (batch size 4)', 1)\", the same pair" },
    { "a pair that fits from one side only",
      "{\"k80\": {" A ": {" B ": [0, 0]}, " B ": {" A ": [2, 1]}}}", "contradicts" },
    { "zero workers", "{\"k80\": {\"('B', 0)\": {}}}", "want a job type" },
    { "many workers", "{\"k80\": {\"('B', 99999999)\": {}}}", "want a job type" },
    { "a speed that is a text", "{\"k80\": {" B ": {\"null\": \"fast\"}}}",
      "k80.\"('B', 1)\".null: want a number" },
    { "a negative speed", "{\"k80\": {" B ": {\"null\": -1}}}", "wrong unit?" },
    { "a huge speed", "{\"k80\": {" B ": {\"null\": 1e12}}}", "k80.\"('B', 1)\".null: not a pl" },
    { "a number too large for a double", "{\"k80\": {" B ": {\"null\": 1e999}}}", "line 1" },
    { "a pair that is a number", "{\"k80\": {" B ": {" B ": 1}}}", "want two numbers" },
    { "a pair of three", "{\"k80\": {" B ": {" B ": [1, 1, 1]}}}", "want two numbers" },
    { "half a pair of zeros", "{\"k80\": {" A ": {" B ": [0, 1]}}}", "one of the two" },
    { "a neighbour's key that is none", "{\"k80\": {" B ": {\"x\": [1, 1]}}}",
      "k80.\"('B', 1)\".\"x\": want a job type" },
    { "the same key twice", "{\"k80\": {}, \"k80\": {}}", "duplicate" },
    { "a spread GPU without its base", "{\"k80_unconsolidated\": {}}", "without the suffix" },
    { "a name with a newline", "{\"k8\\n0\": {}}", "printable" },
    { "a job name with a control character", "{\"k80\": {\"('B\\u0001', 1)\": {}}}", "want a job" },
    { "not one measurement", "{\"k80\": {}}", "not one measurement" },
};

EACH(malformed_input_is_refused_with_its_place, refusals)
{
    struct err e = { 0 };

    ck_assert_msg(read_text(refusals[_i].given, NULL, &e) == -EINVAL, "%s", refusals[_i].name);
    ck_assert_msg(strstr(e.text, refusals[_i].want) != NULL, "%s: %s", refusals[_i].name, e.text);
    ck_assert_msg(strncmp(e.text, "one.json: ", 10) == 0, "%s: %s", refusals[_i].name, e.text);
}

TEST(deep_nesting_is_refused)
{
    enum { DEEP = 100000 };
    char *text = arena_alloc(&d.arena, DEEP + 1);
    struct err e = { 0 };

    memset(text, '[', DEEP);
    ck_assert_int_eq(read_text(text, NULL, &e), -EINVAL);
}

TEST(a_pair_needs_an_isolated_speed_in_the_other_file)
{
    struct err e = { 0 };

    ck_assert_int_eq(read_text("{\"k80\": {" B ": {\"null\": 4, " B ": [5, 5]}}}",
                               "{\"k80\": {" A ": {\"null\": 4}}}", &e),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "two.json: k80.\"('B', 1)\".null"));
}

TEST(a_pair_that_outgrows_its_range_names_its_place)
{
    struct err e = { 0 };

    ck_assert_int_eq(read_text("{\"k80\": {" B ": {\"null\": 1e-300, " B ": [5, 5]}}}",
                               "{\"k80\": {" B ": {\"null\": 4}}}", &e),
                     -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "one.json: k80.\"('B', 1)\".\"('B', 1)\": above 1e9"));
}

/* ---- watts ---- */

static const struct {
    const char *name, *given, *want;    // want NULL: fine
} watts[] = {
    { "a known job on a known GPU", "gpu,workload,watts\nk80,\"B\",107.3\n", NULL },
    { "columns in another order", "watts,gpu,workload\n107.3,k80,B\n", NULL },
    { "an unknown job", "gpu,workload,watts\nk80,C,1\n", "w.csv:2: 'C'" },
    { "an unknown GPU", "gpu,workload,watts\nk80,B,1\nk81,B,1\n", "w.csv:3: 'k81'" },
    { "milliwatts", "gpu,workload,watts\nk80,B,107300\n", "w.csv:2: watts" },
    { "no watts at all", "gpu,workload,watts\nk80,B,0\n", "wrong unit?" },
    { "a missing column", "gpu,watts\nk80,1\n", "workload" },
    { "one column too many", "gpu,workload,watts,x\nk80,B,1,2\n", "no other" },
    { "a word for a number", "gpu,workload,watts\nk80,B,many\n", "w.csv:2" },
};

EACH(watts_are_measurements_without_speed, watts)
{
    struct draft_text in = { "w.csv", watts[_i].given, strlen(watts[_i].given) };
    struct err e = { 0 };
    int rc;

    ck_assert_int_eq(read_text("{\"k80\": {" B ": {\"null\": 4}}}", NULL, NULL), 0);
    rc = gavel_read_watts(&d, &in, &e);
    if (watts[_i].want != NULL) {
        ck_assert_msg(rc == -EINVAL && strstr(e.text, watts[_i].want) != NULL, "%s: %s",
                      watts[_i].name, e.text);
        return;
    }
    ck_assert_msg(rc == 0, "%s: %s", watts[_i].name, e.text);
    ck_assert_int_eq(d.n_rows, 2);
    ck_assert(isnan(d.rows[1].throughput) && d.rows[1].fits);
    ck_assert_double_eq(d.rows[1].watts, 107.3);
}
