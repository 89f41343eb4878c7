/* The page of a study: what it says of books whose figures are known, and that it is whole. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "study/report/report.h"
#include "unit/study/made_results.h"
#include "unit/study/tags.h"
#include "unit/suite.h"
#include "unit/support.h"

static struct arena arena;
static struct buf page;

static void setup(void)
{
    arena_init(&arena);
    buf_init(&page, REPORT_MAX);
}

static void teardown(void)
{
    buf_release(&page);
    arena_release(&arena);
}

FIXTURE(setup, teardown)

static const char *page_of(const struct results *b)
{
    const char *wrong;

    buf_clear(&page);
    report_page(&arena, b, &page);
    wrong = tags_wrong(buf_text(&page));
    ck_assert_msg(wrong == NULL, "not well-formed at: %.80s", wrong);
    return buf_text(&page);
}

/* ---- small results: two policies, energies by seed given ---- */

static const double one_load[] = { 0.5 };
static const char *const two_policies[] = { "gavel", "gogh" };
static const struct scenario tiny = {
    .name = "tiny",
    .title = "a <b>title</b> & more",
    .cluster = "node a v100:2\n",
    .truth = TRUTH_BUILTIN,
    .n_jobs = 5,
    .command = "--scenario tiny",
    .n_loads = 1,
    .loads = one_load,
    .n_policies = 2,
    .policies = two_policies,
    .first_seed = 11,
    .n_seeds = 3,
};

static struct results_row tiny_row(const char *policy, int seed, bool has_limits, double joules,
                                   double attainment)
{
    return (struct results_row){
        .key = { .scenario = &tiny,
                 .load = 0.5,
                 .policy = policy,
                 .seed = seed,
                 .has_sleep = true,
                 .has_limits = has_limits,
                 .without = "" },
        .result = { .energy_j_per_work = joules,
                    .promise_attainment = attainment,
                    .energy_kwh = 1,
                    .mean_jct_s = 3600,
                    .jobs = 5,
                    .finished = 5 },
    };
}

static struct results results_of(struct results_row *rows, int n)
{
    return (
        struct results){ .dir = ".", .version = "<1>", .digest = "d&d", .n_rows = n, .rows = rows };
}

TEST(changes_are_paired_by_seed)
{
    /* -10 %, -20 %, -30 %, -20 % by seed: mean -20, sd 8.165, t(3) 3.18245 * 8.165 / 2 = 13.0.
     * Seed 5 of one alone does not count.
     */
    struct results_row rows[] = {
        tiny_row("gavel", 1, false, 100, 0.9), tiny_row("gavel", 2, false, 200, 0.9),
        tiny_row("gavel", 3, false, 300, 0.9), tiny_row("gogh", 3, false, 210, 0.95),
        tiny_row("gogh", 1, false, 90, 0.95),  tiny_row("gogh", 2, false, 160, 0.95),
        tiny_row("gogh", 5, false, 999, 0.95), tiny_row("gavel", 4, false, 100, 0.9),
        tiny_row("gogh", 4, false, 80, 0.95),
    };
    const struct results b = results_of(rows, 9);
    const char *text = page_of(&b);

    ck_assert_ptr_nonnull(strstr(
        text, "<td>\u221220.0&nbsp;% <small>\u00b113.0</small><br><small>+5.0 pt</small><br>"));
    ck_assert_ptr_nonnull(strstr(text, "nobody limits power"));
    ck_assert_ptr_null(strstr(text, "only gogh limits power"));
    ck_assert_ptr_nonnull(
        strstr(text, "There is no comparison that gogh loses in energy, promises or time."));
}

TEST(few_seeds_show_the_smallest_and_the_largest)
{
    struct results_row rows[] = {
        tiny_row("gavel", 1, false, 100, 0.999),
        tiny_row("gavel", 2, false, 100, 0.5),
        tiny_row("gogh", 1, false, 90, 0.999),
        tiny_row("gogh", 2, false, 70, 0.5),
    };
    const struct results b = results_of(rows, 4);
    const char *text = page_of(&b);

    ck_assert_ptr_nonnull(
        strstr(text, "<td>\u221220.0&nbsp;%<br><small>\u221230.0..\u221210.0</small>"));
    ck_assert_ptr_nonnull(strstr(text, "<td>75.0<br><small>50.0..99.9</small></td>"));
    ck_assert_ptr_null(strstr(text, "<small>\u00b1"));
    ck_assert_ptr_null(strstr(text, "There is no comparison that gogh loses"));
    ck_assert_ptr_nonnull(strstr(text, "With so few seeds gogh lost none of these comparisons."));
}

