/* A dcgm-exporter's page: which GPU draws what. */
#include <math.h>
#include <string.h>

#include "monitor/dcgm.h"
#include "unit/suite.h"

#define WATTS "DCGM_FI_DEV_POWER_USAGE"
#define MJ "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
#define NO_USE        \
    {                 \
        NAN, NAN, NAN \
    }

static const struct {
    const char *name, *given;
    int want_n;
    struct dcgm_gpu want[2];
} cases[] = {
    { "a page as the exporter writes it",
      "# HELP " WATTS " Power draw (in W).\n# TYPE " WATTS " gauge\n" WATTS
      "{gpu=\"0\",UUID=\"GPU-a\",device=\"nvidia0\",modelName=\"Tesla T4\",Hostname=\"n1\"} 26.5\n" WATTS
      "{gpu=\"1\",UUID=\"GPU-b\",device=\"nvidia1\",modelName=\"Tesla T4\"} 70\n" MJ
      "{gpu=\"0\",UUID=\"GPU-a\"} 812000\n",
      2,
      { { 0, "GPU-a", 26.5, 812, "n1", NO_USE }, { 1, "GPU-b", 70, NAN, "", NO_USE } } },
    { "the same number on two nodes",
      WATTS "{gpu=\"0\",Hostname=\"n1\"} 26.5\n" WATTS "{gpu=\"0\",Hostname=\"n2\"} 70\n",
      2,
      { { 0, "", 26.5, NAN, "n1", NO_USE }, { 0, "", 70, NAN, "n2", NO_USE } } },
    { "how busy it is",
      WATTS "{gpu=\"0\"} 9\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 50\n"
            "DCGM_FI_DEV_MEM_COPY_UTIL{gpu=\"0\"} 25\nDCGM_FI_DEV_FB_USED{gpu=\"0\"} 2\n",
      1,
      { { 0, "", 9, NAN, "", { 0.5, 0.25, 2097152 } } } },
    { "other metrics are passed over",
      "DCGM_FI_DEV_GPU_TEMP{gpu=\"0\",UUID=\"GPU-a\"} 51\n" WATTS "{gpu=\"0\"} 9\n",
      1,
      { { 0, "", 9, NAN, "", NO_USE } } },
    { "a time of its own, and blanks",
      WATTS "{ gpu=\"3\" , UUID=\"u\" }  5.5 1395066363000\r\n",
      1,
      { { 3, "u", 5.5, NAN, "", NO_USE } } },
    { "quotes inside a label",
      WATTS "{modelName=\"a \\\"b\\\" {}=,\",gpu=\"2\"} 4\n",
      1,
      { { 2, "", 4, NAN, "", NO_USE } } },
    { "the first line of a GPU counts",
      WATTS "{gpu=\"0\",GPU_I_ID=\"1\"} 40\n" WATTS "{gpu=\"0\",GPU_I_ID=\"2\"} 41\n",
      1,
      { { 0, "", 40, NAN, "", NO_USE } } },
    { "no newline at the end", WATTS "{gpu=\"0\"} 1", 1, { { 0, "", 1, NAN, "", NO_USE } } },
    { "a GPU known by its UUID only",
      WATTS "{UUID=\"GPU-z\"} 1",
      1,
      { { -1, "GPU-z", 1, NAN, "", NO_USE } } },
    { "of no GPU in particular", WATTS "{Hostname=\"n\"} 1\n" WATTS " 5\n", 0, { { 0 } } },
    { "not a number", WATTS "{gpu=\"0\"} NaN\n" WATTS "{gpu=\"0\"} +Inf\n", 0, { { 0 } } },
    { "less than nothing", WATTS "{gpu=\"0\"} -3\n", 0, { { 0 } } },
    { "no value", WATTS "{gpu=\"0\"}\n" WATTS "{gpu=\"0\"} \n", 0, { { 0 } } },
    { "an unclosed quote", WATTS "{gpu=\"0} 3\n", 0, { { 0 } } },
    { "an unclosed brace", WATTS "{gpu=\"0\" 3", 0, { { 0 } } },
    { "a name that only begins like it", WATTS "_MAX{gpu=\"0\"} 3\n", 0, { { 0 } } },
    { "nothing", "", 0, { { 0 } } },
    { "a page in HTML", "<html><body>404 {not found}</body></html>\n", 0, { { 0 } } },
};

EACH(pages_are_read, cases)
{
    struct dcgm_gpu got[4];
    int n = dcgm_parse(cases[_i].given, strlen(cases[_i].given), got, 4);

    ck_assert_msg(n == cases[_i].want_n, "%s: %d", cases[_i].name, n);
    for (int i = 0; i < n; i++) {
        const struct dcgm_gpu *want = &cases[_i].want[i];

        ck_assert_int_eq(got[i].index, want->index);
        ck_assert_str_eq(got[i].uuid, want->uuid);
        ck_assert_str_eq(got[i].host, want->host);
        ck_assert_double_eq(got[i].watts, want->watts);
        ck_assert(isnan(want->use.gpu) ? isnan(got[i].use.gpu) : got[i].use.gpu == want->use.gpu);
        ck_assert(isnan(want->use.mem) ? isnan(got[i].use.mem) : got[i].use.mem == want->use.mem);
        ck_assert(isnan(want->use.mem_bytes) ? isnan(got[i].use.mem_bytes)
                                             : got[i].use.mem_bytes == want->use.mem_bytes);
        ck_assert(isnan(want->joules) ? isnan(got[i].joules) : got[i].joules == want->joules);
    }
}

TEST(no_more_than_there_is_room_for)
{
    static const char page[] =
        WATTS "{gpu=\"0\"} 1\n" WATTS "{gpu=\"1\"} 2\n" MJ "{gpu=\"0\"} 3000\n";
    struct dcgm_gpu got[1];

    ck_assert_int_eq(dcgm_parse(page, strlen(page), got, 1), 1);
    ck_assert_int_eq(got[0].index, 0);
    ck_assert_double_eq(got[0].joules, 3);
}
