/* top.c - `gogh top`: the daemon's GPUs, jobs and decisions on a live screen. */
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/client/jobs.h"
#include "cli/table.h"
#include "cli/when.h"

static const char help[] =
    "A live screen: GPUs with the jobs on them, jobs with speed, promise and watts, energy and\n"
    "decisions; those that draw most come first. 'q' ends it, blank draws it anew. Where the\n"
    "output is no terminal, it is printed once.\n"
    "\n"
    "  --every S        seconds between two looks (1)\n"
    "  --once           print it once, with all rows\n" CLIENT_HELP "\n"
    "With --json, one object with the daemon's answers: 'status', 'gpus' and 'jobs'.\n"
    "\n"
    "Examples:\n"
    "  gogh top\n"
    "  gogh top --once | head\n";

/* ---- what is shown ---- */

/* All that a page shows. */
struct top_page {
    struct client *client;
    json_t *status, *gpus, *jobs;    // the lists are ours, most watts first
};

struct drawing_row {
    json_t *row;
    double watts;
    size_t index;
};

static int by_watts(const void *a, const void *b)
{
    const struct drawing_row *x = a, *y = b;

    if (x->watts != y->watts)
        return x->watts < y->watts ? 1 : -1;
    return x->index > y->index ? 1 : -1;
}

/* What draws nothing comes last, in the order it had. */
static void sort(struct arena *a, json_t *rows)
{
    size_t n = json_array_size(rows);
    struct drawing_row *r = ARENA_ARRAY(a, struct drawing_row, n);

    for (size_t i = 0; i < n; i++) {
        double w = json_number_of(json_array_get(rows, i), "watts");

        r[i] =
            (struct drawing_row){ json_incref(json_array_get(rows, i)), isfinite(w) ? w : -1, i };
    }
    qsort(r, n, sizeof *r, by_watts);
    for (size_t i = 0; i < n; i++)
        json_array_set_new(rows, i, r[i].row);
}

static void page_close(struct top_page *v)
{
    json_decref(v->gpus);
    json_decref(v->jobs);
    client_close(v->client);
}

/* Ask for all of it; each look has a client of its own, so that nothing piles up. */
static int page_open(struct top_page *v, struct err *e)
{
    *v = (struct top_page){ .gpus = json_array(), .jobs = json_array() };
    int rc = client_open(&v->client, e);
    if (rc == 0)
        rc = client_get(v->client, "/v1/status", &v->status, e);
    if (rc == 0)
        rc = client_list(v->client, "/v1/gpus", "gpus", v->gpus, e);
    if (rc == 0)
        rc = jobs_live(v->client, "/v1/jobs", v->jobs, e);
    if (rc < 0) {
        page_close(v);
        return rc;
    }
    sort(client_arena(v->client), v->gpus);
    sort(client_arena(v->client), v->jobs);
    return 0;
}

/* ---- the page ---- */

static int n_busy(const json_t *gpus)
{
    int n = 0;

    for (size_t i = 0; i < json_array_size(gpus); i++)
        n += json_array_size(json_object_get(json_array_get(gpus, i), "jobs")) > 0;
    return n;
}

static void put_head(const struct top_page *v, FILE *out)
{
    struct arena *a = client_arena(v->client);
    const json_t *s = v->status, *jobs = json_object_get(s, "jobs");
    double now_s = json_number_of(s, "now_s");

    fprintf(out, "gogh %s  %s, %s  up %s  %s%s\n", cell_text(a, s, "version"),
            cell_text(a, s, "mode"), cell_text(a, s, "policy"), cell_since(a, s, "began_s", now_s),
            when_clock(a, now_s, now_s),
            json_is_false(json_object_get(s, "store_ok")) ? "  THE STORE CANNOT WRITE" : "");
    fprintf(out, "jobs: %s running, %s waiting, %s held   GPUs: %d of %s busy   %s W   %s kWh\n",
            cell_text(a, jobs, "running"), cell_text(a, jobs, "waiting"),
            cell_text(a, jobs, "held"), n_busy(v->gpus), cell_text(a, s, "gpus"),
            cell_number(a, s, "watts"), cell_scaled(a, s, "joules", 1 / KWH_J));
    fprintf(out,
            "decisions: %s (%s by the fallback), last %s ago   moves: %s   measured: %s, "
            "error %s %%, covered %s %%\n",
            cell_text(a, s, "decisions"), cell_text(a, s, "fallbacks"),
            cell_since(a, s, "last_decision_s", now_s), cell_text(a, s, "moves"),
            cell_text(a, s, "measurements"), cell_percent(a, s, "error"),
            cell_percent(a, s, "coverage"));
}

