/* Pages of servers: which figures are what, and what two of them say. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "monitor/servers/scrape.h"
#include "monitor/sensor.h"
#include "unit/suite.h"
#include "unit/support.h"

/* ---- the table ---- */

static const struct {
    const char *name, *text;
    int want_rc, want_n;
    const char *want_says;
} tables[] = {
    { "nothing", "", 0, 0, "" },
    { "comments and blank lines", "# x\n\n   \n", 0, 0, "" },
    { "a row", "s 1+ requests a_total", 0, 1, "" },
    { "a row with a scale, tabs and a carriage return", "s\t1+\tcompute a_us 1e-6\r\n", 0, 1, "" },
    { "too few words", "s 1+ requests\n", -EINVAL, 0, "t:1: want SERVER" },
    { "too many words", "\ns 1+ requests a 1 2\n", -EINVAL, 0, "t:2: want SERVER" },
    { "an unknown thing", "s 1+ speed a\n", -EINVAL, 0, "'speed' is not known" },
    { "no scale", "s 1+ requests a 0\n", -EINVAL, 0, "no scale" },
    { "a scale that is a word", "s 1+ requests a x\n", -EINVAL, 0, "no scale" },
};

EACH(tables_are_read_or_refused, tables)
{
    static struct scrape_table t;
    struct err e = { 0 };

    ck_assert_msg(scrape_table_read(tables[_i].text, strlen(tables[_i].text), "t", &t, &e) ==
                      tables[_i].want_rc,
                  "%s: %s", tables[_i].name, e.text);
    ck_assert_msg(strstr(e.text, tables[_i].want_says), "%s: %s", tables[_i].name, e.text);
    if (tables[_i].want_rc == 0)
        ck_assert_int_eq(t.n, tables[_i].want_n);
}

TEST(a_table_that_is_too_long_is_refused)
{
    static struct scrape_table t;
    char text[SCRAPE_ROWS_MAX * 12 + 100] = "";

    for (int i = 0; i <= SCRAPE_ROWS_MAX; i++)
        strncat(text, "s 1 e2e a\n", sizeof text - strlen(text) - 1);
    ck_assert_int_eq(scrape_table_read(text, strlen(text), "t", &t, NULL), -E2BIG);
}

TEST(the_table_that_ships_is_one)
{
    ck_assert_int_gt(scrape_table_builtin()->n, 10);
    ck_assert_str_eq(scrape_table_builtin()->rows[0].server, "vllm");
}

TEST(a_table_comes_from_a_file_or_from_the_program)
{
    static struct scrape_table t;
    char *dir = scratch_make(), file[256];
    struct err e = { 0 };

    ck_assert_int_eq(scrape_table_load(NULL, &t, &e), 0);
    ck_assert_int_eq(t.n, scrape_table_builtin()->n);
    snprintf(file, sizeof file, "%s/t", dir);
    ck_assert_int_eq(scrape_table_load(file, &t, &e), -ENOENT);
    FILE *f = fopen(file, "w");
    fputs("s 1+ requests a_total\n", f);
    fclose(f);
    ck_assert_int_eq(scrape_table_load(file, &t, &e), 0);
    ck_assert(t.n == 1 && strcmp(t.rows[0].metric, "a_total") == 0);
    scratch_remove(dir);
}

/* ---- pages ---- */

