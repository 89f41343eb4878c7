/* Charts: ticks, numbers, escaping, gaps, and that each SVG is well-formed. */
#include <math.h>
#include <string.h>

#include "base/text/buf.h"
#include "study/plot/plot.h"
#include "unit/study/tags.h"
#include "unit/suite.h"

#define NONE ((double)NAN)

static struct buf out;

static void setup(void)
{
    buf_init(&out, 1 << 20);
}

static void teardown(void)
{
    buf_release(&out);
}

FIXTURE(setup, teardown)

static void check_tags(const char *name)
{
    const char *wrong = tags_wrong(buf_text(&out));

    ck_assert_msg(wrong == NULL, "%s: not well-formed at: %.60s", name, wrong);
}

/* ---- numbers ---- */

TEST(ticks_are_round_and_hold_the_data)
{
    static const struct {
        const char *name;
        double low, high;
        bool is_log;
        int n_max, n;
        double want[9];
        int decimals;
        double from, to;
    } cases[] = {
        { "from nought to ten", 0, 10, false, 6, 6, { 0, 2, 4, 6, 8, 10 }, 0, 0, 10 },
        { "the range is widened", 0.3, 9.1, false, 6, 6, { 0, 2, 4, 6, 8, 10 }, 0, 0, 10 },
        { "steps of five", 0, 242, false, 6, 6, { 0, 50, 100, 150, 200, 250 }, 0, 0, 250 },
        { "decimals where they are needed",
          0.97,
          0.99,
          false,
          6,
          5,
          { 0.97, 0.975, 0.98, 0.985, 0.99 },
          3,
          0.97,
          0.99 },
        { "below nought", -3, 7, false, 6, 4, { -5, 0, 5, 10 }, 0, -5, 10 },
        { "one value gets room on both sides", 50, 50, false, 6, 3, { 45, 50, 55 }, 0, 45, 55 },
        { "nought alone", 0, 0, false, 6, 6, { 0, 0.2, 0.4, 0.6, 0.8, 1 }, 1, 0, 1 },
        { "a log axis with parts of decades", 3, 60, true, 6, 4, { 5, 10, 20, 50 }, -1, 3, 60 },
        { "a log axis of many decades",
          0.01,
          10000,
          true,
          7,
          7,
          { 0.01, 0.1, 1, 10, 100, 1000, 10000 },
          -1,
          0.01,
          10000 },
        { "a narrow log axis is widened", 3, 4, true, 6, 4, { 1, 2, 5, 10 }, -1, 1, 10 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct plot_ticks t =
            plot_ticks(cases[i].low, cases[i].high, cases[i].is_log, cases[i].n_max);

        ck_assert_msg(t.n == cases[i].n, "%s: %d ticks", cases[i].name, t.n);
        for (int k = 0; k < cases[i].n; k++)
            ck_assert_msg(fabs(t.at[k] - cases[i].want[k]) < 1e-9, "%s: tick %d is %g",
                          cases[i].name, k, t.at[k]);
        ck_assert_msg(t.decimals == cases[i].decimals, "%s: %d decimals", cases[i].name,
                      t.decimals);
        ck_assert_msg(fabs(t.low - cases[i].from) < 1e-9 && fabs(t.high - cases[i].to) < 1e-9,
                      "%s: from %g to %g", cases[i].name, t.low, t.high);
    }
}

TEST(there_are_never_more_ticks_than_asked_for)
{
    for (int n_max = 3; n_max <= PLOT_TICKS_MAX; n_max++)
        for (double high = 0.7; high < 1e7; high *= 1.7) {
            const struct plot_ticks flat = plot_ticks(-0.3 * high, high, false, n_max);
            const struct plot_ticks log = plot_ticks(0.1, high, true, n_max);

            ck_assert(flat.n >= 2 && flat.n <= n_max);
            ck_assert(flat.low <= (-0.3 + 1e-6) * high && flat.high >= (1 - 1e-6) * high);
            ck_assert(log.n >= 1 && log.n <= PLOT_TICKS_MAX);
        }
}

TEST(numbers_are_written_as_people_read_them)
{
    static const struct {
        double v;
        const char *want;
    } cases[] = {
        { 0, "0" },
        { 0.5, "0.500" },
        { 0.01234, "0.0123" },
        { 0.99996, "1.00" },
        { 9.996, "10.0" },
        { 12.345, "12.3" },
        { 99.96, "100" },
        { 1234.5, "1\u202f234" },
        { 1234567, "1\u202f234\u202f567" },
        { -3.456, "\u22123.46" },
        { -1e12, "\u22121e+12" },
        { NONE, "\u2013" },
        { HUGE_VAL, "\u2013" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(plot_number(cases[i].v).text, cases[i].want);
    ck_assert_str_eq(plot_fixed(-0.04, 1).text, "0.0");    // no minus nought
    ck_assert_str_eq(plot_fixed(-1234.56, 1).text, "\u22121\u202f234.6");
}

TEST(text_is_escaped)
{
    plot_escape(&out, "<script>alert(\"a\" & 'b')</script>\x01\u00e9");
    ck_assert_str_eq(buf_text(&out),
                     "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;?\u00e9");
}

/* ---- charts ---- */

static const double xs[] = { 1, 2, 3, 4, 5, 6 };

static struct plot_lines lines_of(const struct plot_series *s, int n)
{
    return (struct plot_lines){
        .title = "A <chart>",
        .description = "of \"things\" & others",
        .x = { .label = "x", .low = NONE, .high = NONE },
        .y = { .label = "y", .low = NONE, .high = NONE },
        .n_series = n,
        .series = s,
    };
}

TEST(a_gap_lifts_the_pen)
{
    const double y[] = { 1, 2, NONE, 4, 5, 6 };
    const struct plot_series s = { .name = "s", .n = 6, .x = xs, .y = y };
    const struct plot_lines p = lines_of(&s, 1);
    const char *curve;

    plot_lines(&out, &p);
    check_tags("lines");
    curve = strstr(buf_text(&out), "class=\"curve");
    ck_assert_ptr_nonnull(curve);
    curve = strstr(curve, "d=\"") + 3;
    const size_t len = strcspn(curve, "\"");
    int n_moves = 0, n_lines = 0;
    for (size_t i = 0; i < len; i++) {
        n_moves += curve[i] == 'M';
        n_lines += curve[i] == 'L';
    }
    ck_assert_int_eq(n_moves, 2);
    ck_assert_int_eq(n_lines, 3);
    ck_assert_ptr_null(strstr(buf_text(&out), "nan"));
}

TEST(a_point_between_gaps_is_a_marker)
{
    double x[40], y[40];
    const struct plot_series s = { .name = "s", .n = 40, .x = x, .y = y };
    const struct plot_lines p = lines_of(&s, 1);

    for (int i = 0; i < 40; i++) {
        x[i] = i;
        y[i] = i < 29 || i == 31 ? i : NONE;
    }
    plot_lines(&out, &p);
    /* Every third of thirty points: 0, 3, ... 27; and the lone one, which is number 29. */
    ck_assert_int_eq(count_of(buf_text(&out), "class=\"dot\""), 11);
}

TEST(bands_end_at_gaps)
{
    const double y[] = { 1, 2, NONE, 4, 5, 6 }, low[] = { 0, 1, 2, 3, 4, 5 };
    const struct plot_series s = { .name = "s", .n = 6, .x = xs, .y = y, .low = low, .high = y };
    const struct plot_lines p = lines_of(&s, 1);

    plot_lines(&out, &p);
    check_tags("bands");
    ck_assert_int_eq(count_of(buf_text(&out), "class=\"band\""), 2);
}

TEST(nothing_to_draw_is_an_empty_chart)
{
    const double y[] = { NONE, NONE, NONE, NONE, NONE, NONE };
    const struct plot_series s = { .name = "s", .n = 6, .x = xs, .y = y };
    struct plot_lines p = lines_of(&s, 1);

    plot_lines(&out, &p);
    p.n_series = 0;
    p.x.is_log = p.y.is_log = true;
    plot_lines(&out, &p);
    check_tags("empty");
    ck_assert_ptr_null(strstr(buf_text(&out), "nan"));
    ck_assert_ptr_null(strstr(buf_text(&out), "inf"));
}

TEST(a_log_axis_leaves_nought_out)
{
    const double y[] = { 0, 1, 10, 100, -1, 1000 };
    const struct plot_series s = { .name = "s", .n = 6, .x = xs, .y = y };
    struct plot_lines p = lines_of(&s, 1);

    p.y.is_log = true;
    plot_lines(&out, &p);
    ck_assert_ptr_null(strstr(buf_text(&out), "nan"));
    ck_assert_ptr_null(strstr(buf_text(&out), "inf"));
    ck_assert_ptr_nonnull(strstr(buf_text(&out), ">1\u202f000<"));
}

/* Where a tick with this label stands, along x. */
static double tick_x(const char *label)
{
    char group_query[64];
    const char *end, *start;
    double x = NONE;

    snprintf(group_query, sizeof group_query, "class=\"soft\">%s</text>", label);
    end = strstr(buf_text(&out), group_query);
    ck_assert_msg(end != NULL, "no tick %s", label);
    for (start = end; strncmp(start, "<text x=\"", 9) != 0; start--)
        ck_assert_ptr_ne(start, buf_text(&out));
    ck_assert_int_eq(sscanf(start, "<text x=\"%lf\"", &x), 1);
    return x;
}

TEST(bars_are_as_long_as_their_values)
{
    const double y[] = { 50, 100 };
    const char *const groups[] = { "half", "whole" };
    const struct plot_series s = { .name = "s", .n = 2, .y = y };
    const struct plot_bars p = { .title = "t",
                                 .description = "d",
                                 .groups = groups,
                                 .n_groups = 2,
                                 .value = { .label = "v", .low = NONE, .high = NONE },
                                 .n_series = 1,
                                 .series = &s };
    double from = NONE, to = NONE;
    const char *bar;

    plot_bars(&out, &p);
    check_tags("bars");
    bar = strstr(buf_text(&out), "class=\"bar");
    ck_assert_int_eq(sscanf(strstr(bar, "d=\"M"), "d=\"M%lf %*fH%lf", &from, &to), 2);
    ck_assert_double_eq_tol(from, tick_x("0"), 0.1);
    ck_assert_double_eq_tol(to, (tick_x("40") + tick_x("60")) / 2, 0.1);
}

TEST(whiskers_and_missing_bars_are_shown_as_they_are)
{
    const double y[] = { 50, NONE, -20 }, low[] = { 45, NONE, NONE }, high[] = { 55, NONE, NONE };
    const char *const groups[] = { "a", "<b>", "c" };
    const struct plot_series s[] = {
        { .name = "first & last", .n = 3, .y = y, .low = low, .high = high },
        { .name = "second", .n = 3, .y = y },
    };
    struct plot_bars p = { .title = "t",
                           .description = "d",
                           .groups = groups,
                           .n_groups = 3,
                           .value = { .label = "v", .low = NONE, .high = NONE },
                           .n_series = 2,
                           .series = s };

    plot_bars(&out, &p);
    check_tags("bars");
    ck_assert_int_eq(count_of(buf_text(&out), "class=\"whisker\""), 1);
    ck_assert_int_eq(count_of(buf_text(&out), ">\u2013</text>"), 2);
    ck_assert_int_eq(count_of(buf_text(&out), "<title>c, second: \u221220.0</title>"), 1);
    buf_clear(&out);
    p.are_dots = true;
    plot_bars(&out, &p);
    check_tags("dots");
    ck_assert_int_eq(count_of(buf_text(&out), "class=\"bar"), 0);
    ck_assert_int_eq(count_of(buf_text(&out), "class=\"dot\""), 4 + 2);    // 2 in the legend
}

/* Tops and heights of spans in order. */
static int spans_read(double top[], double height[], int max)
{
    const char *s = buf_text(&out);
    int n = 0;

    for (; (s = strstr(s, "<rect class=\"span")) != NULL && n < max; s++, n++) {
        ck_assert_int_eq(sscanf(strstr(s, " y=\""), " y=\"%lf\"", &top[n]), 1);
        ck_assert_int_eq(sscanf(strstr(s, " height=\""), " height=\"%lf\"", &height[n]), 1);
    }
    return n;
}

TEST(spans_share_a_lane_only_where_they_overlap)
{
    const struct plot_span spans[] = {
        { 0, 0, 10, 0, false, "<script>" }, { 0, 5, 15, 1, true, "b" },
        { 0, 12, 20, 2, false, "c" },       { 0, 20, 30, 3, false, "d" },
        { 1, 0, 30, 4, false, "e" },        { 1, 10, 10.001, 5, false, "too short to see" },
    };
    const char *const rows[] = { "one", "two" };
    const int bundles[] = { 0, 1 };
    const struct plot_timeline p = {
        .title = "t",
        .description = "d",
        .x = { .label = "hours", .low = NONE, .high = NONE },
        .n_rows = 2,
        .rows = rows,
        .bundles = bundles,
        .n_spans = 5,
        .spans = spans,
    };
    struct plot_timeline more = p;
    double top[8], height[8];

    plot_timeline(&out, &p);
    check_tags("strip");
    ck_assert_int_eq(spans_read(top, height, 8), 5);
    ck_assert_double_lt(top[0], top[1]);
    ck_assert_double_eq(top[0], top[2]);    // the first is over when the third begins
    ck_assert_double_eq(top[0], top[3]);
    ck_assert_double_eq(height[0], height[2]);
    ck_assert_double_gt(height[3], 1.9 * height[0]);    // alone: the whole row
    ck_assert_double_eq(height[3], height[4]);
    ck_assert_ptr_nonnull(strstr(buf_text(&out), "&lt;script&gt;"));
    ck_assert_ptr_null(strstr(buf_text(&out), "<script>"));
    ck_assert_int_eq(count_of(buf_text(&out), "c1 marked"), 1);
    buf_clear(&out);
    more.n_spans = 6;
    plot_timeline(&out, &more);
    ck_assert_int_eq(spans_read(top, height, 8), 5);
}

TEST(every_chart_has_a_title_and_a_description)
{
    const struct plot_lines p = lines_of(NULL, 0);

    plot_lines(&out, &p);
    ck_assert_ptr_nonnull(strstr(buf_text(&out), "role=\"img\""));
    ck_assert_ptr_nonnull(strstr(buf_text(&out), "<title>A &lt;chart&gt;</title>"));
    ck_assert_ptr_nonnull(
        strstr(buf_text(&out), "<desc>of &quot;things&quot; &amp; others</desc>"));
}

TEST(a_legend_wraps_and_is_above_the_drawing)
{
    const double y[] = { 1, 2, 3, 4, 5, 6 };
    struct plot_series s[PLOT_SERIES_MAX];
    struct plot_lines p = lines_of(s, PLOT_SERIES_MAX);

    for (int i = 0; i < PLOT_SERIES_MAX; i++)
        s[i] = (struct plot_series){ .name = "a name of some length", .n = 6, .x = xs, .y = y };
    p.width = 400;
    plot_lines(&out, &p);
    check_tags("legend");
    ck_assert_int_eq(count_of(buf_text(&out), "a name of some length"), PLOT_SERIES_MAX);
    for (const char *t = buf_text(&out); (t = strstr(t, "start\">a name")) != NULL; t++) {
        double x = NONE, height = NONE;
        const char *start = t;

        while (strncmp(start, "<text", 5) != 0)
            start--;
        ck_assert_int_eq(sscanf(start, "<text x=\"%lf\" y=\"%lf\"", &x, &height), 2);
        ck_assert(x + 21 * 5 < 400);
        ck_assert(height < 100);    // five rows of two
    }
}

TEST(the_style_is_for_light_dark_and_paper)
{
    plot_style(&out);
    ck_assert_ptr_nonnull(strstr(buf_text(&out), "@media screen and (prefers-color-scheme:dark)"));
    ck_assert_ptr_nonnull(strstr(buf_text(&out), "print-color-adjust"));
    ck_assert_ptr_null(strstr(buf_text(&out), "url("));
}