/* How far the last plan may be from the best one, where that is known. */
static void put_gap(const struct top_page *v, FILE *out)
{
    struct arena *a = client_arena(v->client);
    const json_t *s = v->status;

    if (json_is_number(json_object_get(s, "gap_w")))
        fprintf(out,
                "plan: at most %s W from the best, %s %% of its cost, %s %% of what can vary\n",
                cell_number(a, s, "gap_w"), cell_percent(a, s, "gap_ratio"),
                cell_percent(a, s, "gap_varying_ratio"));
}

static void draw(const struct top_page *v, int n_gpus, FILE *out)
{
    struct arena *a = client_arena(v->client);

    put_head(v, out);
    put_gap(v, out);
    fputs("\n", out);
    nodes_gpus(a, v->gpus, n_gpus, out);
    if ((int)json_array_size(v->gpus) > n_gpus)
        fprintf(out, "and %d more GPUs\n", (int)json_array_size(v->gpus) - n_gpus);
    fputs("\n", out);
    if (json_array_size(v->jobs) > 0)
        jobs_table(a, v->jobs, json_number_of(v->status, "now_s"), out);
    else
        fputs("no jobs\n", out);
}

static int print_once(struct err *e)
{
    struct top_page v;

    if (page_open(&v, e) < 0)
        return -e->code;
    if (client_options.is_json)
        json_print(json_pack("{s:O, s:O, s:O}", "status", v.status, "gpus", v.gpus, "jobs", v.jobs),
                   JSON_COMPACT | JSON_REAL_PRECISION(15));
    else
        draw(&v, INT_MAX, stdout);
    page_close(&v);
    return 0;
}

/* ---- the terminal ---- */

/* ECMA-48 and xterm. */
#define ENTER "\033[?1049h\033[?25l"    // the other screen, no cursor
#define LEAVE "\033[?25h\033[?1049l"
#define CURSOR_HOME "\033[H"
#define ERASE_RIGHT "\033[K"
#define ERASE_BELOW "\033[J"

static struct termios before;
static volatile sig_atomic_t is_entered, is_over, is_to_stop;