static const char vllm_page[] =
    "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
    "# TYPE vllm:num_requests_running gauge\n"
    "vllm:num_requests_running{engine=\"0\",model_name=\"a model {x}\"} 3.0\n"
    "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 2.0\n"
    "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 5.0\n"
    "vllm:request_success_total{finished_reason=\"stop\",model_name=\"m\"} 90.0\n"
    "vllm:request_success_total{finished_reason=\"length\",model_name=\"m\"} 1e+01\n"
    "vllm:time_to_first_token_seconds_bucket{le=\"0.1\",model_name=\"m\"} 60.0\n"
    "vllm:time_to_first_token_seconds_bucket{le=\"0.5\",model_name=\"m\"} 98.0\n"
    "vllm:time_to_first_token_seconds_bucket{le=\"1.0\",model_name=\"m\"} 100.0\n"
    "vllm:time_to_first_token_seconds_bucket{le=\"+Inf\",model_name=\"m\"} 100.0\n"
    "vllm:time_to_first_token_seconds_count{model_name=\"m\"} 100.0\n"
    "vllm:time_to_first_token_seconds_sum{model_name=\"m\"} 20.0\n"
    "vllm:e2e_request_latency_seconds_count{model_name=\"m\"} 100.0\n"
    "vllm:e2e_request_latency_seconds_sum{model_name=\"m\"} 300.0\n"
    "vllm:time_per_output_token_seconds_count 7.0\n"
    "vllm:time_per_output_token_seconds_sum 0.5 1700000000000\n"
    "vllm:cache_config_info{block_size=\"16\"} 1.0\n";

static const char triton_page[] =
    "# TYPE nv_inference_request_success counter\n"
    "nv_inference_request_success{model=\"a\",version=\"1\"} 1000\n"
    "nv_inference_exec_count{model=\"a\",version=\"1\"} 250\n"
    "nv_inference_request_duration_us{model=\"a\",version=\"1\"} 20000000\n"
    "nv_inference_compute_infer_duration_us{model=\"a\",version=\"1\"} 8000000\n"
    "nv_inference_pending_request_count{model=\"a\",version=\"1\"} 4\n";

static struct scrape_page parse(const char *text)
{
    struct scrape_page p;

    ck_assert_int_eq(scrape_parse(scrape_table_builtin(), text, strlen(text), &p), 0);
    return p;
}

static const struct scrape_histogram *of(const struct scrape_page *p, enum scrape_what what)
{
    return &p->histograms[what - SCRAPE_COUNTS];
}

TEST(a_page_of_vllm)
{
    const struct scrape_page p = parse(vllm_page);

    ck_assert_double_eq(p.counts[SCRAPE_REQUESTS], 100);
    ck_assert_double_eq(p.counts[SCRAPE_RUNNING], 3);
    ck_assert_double_eq(p.counts[SCRAPE_WAITING], 7);
    ck_assert(isnan(p.counts[SCRAPE_BATCHES]));
    ck_assert_int_eq(of(&p, SCRAPE_TTFT)->n, 4);
    ck_assert(of(&p, SCRAPE_TTFT)->below[1] == 98 && isinf(of(&p, SCRAPE_TTFT)->le[3]));
    ck_assert_double_eq(of(&p, SCRAPE_E2E)->sum, 300);
    ck_assert(isnan(of(&p, SCRAPE_TPOT)->count));
}

TEST(the_first_name_counts_where_several_are_there)
{
    const struct scrape_page p = parse("vllm:e2e_request_latency_seconds_count{m=\"a\"} 1\n"
                                       "vllm:request_success_total 2\n"
                                       "vllm:e2e_request_latency_seconds_count{m=\"b\"} 4\n");

    ck_assert_double_eq(p.counts[SCRAPE_REQUESTS], 2);
}

TEST(a_page_of_triton)
{
    const struct scrape_page p = parse(triton_page);

    ck_assert_double_eq(p.counts[SCRAPE_REQUESTS], 1000);
    ck_assert_double_eq(p.counts[SCRAPE_BATCHES], 250);
    ck_assert_double_eq_tol(p.counts[SCRAPE_COMPUTE], 8, 1e-9);
}

static const char *const nothings[] = {
    "",
    "\n",
    "<html>no such page</html>",
    "nv_inference_request_success",
    "nv_inference_request_success{",
    "nv_inference_request_success{model=\"a} 4",
    "nv_inference_request_success{model=a} 4",
    "nv_inference_request_success NaN",
    "nv_inference_request_success_more 4",
    "# nv_inference_request_success 4",
    "vllm:e2e_request_latency_seconds 4",
};