TEST(a_share_stays_between_nothing_and_all)
{
    struct results_row rows[8];
    int n = 0;

    for (int seed = 1; seed <= 4; seed++) {
        rows[n++] = tiny_row("gavel", seed, false, 100, seed == 1 ? 0.2 : 0.0);
        rows[n++] = tiny_row("gogh", seed, false, 90, seed == 1 ? 0.8 : 1.0);
    }
    const struct results b = results_of(rows, n);
    const char *text = page_of(&b);

    /* 95 and 5, both \u00b115.9 */
    ck_assert_ptr_nonnull(strstr(text, "<td>95.0<br><small>79.1..100.0</small></td>"));
    ck_assert_ptr_nonnull(strstr(text, "<td>5.0<br><small>0.0..20.9</small></td>"));
}

TEST(only_the_same_footing_is_counted)
{
    struct results_row rows[] = {
        tiny_row("gavel", 1, false, 100, 0.9),
        tiny_row("gogh", 1, false, 100.01, 0.9),
        tiny_row("gavel", 1, true, 80, 0.9),
        tiny_row("gogh", 1, true, 90, 0.9),
    };
    const struct results b = results_of(rows, 4);
    const char *text = page_of(&b);

    ck_assert_ptr_nonnull(strstr(text, "In 2 comparisons"));
    ck_assert_ptr_nonnull(strstr(text, "less energy per unit of work in 0</b>"));
    ck_assert_ptr_nonnull(strstr(text, "about the same (less than 0.05&nbsp;% apart) in 1"));
    ck_assert_ptr_nonnull(strstr(text, "<b>more in 1</b>"));
    ck_assert_ptr_nonnull(strstr(
        text, "scope=\"colgroup\">only gogh limits power<br><small>unlike footing, not counted"));
}

TEST(who_finishes_jobs_later_is_told)
{
    struct results_row rows[] = { tiny_row("gavel", 1, false, 100, 0.9),
                                  tiny_row("gogh", 1, false, 90, 0.9) };
    const struct results b = results_of(rows, 2);

    rows[0].result.mean_jct_s = 1000;
    rows[1].result.mean_jct_s = 1120;
    const char *text = page_of(&b);
    ck_assert_ptr_nonnull(
        strstr(text, "<br><small>JCT +12.0&nbsp;%</small><br><b class=\"tag\">later</b></td>"));
    ck_assert_ptr_nonnull(strstr(text, "Jobs finish later under gogh in 1 of 1</b>"));
    ck_assert_ptr_nonnull(strstr(text, "against gavel: mean completion time +12.0&nbsp;%</li>"));
    ck_assert_ptr_nonnull(strstr(text, "change by +12.0&nbsp;% to +12.0&nbsp;%"));
}

