/* client.c - what a job in C does: steps, fast, for some time; for tests/t/client.sh.
 *
 *     client STEPS            that many steps at once, then the end
 *     client STEPS SECONDS    and then one step every millisecond for so long
 *     client unfit            out of memory
 *     client from TOTAL       from a checkpoint of so many steps, and one more
 *     client serve N          so many requests, every fourth of which is late, and two not answered
 *     client quiet SECONDS    ready for requests, of which none comes
 */
#include <fcntl.h>
#include <gogh.h>

static void wait_ms(int n)
{
    struct timespec ms = { 0, 1000000 };

    while (n-- > 0)
        nanosleep(&ms, NULL);
}

static int serve(int n)
{
    struct gogh g = gogh_open();
    int i;

    gogh_ready(&g);
    for (i = 0; i < n; i++) {
        gogh_arrive(&g);
        wait_ms(i % 7);
        if (i >= n - 2)
            continue;
        gogh_done(&g, i % 4 == 0 ? 0.3 : 0.1);
        if (i % 2 == 0)
            gogh_batch(&g, 2, 0.25);
    }
    wait_ms(100);
    gogh_close(&g);
    return 0;
}

static int stay_quiet(double seconds)
{
    struct gogh g = gogh_open();
    const double until_s = gogh_now_s() + seconds;

    gogh_ready(&g);
    while (gogh_now_s() < until_s) {
        wait_ms(10);
        gogh_poll(&g);
    }
    gogh_close(&g);
    return 0;
}

int main(int argc, char **argv)
{
    struct gogh g = gogh_open();
    double until_s;
    int i;

    if (argc > 2 && strcmp(argv[1], "serve") == 0)
        return serve((int)strtol(argv[2], NULL, 10));
    if (argc > 2 && strcmp(argv[1], "quiet") == 0)
        return stay_quiet(strtod(argv[2], NULL));
    if (argc > 1 && strcmp(argv[1], "unfit") == 0) {
        gogh_unfit(&g);
        gogh_close(&g);
        return 1;
    }
    if (gogh_inside(&g) && !(fcntl(g.fd, F_GETFD) & FD_CLOEXEC))
        puts("children would have the socket too");
    if (argc > 2 && strcmp(argv[1], "from") == 0) {
        gogh_steps(&g, strtod(argv[2], NULL));
        gogh_step(&g, 1);
        gogh_close(&g);
        return 0;
    }
    for (i = 0; argc > 1 && i < (int)strtol(argv[1], NULL, 10); i++)
        gogh_step(&g, 1);
    until_s = gogh_now_s() + (argc > 2 ? strtod(argv[2], NULL) : 0);
    while (gogh_now_s() < until_s) {
        struct timespec ms = { 0, 1000000 };
        nanosleep(&ms, NULL);
        gogh_step(&g, 1);
    }
    gogh_steps(&g, 3); /* fewer than there were: ignored */
    printf("%s %.0f\n", gogh_inside(&g) ? "inside" : "outside", g.steps);
    gogh_close(&g);
    gogh_step(&g, 1);
    return 0;
}