EACH(pages_with_nothing_of_the_table, nothings)
{
    struct scrape_page p;
    char *exact = malloc(strlen(nothings[_i]) + 1);    // so that a look past its end is seen

    memcpy(exact, nothings[_i], strlen(nothings[_i]) + 1);
    ck_assert_msg(scrape_parse(scrape_table_builtin(), exact, strlen(exact), &p) == -ENOENT, "%s",
                  nothings[_i]);
    free(exact);
}

/* ---- two pages ---- */

TEST(what_vllm_served_between_two_pages)
{
    struct scrape_page a = parse(vllm_page), b = a;
    struct served s;
    struct scrape_histogram *h = &b.histograms[SCRAPE_TTFT - SCRAPE_COUNTS];

    b.counts[SCRAPE_REQUESTS] += 200;    // of which 100 had a first token within 0.1 s, 90 more
    h->count += 200;                     // within 0.5 s, and 10 within a second
    h->sum += 40;
    h->below[0] += 100;
    h->below[1] += 190;
    h->below[2] += 200;
    h->below[3] += 200;
    scrape_between(&a, 10, &b, 20, &(struct scrape_promise){ .ttft_s = 0.75 }, &s);
    ck_assert(s.is_ready && !s.is_false && s.from_s == 10 && s.to_s == 20 && s.n_bins == 0);
    ck_assert_double_eq(s.n_requests, 200);
    ck_assert_double_eq_tol(s.n_late, 5, 1e-9);    // half of the last bucket
    ck_assert_double_eq(s.n_queued, 10);
    ck_assert(isnan(s.n_batches) && isnan(s.busy_s));
    scrape_between(&a, 10, &b, 20, &(struct scrape_promise){ .ttft_s = 1.5 }, &s);
    ck_assert_double_eq(s.n_late, 0);
    scrape_between(&a, 10, &b, 20, &(struct scrape_promise){ .tpot_s = 1 }, &s);
    ck_assert(isnan(s.n_late));    // it does not say
    scrape_between(&b, 10, &b, 20, &(struct scrape_promise){ .ttft_s = 1 }, &s);
    ck_assert(s.n_requests == 0 && s.n_late == 0);
}

/* A hundred prompts of 201 to 500 tokens, and answers of up to 100, but one that is longer. */
TEST(how_long_requests_are_is_told_where_both_histograms_are_there)
{
    static const char tokens[] = "vllm:request_prompt_tokens_bucket{le=\"200.0\"} 0\n"
                                 "vllm:request_prompt_tokens_bucket{le=\"500.0\"} 100\n"
                                 "vllm:request_prompt_tokens_bucket{le=\"+Inf\"} 100\n"
                                 "vllm:request_prompt_tokens_count 100\n"
                                 "vllm:request_prompt_tokens_sum 33000\n";
    static const char answers[] = "vllm:request_generation_tokens_bucket{le=\"100.0\"} 99\n"
                                  "vllm:request_generation_tokens_bucket{le=\"+Inf\"} 100\n"
                                  "vllm:request_generation_tokens_count 100\n"
                                  "vllm:request_generation_tokens_sum 5000\n";
    const struct scrape_page none = parse(vllm_page);
    char both[2048] = "";
    unsigned n = 0;
    struct served s;

    struct scrape_page page = parse(tokens);
    scrape_between(&none, 0, &none, 10, &(struct scrape_promise){ .ttft_s = 1 }, &s);
    ck_assert(!s.has_lengths);
    scrape_between(&page, 0, &page, 10, &(struct scrape_promise){ .ttft_s = 1 }, &s);
    ck_assert(!s.has_lengths);    // the same page twice: no request came
    snprintf(both, sizeof both, "%s%s", tokens, answers);
    const struct scrape_page before = parse("vllm:num_requests_running 0\n");
    page = parse(tokens);
    scrape_between(&before, 0, &page, 10, &(struct scrape_promise){ .ttft_s = 1 }, &s);
    ck_assert(!s.has_lengths);
    page = parse(both);
    scrape_between(&before, 0, &page, 10, &(struct scrape_promise){ .ttft_s = 1 }, &s);
    ck_assert(s.has_lengths);
    for (int i = 0; i < LENGTH_BUCKETS; i++)
        n += s.lengths.prompt[i] + 1000 * s.lengths.output[i];
    ck_assert_uint_eq(n, 100 + 1000 * 100);
    ck_assert_int_ge(lengths_quantile(s.lengths.prompt, 0.01), 181);    // within a bucket of ours
    ck_assert_int_le(lengths_quantile(s.lengths.prompt, 0.99), 512);
    ck_assert_int_ge(lengths_quantile(s.lengths.prompt, 0.5), 300);
    ck_assert_int_le(lengths_quantile(s.lengths.prompt, 0.5), 400);
    ck_assert_int_le(lengths_quantile(s.lengths.output, 1), 128);
    page.counts[SCRAPE_REQUESTS] = INFINITY;
    scrape_between(&before, 0, &page, 10, &(struct scrape_promise){ .ttft_s = 1 }, &s);
    ck_assert(s.is_false && !s.has_lengths);
}