TEST(runs_that_are_missing_are_told_first)
{
    struct results_row rows[] = {
        tiny_row("gavel", 11, false, 100, 0.9), tiny_row("gavel", 12, false, 100, 0.9),
        tiny_row("gavel", 13, false, 100, 0.9), tiny_row("gogh", 11, false, 90, 0.9),
        tiny_row("gogh", 12, false, 90, 0.9),   tiny_row("gogh", 13, false, 90, 0.9),
    };
    static const struct {
        const char *name;
        int n;
        const char *stopped, *shown;
    } cases[] = {
        { "all there", 6, NULL, NULL },
        { "one is missing", 5, "not finished:</b> 1 run of the policies",
          "5 of 6 runs of these scenarios are shown" },
        { "one policy alone", 3, NULL, "3 of 6 runs of these scenarios are shown" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct results b = results_of(rows, cases[i].n);
        const char *text = page_of(&b), *at = strstr(text, "<p class=\"warn\">");

        ck_assert_msg((at != NULL) == (cases[i].shown != NULL), "%s", cases[i].name);
        ck_assert_msg((strstr(text, "not finished:") != NULL) == (cases[i].stopped != NULL), "%s",
                      cases[i].name);
        if (cases[i].stopped != NULL)
            ck_assert_msg(strstr(at, cases[i].stopped) != NULL, "%s", cases[i].name);
        if (cases[i].shown != NULL)
            ck_assert_msg(strstr(at, cases[i].shown) != NULL && at < strstr(text, "<h2"), "%s",
                          cases[i].name);
    }
}

TEST(who_loses_is_called_losing)
{
    static const struct {
        const char *name;
        double joules[2], attainment;
        const char *says, *listed;
    } cases[] = {
        { "more energy in every seed",
          { 103, 103 },
          0.9,
          "<b class=\"tag\">loses</b></td>",
          "against gavel: +3.0&nbsp;% energy</li>" },
        { "more energy, but not surely",
          { 101, 107 },
          0.9,
          "<b class=\"tag\">loses?</b></td>",
          "against gavel: +4.0&nbsp;% energy (not surely)</li>" },
        { "less energy, but fewer promises",
          { 90, 90 },
          0.885,
          "<b class=\"tag\">promises</b></td>",
          "against gavel: \u22121.5 points of promises</li>" },
        { "both",
          { 110, 110 },
          0.8,
          "<b class=\"tag\">loses</b><br><b class=\"tag\">promises</b></td>",
          "+10.0&nbsp;% energy, \u221210.0 points of promises</li>" },
        { "less energy and promises kept but for a little", { 90, 90 }, 0.895, NULL, NULL },
        { "the same", { 100, 100 }, 0.9, NULL, NULL },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct results_row rows[] = {
            tiny_row("gavel", 1, false, 100, 0.9),
            tiny_row("gavel", 2, false, 100, 0.9),
            tiny_row("gogh", 1, false, cases[i].joules[0], cases[i].attainment),
            tiny_row("gogh", 2, false, cases[i].joules[1], cases[i].attainment),
        };
        const struct results b = results_of(rows, 4);
        const char *text = page_of(&b);

        if (cases[i].says == NULL) {
            ck_assert_msg(strstr(text, "class=\"lost\"") == NULL, "%s", cases[i].name);
            continue;
        }
        ck_assert_msg(strstr(text, cases[i].says) != NULL, "%s: not marked", cases[i].name);
        ck_assert_msg(strstr(text, cases[i].listed) != NULL, "%s: not listed", cases[i].name);
        ck_assert_msg(strstr(text, "<td class=\"lost\">") != NULL, "%s", cases[i].name);
    }
}

TEST(oracles_are_distances_and_not_lost_to)
{
    struct results_row rows[] = {
        tiny_row("bound", 1, false, 80, (double)NAN),
        tiny_row("gogh", 1, false, 100, 0.9),
    };
    struct results b;

    rows[0].key.knows = KNOWS_TRUTH;
    rows[0].result.mean_jct_s = (double)NAN;    // it runs nobody
    b = results_of(rows, 2);
    const char *text = page_of(&b);
    ck_assert_ptr_nonnull(strstr(text, "<tbody class=\"oracles\">"));
    ck_assert_ptr_nonnull(strstr(text, "<th scope=\"row\">bound</th><td>+25.0&nbsp;%</td>"));
    ck_assert_ptr_null(strstr(text, "class=\"lost\""));
}

TEST(one_seed_has_no_interval)
{
    struct results_row rows[] = { tiny_row("gavel", 1, false, 100, 0.9),
                                  tiny_row("gogh", 1, false, 90, 0.9) };
    const struct results b = results_of(rows, 2);
    const char *text = page_of(&b);

    ck_assert_ptr_nonnull(strstr(text, "one seed (1): nothing here is sure"));
    ck_assert_ptr_nonnull(strstr(text, "<p><b>One seed: nothing here is sure.</b></p>"));
    ck_assert_ptr_null(strstr(text, "\u00b1"));
    ck_assert_ptr_null(strstr(text, "surely"));
    ck_assert_ptr_null(strstr(text, "confidence interval"));
    ck_assert_ptr_null(strstr(text, "the band"));
    ck_assert_ptr_null(strstr(text, "There is no comparison"));
    ck_assert_ptr_nonnull(strstr(text, "With this one seed gogh lost none"));
    ck_assert_ptr_null(strstr(text, "nan"));
}

TEST(everything_is_escaped)
{
    struct study_type type = { "<i>type</i>", 2, 1, 1 };
    struct results_row rows[] = { tiny_row("<script>", 1, false, 100, 0.9),
                                  tiny_row("gogh", 1, false, 90, 0.9) };
    struct results b = results_of(rows, 2);

    rows[0].result.n_types = rows[1].result.n_types = 1;
    rows[0].result.types = rows[1].result.types = &type;
    const char *text = page_of(&b);
    ck_assert_ptr_null(strstr(text, "<script"));
    ck_assert_ptr_nonnull(strstr(text, "&lt;script&gt;"));
    ck_assert_ptr_nonnull(strstr(text, "a &lt;b&gt;title&lt;/b&gt; &amp; more"));
    ck_assert_ptr_nonnull(strstr(text, "gogh &lt;1&gt;;"));
    ck_assert_ptr_nonnull(strstr(text, "d&amp;d"));
    ck_assert_ptr_nonnull(strstr(text, "&lt;i&gt;type&lt;/i&gt;"));
}

TEST(jobs_that_did_not_finish_are_told)
{
    struct results_row rows[] = { tiny_row("gavel", 1, false, 100, 0.9),
                                  tiny_row("gogh", 1, false, 90, 0.9) };
    const struct results b = results_of(rows, 2);

    ck_assert_ptr_null(strstr(page_of(&b), "did not finish"));
    rows[0].result.finished = 3;
    rows[0].result.failed = 1;
    ck_assert_ptr_nonnull(strstr(
        page_of(&b), "<li>tiny: gavel, load 0.5, without power limits: 2 of 5 jobs did not finish "
                     "(1 failed)</li>"));
    ck_assert_ptr_nonnull(strstr(page_of(&b), "<p>2 of the 10 jobs of all runs (1 failed):</p>"));
    ck_assert_ptr_null(strstr(page_of(&b), "class=\"lost\""));
}

TEST(jobs_that_only_gogh_leaves_are_a_loss)
{
    struct results_row rows[] = { tiny_row("gavel", 1, false, 100, 0.9),
                                  tiny_row("gogh", 1, false, 90, 0.9) };
    const struct results b = results_of(rows, 2);

    rows[1].result.finished = 3;
    rows[1].result.failed = 2;
    const char *text = page_of(&b);
    ck_assert_ptr_nonnull(strstr(text, "<b class=\"tag\">jobs</b></td>"));
    ck_assert_ptr_nonnull(strstr(text, "against gavel: 2 jobs did not finish, there all did</li>"));
    ck_assert_ptr_nonnull(strstr(text, "leaves jobs undone that the other finishes in 1"));
    ck_assert_ptr_null(strstr(text, "lost none"));
}

TEST(jobs_left_by_what_is_known_are_told_apart)
{
    const char *const names[] = { "learning", NULL };
    struct results b = made_results(&arena, names, 1);

    for (int i = 0; i < b.n_rows; i++)
        if (strcmp(b.rows[i].key.policy, "gogh") == 0 && !b.rows[i].key.has_limits)
            b.rows[i].result.finished--;
    const char *text = page_of(&b);
    static const char *const knows[] = { "an empty catalog", "the pretrained model",
                                         "a catalog without one family" };
    for (size_t i = 0; i < sizeof knows / sizeof knows[0]; i++)
        ck_assert_int_eq(
            count_of(text, arena_printf(&arena,
                                        "<li>learning: gogh, load 0.6, without power limits, "
                                        "from %s: 1 of 1000 jobs did not finish",
                                        knows[i])),
            1);
}

TEST(what_pretraining_has_seen_and_where_it_hurts_is_said)
{
    const char *const names[] = { "learning", NULL };
    struct results b = made_results(&arena, names, 2);

    ck_assert_ptr_nonnull(strstr(page_of(&b), "has seen Gavel's measurements"));
    ck_assert_ptr_null(strstr(page_of(&b), "pretrained does worse than empty"));
    ck_assert_ptr_null(strstr(page_of(&b), ">others</td>"));
    ck_assert_ptr_null(strstr(page_of(&b), ", others<"));
    for (int i = 0; i < b.n_rows; i++)
        if (b.rows[i].key.knows == KNOWS_PRETRAINED && b.rows[i].key.has_limits)
            b.rows[i].result.energy_j_per_work *= 1.1;
    ck_assert_int_eq(count_of(page_of(&b), "pretrained does worse than empty"), 1);
    ck_assert_ptr_nonnull(
        strstr(page_of(&b), "with power limits: <b class=\"tag\">pretrained does worse"));
}

TEST(every_policy_and_lever_is_explained)
{
    static const char *const terms[] = { "fifo-random", "fifo-fastest", "fifo-promise", "pack",
                                         "gavel",       "eaco",         "greedy",       "watts",
                                         "gogh",        "gogh-oracle",  "bound",        "types",
                                         "sharing",     "moving",       "sleep",        "limits",
                                         "joules" };
    const struct results b = results_of(NULL, 0);
    const char *text = page_of(&b);

    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++)
        ck_assert_msg(strstr(text, arena_printf(&arena, "<dt>%s</dt><dd>", terms[i])) != NULL,
                      "not explained: %s", terms[i]);
}