static void put_bytes(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, text, len);

        if (n < 0 && errno != EINTR) {
            is_over = 1;
            return;
        }
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* Safe in a signal handler. */
static void leave(void)
{
    if (!is_entered)
        return;
    is_entered = 0;
    put_bytes(LEAVE, sizeof LEAVE - 1);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void enter(void)
{
    struct termios raw = before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    is_entered = 1;
    put_bytes(ENTER, sizeof ENTER - 1);
}

static void on_signal(int number)
{
    switch (number) {
    case SIGTSTP:
        is_to_stop = 1;
        break;
    case SIGWINCH:    // poll comes back, and the next page has the new size
        break;
    case SIGABRT:    // we fail: the message must not land on the other screen
    case SIGSEGV:
        leave();
        signal(number, SIG_DFL);
        raise(number);
        break;
    default:
        is_over = 1;
    }
}

static void listen_to_signals(void)
{
    static const int heard[] = { SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT,
                                 SIGTSTP, SIGWINCH, SIGABRT, SIGSEGV };
    const struct sigaction s = { .sa_handler = on_signal };

    for (int i = 0; i < CMD_COUNT(heard); i++)
        sigaction(heard[i], &s, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static bool can_draw(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) && term != NULL &&
           strcmp(term, "dumb") != 0 && tcgetattr(STDIN_FILENO, &before) == 0;
}

static struct winsize size_now(void)
{
    struct winsize w;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row == 0 || w.ws_col == 0)
        w = (struct winsize){ .ws_row = 24, .ws_col = 80 };
    return w;
}

/* Bytes of the line's first 'columns' characters. */
static size_t fitting(const char *line, size_t len, int columns)
{
    size_t i = 0;

    for (int n = 0; i < len; i++) {
        bool is_first = ((unsigned char)line[i] & 0xc0) != 0x80;

        if (is_first && n++ == columns)
            break;
    }
    return i;
}

/* The page cut to the screen, without a scroll at its end. */
static void put_page(const char *text, struct winsize w)
{
    struct buf out;

    buf_init(&out, 1 << 20);
    buf_puts(&out, CURSOR_HOME);
    for (int row = 0; row < w.ws_row && *text != '\0'; row++) {
        size_t len = strcspn(text, "\n");

        buf_printf(&out, "%s%.*s" ERASE_RIGHT, row > 0 ? "\r\n" : "",
                   (int)fitting(text, len, w.ws_col), text);
        text += len + (text[len] == '\n');
    }
    buf_puts(&out, ERASE_BELOW);
    put_bytes(buf_text(&out), out.len);
    buf_release(&out);
}

/* ---- live ---- */

static void look(void)
{
    struct winsize w = size_now();
    struct err e = { 0 };
    struct top_page v;
    char *page = NULL;
    size_t len;
    FILE *out = open_memstream(&page, &len);

    assert(out != NULL);
    if (page_open(&v, &e) < 0) {
        fprintf(out, "gogh top: %s\n\ntrying again; 'q' ends this\n", e.text);
    } else {
        int n_gpus = (w.ws_row - 9) / 2;    // the head, two headings, blank lines

        draw(&v, n_gpus > 1 ? n_gpus : 1, out);
        page_close(&v);
    }
    fclose(out);
    if (!is_over)
        put_page(page, w);
    free(page);
}

/* Rest until 'due_s' on the stopwatch, a key or a signal. */
static void rest_until(double due_s)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    double left_s = due_s - clock_stopwatch_s();
    char keys[64];
    ssize_t n;

    if (is_over || is_to_stop || left_s <= 0 || poll(&in, 1, (int)(1000 * left_s) + 1) <= 0)
        return;
    n = read(STDIN_FILENO, keys, sizeof keys);
    if (n <= 0 || memchr(keys, 'q', (size_t)n) != NULL || memchr(keys, 'Q', (size_t)n) != NULL)
        is_over = 1;
}

static void stop_here(void)
{
    is_to_stop = 0;
    leave();
    raise(SIGSTOP);
    enter();
}

static int run_live(double every_s, struct err *e)
{
    struct top_page v;

    if (page_open(&v, e) < 0)    // a wrong address is told where it stays to be read
        return -e->code;
    page_close(&v);
    listen_to_signals();
    atexit(leave);
    enter();
    while (!is_over) {
        double began_s = clock_stopwatch_s();

        look();
        rest_until(began_s + every_s);
        if (is_to_stop)
            stop_here();
    }
    leave();
    return 0;
}

static double every_s = 1;
static bool is_once;

static const struct cmd_option options[] = {
    CMD_NUMBER("every", every_s, 0.1, 3600),
    CMD_FLAG("once", is_once),
    CLIENT_OPTIONS,
};

static int run(const struct cmd_call *call, struct err *e)
{
    (void)call;
    return is_once || client_options.is_json || !can_draw() ? print_once(e) : run_live(every_s, e);
}

const struct cmd cmd_top = {
    .name = "top",
    .synopsis = "top [--every S] [--once] [--json]",
    .summary = "GPUs, jobs and decisions on a live screen",
    .help = help,
    CMD_OPTIONS(options),
    .run = run,
};