TEST(what_lies_beyond_the_last_bucket_is_later_than_it)
{
    struct scrape_page a = parse(vllm_page), b = a;
    struct served s;
    struct scrape_histogram *h = &b.histograms[SCRAPE_TTFT - SCRAPE_COUNTS];

    b.counts[SCRAPE_REQUESTS] += 10;
    h->count += 10;
    h->below[3] += 10;
    scrape_between(&a, 0, &b, 1, &(struct scrape_promise){ .ttft_s = 2 }, &s);
    ck_assert_double_eq(s.n_late, 10);
}

TEST(what_triton_served_between_two_pages)
{
    struct scrape_page a = parse(triton_page), b = a;
    struct served s;

    b.counts[SCRAPE_REQUESTS] += 400;
    b.counts[SCRAPE_BATCHES] += 100;
    b.counts[SCRAPE_COMPUTE] += 8;    // 20 ms each, four at a time
    b.counts[SCRAPE_WAITING] = 0;
    scrape_between(&a, 0, &b, 10, &(struct scrape_promise){ .latency_s = 0.1 }, &s);
    ck_assert(s.n_requests == 400 && s.n_batches == 100 && s.n_queued == 0 && isnan(s.n_late));
    ck_assert_double_eq_tol(s.busy_s, 2, 1e-9);
}

TEST(a_server_that_began_anew_is_not_counted)
{
    struct scrape_page a = parse(vllm_page), b = a;
    struct served s;

    b.counts[SCRAPE_REQUESTS] = 4;
    scrape_between(&a, 0, &b, 10, &(struct scrape_promise){ 0 }, &s);
    ck_assert(s.is_false && isnan(s.n_requests) && isnan(s.n_queued));
    b = a;
    b.histograms[SCRAPE_TTFT - SCRAPE_COUNTS].below[0]--;
    scrape_between(&a, 0, &b, 10, &(struct scrape_promise){ 0 }, &s);
    ck_assert(s.is_false);
}

TEST(more_than_a_server_can_do_is_not_counted)
{
    struct scrape_page a = parse(triton_page), b = a;
    struct served s;

    b.counts[SCRAPE_REQUESTS] = INFINITY;
    scrape_between(&a, 0, &b, 10, &(struct scrape_promise){ 0 }, &s);
    ck_assert(s.is_false && isnan(s.n_requests));
}

TEST(figures_that_appear_with_the_first_request_were_nothing_before)
{
    const struct scrape_page a = parse("vllm:num_requests_running 0\n"), b = parse(vllm_page);
    struct served s;

    scrape_between(&a, 0, &b, 10, &(struct scrape_promise){ .ttft_s = 0.5 }, &s);
    ck_assert(!s.is_false && s.n_requests == 100);
    ck_assert_double_eq_tol(s.n_late, 2, 1e-9);
}