TEST(an_empty_book_is_a_page_without_shells)
{
    const struct results b = { .dir = ".", .version = "1", .digest = "none" };
    const char *text = page_of(&b);

    ck_assert_ptr_nonnull(strstr(text, "There are no runs yet."));
    ck_assert_ptr_null(strstr(text, "<table"));
    ck_assert_ptr_null(strstr(text, "<svg"));
    ck_assert_int_eq(count_of(text, "<h2"), 1);    // the definitions
}

TEST(parts_without_rows_are_left_out)
{
    static const struct {
        const char *scenario, *id;
        bool is_there;
    } cases[] = {
        { "no-k80", "summary", true },  { "no-k80", "levers", false },
        { "no-k80", "gantt", true },    { "no-k80", "time", true },
        { "levers", "levers", true },   { "levers", "summary", false },
        { "levers", "learning", true }, { "levers", "time", false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const names[] = { cases[i].scenario, NULL };
        const struct results b = made_results(&arena, names, 2);
        const char *text = page_of(&b);
        const char *title = arena_printf(&arena, "<h2 id=\"%s\">", cases[i].id);
        const char *link = arena_printf(&arena, "<a href=\"#%s\">", cases[i].id);

        ck_assert_msg((strstr(text, title) != NULL) == cases[i].is_there, "%s of %s", cases[i].id,
                      cases[i].scenario);
        ck_assert_msg((strstr(text, link) != NULL) == cases[i].is_there, "link to %s of %s",
                      cases[i].id, cases[i].scenario);
    }
}

static const char *const many[] = { "reference", "levers", "no-k80", "learning", NULL };

TEST(the_same_rows_give_the_same_bytes)
{
    struct results b = made_results(&arena, many, 0);
    const char *first = arena_strdup(&arena, page_of(&b));

    b.dir = "elsewhere";
    for (int i = 0; i < b.n_rows; i++) {
        b.rows[i].result.wall_s = i;
        b.rows[i].result.rss_bytes = i;
        b.rows[i].result.decision_p50_s = b.rows[i].result.decision_p99_s = i;
    }
    ck_assert_str_eq(first, page_of(&b));
}

TEST(a_page_needs_nothing_else_and_is_small)
{
    const struct results b = made_results(&arena, many, 0);
    const char *text = page_of(&b);

    ck_assert_ptr_null(strstr(text, "<script"));
    ck_assert_ptr_null(strstr(text, " src="));
    ck_assert_ptr_null(strstr(text, "<link"));
    ck_assert_ptr_null(strstr(text, "url("));
    ck_assert_ptr_null(strstr(text, "@import"));
    ck_assert_int_eq(count_of(text, "http"),
                     count_of(text, "xmlns=\"http://www.w3.org/2000/svg\""));
    ck_assert_ptr_null(strstr(text, ">nan"));
    ck_assert_ptr_null(strstr(text, "inf<"));
    ck_assert_uint_lt(page.len, 2u << 20);
}

TEST(every_chart_and_table_is_named)
{
    const struct results b = made_results(&arena, many, 0);
    const char *text = page_of(&b);

    ck_assert_int_gt(count_of(text, "<svg"), 10);
    ck_assert_int_eq(count_of(text, "<svg"), count_of(text, "<desc>"));
    ck_assert_int_eq(count_of(text, "<table"), count_of(text, "<caption>"));
    ck_assert_int_eq(count_of(text, "<th>"), 0);    // all have a scope
    ck_assert_int_eq(count_of(text, "<svg"), count_of(text, "role=\"img\""));
}

TEST(every_assumption_is_beside_its_scenario)
{
    static const char *const words[] = {
        "12 k80 (30 W idle, 10 W asleep, 149 W at most)",
        "Gavel's measurements",
        "<b>Power model where shared:</b> additive",
        "Empty GPUs sleep after 60&nbsp;s",
        "A second of a job's time is priced at 64.9&nbsp;J in decisions, by the GPUs' caps (auto)",
        "promises of training 0.3 to 0.9",
        "6 seeds (11 to 16)",
        "Waiting counts as breaking it",
        "from 20&nbsp;% to 100&nbsp;% of the arrival period",
    };
    const char *const names[] = { "reference", NULL };
    const struct results b = made_results(&arena, names, 0);
    const char *text = page_of(&b);

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        ck_assert_msg(strstr(text, words[i]) != NULL, "not said: %s", words[i]);
}

TEST(other_power_models_and_sleeplessness_are_named)
{
    const char *const names[] = { "always-on", "saturating", NULL };
    const struct results b = made_results(&arena, names, 1);
    const char *text = page_of(&b);

    ck_assert_ptr_nonnull(strstr(text, "No GPU ever sleeps."));
    ck_assert_ptr_nonnull(strstr(text, "<b>Power model where shared:</b> saturating"));
}

TEST(levers_are_percent_more_without_them)
{
    const char *const names[] = { "levers", NULL };
    struct results b = made_results(&arena, names, 1);

    for (int i = 0; i < b.n_rows; i++)
        b.rows[i].result.energy_j_per_work = strcmp(b.rows[i].key.without, "moving") == 0 ? 107
                                             : b.rows[i].key.without[0] != '\0'           ? 99
                                                                                          : 100;
    const char *text = page_of(&b);
    ck_assert_ptr_nonnull(strstr(text, "<th scope=\"row\">moving</th><td>+7.0&nbsp;%</td>"));
    ck_assert_ptr_nonnull(strstr(text, "<th scope=\"row\">sharing</th><td>\u22121.0&nbsp;%</td>"));
}

TEST(the_command_is_the_one_that_was_given)
{
    const char *const names[] = { "reference", "no-k80", NULL };
    struct results usual = made_results(&arena, names, 0);
    struct results less = made_results(&arena, names, 2);
    int n = 0;

    ck_assert_ptr_nonnull(
        strstr(page_of(&usual), "gogh study --scenario reference,no-k80 --out DIR\n"));
    for (int i = 0; i < less.n_rows; i++)
        if (strcmp(less.rows[i].key.scenario->name, "no-k80") == 0 && less.rows[i].key.load > 0.5 &&
            strcmp(less.rows[i].key.policy, "gavel") != 0)
            less.rows[n++] = less.rows[i];
    less.n_rows = n;
    ck_assert_ptr_nonnull(strstr(
        page_of(&less), "gogh study --scenario no-k80 --policy "
                        "fifo-fastest,fifo-promise,gogh --load 0.6,0.9 --seeds 2 --out DIR\n"));
}

TEST(who_shared_is_drawn_by_type)
{
    const char *const names[] = { "reference", NULL };
    const struct results b = made_results(&arena, names, 2);
    const char *text = page_of(&b);

    ck_assert_int_eq(count_of(text, "Who was on which GPU:"), 2);
    ck_assert_int_eq(count_of(text, "<b>gogh</b>, with power limits, seed 11"), 1);
    ck_assert_int_eq(count_of(text, "<b>fifo-fastest</b>, with power limits, seed 11"), 1);
    ck_assert_ptr_nonnull(strstr(text, "all may limit power"));
    ck_assert_ptr_nonnull(strstr(text, ">k80 11</text>"));
    ck_assert_ptr_nonnull(strstr(text, ">v100 35</text>"));
    ck_assert_ptr_nonnull(strstr(text, "limited to 140 W</title>"));
    ck_assert_ptr_nonnull(strstr(text, "no power limit</title>"));
}

TEST(curves_are_of_one_footing)
{
    static const char *const scenarios[] = { "reference", "k80-heavy" };

    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const char *const names[] = { scenarios[i], NULL };
        const char *with = arena_printf(
            &arena, "Power: %s, load 0.9, with power limits</figcaption>", scenarios[i]);
        const char *none = arena_printf(
            &arena, "Power: %s, load 0.9, without power limits</figcaption>", scenarios[i]);
        struct results b = made_results(&arena, names, 1);
        int n = 0;

        ck_assert_msg(strstr(page_of(&b), with) != NULL, "not there: %s", with);
        for (int k = 0; k < b.n_rows; k++)    // only gogh limits: then nobody is shown with them
            if (!b.rows[k].key.has_limits || strcmp(b.rows[k].key.policy, "gogh") == 0)
                b.rows[n++] = b.rows[k];
        b.n_rows = n;
        ck_assert_msg(strstr(page_of(&b), none) != NULL, "not there: %s", none);
        ck_assert_msg(strstr(page_of(&b), with) == NULL, "there: %s", with);
    }
}

