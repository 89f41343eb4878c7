/* Lines on stderr, read back through a pipe; and the progress line beside them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/progress.h"
#include "unit/suite.h"

static char caught[8192];
static int real_stderr, ends[2];

static void catch_stderr(void)
{
    fflush(stderr);
    ck_assert_int_eq(pipe(ends), 0);
    real_stderr = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
}

static const char *release_stderr(void)
{
    size_t n = 0;
    ssize_t got;

    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    while ((got = read(ends[0], caught + n, sizeof caught - 1 - n)) > 0)
        n += (size_t)got;
    caught[n] = '\0';
    close(ends[0]);
    return caught;
}

TEST(lines_above_the_level_are_dropped)
{
    static const struct {
        enum log_level level;
        const char *want;
    } cases[] = {
        { LOG_ERROR, "gogh: error: e 1\n" },
        { LOG_WARN, "gogh: error: e 1\ngogh: warning: w 2\n" },
        { LOG_INFO, "gogh: error: e 1\ngogh: warning: w 2\ngogh: info: i\n" },
        { LOG_DEBUG, "gogh: error: e 1\ngogh: warning: w 2\ngogh: info: i\ngogh: debug: d\n" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        log_set_level(cases[i].level);
        catch_stderr();
        log_error("e %d", 1);
        log_warn("w %d", 2);
        log_info("i");
        log_debug("d");
        ck_assert_str_eq(release_stderr(), cases[i].want);
    }
}

TEST(a_long_line_is_cut_and_still_ends)
{
    const char *line;

    catch_stderr();
    errno = ENOENT;
    log_error("%5000d", 1);
    ck_assert_int_eq(errno, ENOENT);
    line = release_stderr();
    ck_assert_uint_eq(strlen(line), 2047);
    ck_assert_int_eq(line[strlen(line) - 1], '\n');
}

TEST(progress_is_silent_without_a_terminal)
{
    struct progress p;

    catch_stderr();
    progress_begin(&p, "importing", false);
    p.began_s -= 10;
    p.drawn_s -= 10;
    progress_step(&p, 1, 2);
    progress_end(&p);
    ck_assert_str_eq(release_stderr(), "");
}

TEST(progress_is_silent_for_short_work)
{
    struct progress p;

    catch_stderr();
    progress_begin(&p, "importing", true);
    p.began_s += 1000;    // a slow machine must not make this long work
    p.drawn_s -= 1000;
    progress_step(&p, 1, 2);
    progress_end(&p);
    ck_assert_str_eq(release_stderr(), "");
}

TEST(progress_draws_share_and_time_left_then_wipes)
{
    struct progress p;
    const char *seen;

    catch_stderr();
    progress_begin(&p, "importing", true);
    p.began_s -= 100;
    p.drawn_s -= 100;
    progress_step(&p, 25, 100);
    p.drawn_s += 1000;    // just drawn: no redraw
    progress_step(&p, 50, 100);
    p.drawn_s -= 2000;
    progress_step(&p, 7, 0);
    progress_end(&p);
    progress_end(&p);
    seen = release_stderr();
    ck_assert_ptr_nonnull(strstr(seen, "importing  25%, 30"));
    ck_assert_ptr_null(strstr(seen, "50%"));
    ck_assert_ptr_nonnull(strstr(seen, "importing 7, 10"));
    ck_assert_str_eq(strrchr(seen, '\r'), "\r\033[K");
}