TEST(axes_of_promises_say_where_they_begin)
{
    const char *const names[] = { "reference", NULL };
    struct results b = made_results(&arena, names, 1);

    ck_assert_ptr_nonnull(strstr(page_of(&b), ">% of promises; axis begins at 94</text>"));
    ck_assert_ptr_nonnull(
        strstr(page_of(&b), ">% of promises; more is better; axis begins at 75</text>"));
    for (int i = 0; i < b.n_rows; i++) {
        b.rows[i].result.promise_attainment *= 0.05;
        for (int k = 0; k < b.rows[i].result.n_slices; k++)
            b.rows[i].result.slices[k].attainment -= 0.9;
    }
    ck_assert_ptr_null(strstr(page_of(&b), "axis begins at"));
}

TEST(the_page_is_written_beside_the_results)
{
    char *dir = scratch_make();
    struct results b = { .dir = dir, .version = "1", .digest = "none" };
    const char *text = NULL;
    size_t len = 0;
    struct err e;

    ck_assert_int_eq(report_write(&arena, &b, &e), 0);
    ck_assert_int_eq(file_read_text(&arena, arena_printf(&arena, "%s/report.html", dir), NULL,
                                    REPORT_MAX, &text, &len, &e),
                     0);
    ck_assert_str_eq(text, page_of(&b));
    b.dir = arena_printf(&arena, "%s/nowhere", dir);
    ck_assert_int_lt(report_write(&arena, &b, &e), 0);
    scratch_remove(dir);
}

/* ---- the finding, and the front ---- */

TEST(the_first_sentence_is_the_finding)
{
    /* fifo-first uses less, but breaks promises: gavel is the rival. */
    struct results_row rows[] = {
        tiny_row("fifo-first", 1, false, 80, 0.5), tiny_row("fifo-first", 2, false, 80, 0.5),
        tiny_row("gavel", 1, false, 100, 0.945),   tiny_row("gavel", 2, false, 100, 0.945),
        tiny_row("pack", 1, false, 120, 0.99),     tiny_row("pack", 2, false, 120, 0.99),
        tiny_row("gogh", 1, false, 90, 0.95),      tiny_row("gogh", 2, false, 94, 0.95),
    };
    const struct results b = results_of(rows, 8);
    const char *text = page_of(&b), *first = strstr(text, "<p");

    static const char want[] =
        "<p class=\"finding\"><b>tiny</b> at load 0.5: against gavel, the strongest rival (the "
        "least energy of those that keep as many promises, but for a point), gogh "
        "changes energy per unit of work by \u22128.0&nbsp;% (\u221210.0..\u22126.0) and mean "
        "completion time by 0.0&nbsp;% (0.0..0.0), and keeps 95.0&nbsp;% of promises (gavel: "
        "94.5); in brackets the smallest and largest seed. <b>It uses more energy than</b> "
        "fifo-first (+15.0&nbsp;% energy, 0.0&nbsp;% time, +45.0 points of promises).</p>";

    ck_assert_msg(strncmp(first, want, sizeof want - 1) == 0, "%.700s", first);
}

TEST(losses_come_before_what_was_won)
{
    struct results_row rows[] = { tiny_row("gavel", 1, false, 100, 0.9),
                                  tiny_row("gogh", 1, false, 110, 0.9) };
    const struct results b = results_of(rows, 2);
    const char *text = page_of(&b);

    ck_assert(strstr(text, "<ul class=\"losses\">") < strstr(text, "In 1 comparisons"));
}

TEST(a_sweep_of_prices_draws_the_front)
{
    const char *const names[] = { "front", NULL };
    const struct results b = made_results(&arena, names, 2);
    const char *text = page_of(&b), *front = strstr(text, "<h2 id=\"front\">");

    ck_assert_ptr_nonnull(front);
    ck_assert_int_eq(count_of(front, "Energy against mean completion time, load "), 3);
    ck_assert_int_eq(count_of(front, "<figcaption>Energy against moves, load "), 3);
    /* In the table of the front and in that of all policies, at each of three loads. */
    ck_assert_int_eq(count_of(front, "<th scope=\"row\">gogh at 240 W</th>"), 2 * 3);
    ck_assert_int_eq(count_of(front, "<th scope=\"row\">gavel at 240 W</th>"), 2 * 3);
    ck_assert_int_eq(count_of(front, "<th scope=\"row\">gavel</th>"), 0);
    /* Where one of them stands for gogh, it is the middle one, and that is said. */
    ck_assert_ptr_nonnull(strstr(text, "with a second of a job's time at 60&nbsp;J: against "));
}

static struct results_row priced_row(const struct scenario *s, const char *policy,
                                     const double *delay_w, double joules)
{
    struct results_row row = tiny_row(policy, 1, true, joules, 0.9);

    row.key.scenario = s;
    row.key.delay_w = delay_w;
    row.result.effective_delay_w = delay_w != NULL ? *delay_w : 65;
    return row;
}

TEST(everybody_is_compared_at_the_same_price)
{
    static const double some[] = { 15, 60, 240 }, with_auto[] = { 15, (double)NAN };
    struct scenario s = tiny;
    struct results_row rows[] = {
        priced_row(&s, "gavel", &some[0], 50), priced_row(&s, "gavel", &some[1], 100),
        priced_row(&s, "gavel", NULL, 1000),   priced_row(&s, "gogh", &some[0], 45),
        priced_row(&s, "gogh", &some[1], 80),  priced_row(&s, "gogh", NULL, 700),
    };
    const struct results b = results_of(rows, 6);

    s.n_delays = 3;
    s.delays_w = some;
    ck_assert_ptr_nonnull(strstr(page_of(&b), "at 60&nbsp;J: against gavel, the strongest rival ("
                                              "the least energy of those that keep as many "
                                              "promises, but for a point), gogh changes energy "
                                              "per unit of work by \u221220.0&nbsp;%"));
    s.n_delays = 2;
    s.delays_w = with_auto;
    ck_assert_ptr_nonnull(strstr(page_of(&b),
                                 "load 0.5, everybody with power limits: against gavel, "
                                 "the strongest rival (the least energy of those that keep as many "
                                 "promises, but for a point), gogh "
                                 "changes energy per unit of work by "
                                 "\u221230.0&nbsp;%"));
}

TEST(of_two_prices_each_promise_has_a_line)
{
    static const double delays[] = { 15, (double)NAN }, promises[] = { 300, 3000 };
    struct scenario s = tiny;
    struct results_row rows[8];
    int n = 0;

    s.n_delays = s.n_promises = 2;
    s.delays_w = delays;
    s.promises_w = promises;
    for (int i = 0; i < 8; i++) {
        const double *delay_w = i % 2 == 0 ? &delays[0] : NULL;

        rows[n] = priced_row(&s, i < 4 ? "gavel" : "gogh", delay_w, 100 + i);
        rows[n++].key.promise_w = &promises[i / 2 % 2];
    }
    const struct results b = results_of(rows, n);
    const char *text = page_of(&b), *front = strstr(text, "<h2 id=\"front\">");
    const char *chart = strstr(front, "<svg"), *end = strstr(chart, "</svg>");

    chart = arena_strndup(&arena, chart, (size_t)(end - chart));
    ck_assert_ptr_nonnull(strstr(text, ", with a broken promise at 3000&nbsp;W: against "
                                       "gavel"));
    ck_assert_int_eq(count_of(chart, ">gogh, promises at 300 W<"), 1);
    ck_assert_int_eq(count_of(chart, ">gavel, promises at 3000 W<"), 1);
    ck_assert_int_eq(count_of(chart, ">15 W<"), 4);
    ck_assert_int_eq(count_of(chart, ">auto<"), 4);
    ck_assert_ptr_nonnull(strstr(front, ">gogh at 15 W, promises at 3000 W<"));
}

TEST(without_a_sweep_there_is_no_front)
{
    const char *const names[] = { "no-k80", NULL };
    const struct results b = made_results(&arena, names, 1);

    ck_assert_ptr_null(strstr(page_of(&b), "id=\"front\""));
}

TEST(every_figure_has_its_command)
{
    const struct results b = made_results(&arena, many, 0);
    const char *text = page_of(&b);

    ck_assert_int_eq(count_of(text, "<figure"), count_of(text, "<p class=\"command\"><code>gogh "));
    ck_assert_ptr_nonnull(
        strstr(text, "<code>gogh study --scenario reference --load 0.9 --out DIR</code>"));
    ck_assert_ptr_nonnull(strstr(text, "<code>gogh study --scenario levers --out DIR</code>"));
}
