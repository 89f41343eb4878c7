/* Datagrams come in with the time at which they arrived. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/loop.h"
#include "monitor/inbox.h"
#include "monitor/mute.h"
#include "monitor/report.h"
#include "unit/suite.h"
#include "unit/support.h"

struct came {
    int n;
    size_t len[16];
    char text[16][32];
    double at_s[16];
};

static void note(void *self, const char *bytes, size_t len, double arrived_s)
{
    struct came *c = self;

    ck_assert_int_lt(c->n, 16);
    c->len[c->n] = len;
    memcpy(c->text[c->n], bytes, len < 31 ? len : 31);
    c->at_s[c->n++] = arrived_s;
}

struct post {
    struct loop *loop;
    struct inbox *inbox;
    struct came came;
    char *dir;
    int fd;
};

static void post_open(struct post *p)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };

    *p = (struct post){ .dir = scratch_make(), .fd = socket(AF_UNIX, SOCK_DGRAM, 0) };
    snprintf(to.sun_path, sizeof to.sun_path, "%.80s/reports", p->dir);
    ck_assert_int_eq(loop_create(&p->loop, NULL), 0);
    ck_assert_int_eq(inbox_open(p->loop, to.sun_path, NULL, note, &p->came, &p->inbox, NULL), 0);
    ck_assert_int_eq(connect(p->fd, (struct sockaddr *)&to, sizeof to), 0);
}

static void post_close(struct post *p)
{
    inbox_close(p->inbox);
    loop_destroy(p->loop);
    close(p->fd);
    scratch_remove(p->dir);
}

/* Until the stopwatch has gone on by so much. */
static double wait_s(double s)
{
    const double until_s = clock_stopwatch_s() + s;

    while (clock_stopwatch_s() < until_s)
        poll(NULL, 0, 1);
    return clock_stopwatch_s();
}

TEST(what_waited_is_as_old_as_it_is)
{
    struct post p;
    double before_s[3], after_s[3];

    post_open(&p);
    for (int i = 0; i < 3; i++) {    // and nobody reads meanwhile
        before_s[i] = clock_stopwatch_s();
        ck_assert_int_eq(send(p.fd, "hello", 5, 0), 5);
        after_s[i] = clock_stopwatch_s();
        wait_s(.7);
    }
    loop_turn(p.loop, 0, NULL);
    ck_assert_int_eq(p.came.n, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(p.came.text[i], "hello");
        ck_assert_double_ge(p.came.at_s[i], before_s[i] - .5);
        ck_assert_double_le(p.came.at_s[i], after_s[i] + .5);
        ck_assert(i == 0 || p.came.at_s[i] >= p.came.at_s[i - 1]);
    }
    post_close(&p);
}

TEST(what_is_too_long_is_seen_to_be)
{
    struct post p;
    char bytes[2000];

    memset(bytes, 'x', sizeof bytes);
    post_open(&p);
    ck_assert_int_gt((int)send(p.fd, bytes, REPORT_BYTES_MAX, 0), 0);
    ck_assert_int_gt((int)send(p.fd, bytes, sizeof bytes, 0), 0);
    ck_assert_int_eq(send(p.fd, "", 0, 0), 0);
    loop_turn(p.loop, 0, NULL);
    ck_assert_int_eq(p.came.n, 3);
    ck_assert_uint_eq(p.came.len[0], REPORT_BYTES_MAX);
    ck_assert_uint_gt(p.came.len[1], REPORT_BYTES_MAX);
    ck_assert_uint_eq(p.came.len[2], 0);
    post_close(&p);
}

/* ---- those who are not heard ---- */

#define ONE "0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdee"

static const char *const texts[] = { "gogh1 7 0 " ONE " 5",
                                     "gogh1 7 0 " OTHER " 6",
                                     "gogh1 17 0 " ONE " 7",
                                     "gogh1 7 0 " ONE,
                                     "x",
                                     "gogh1 7 0 0123456789abcdef" };
enum { N_TEXTS = sizeof texts / sizeof *texts };

/* Of all texts, those that come through. */
static unsigned heard_of(struct post *p)
{
    unsigned heard = 0;

    p->came.n = 0;
    for (int i = 0; i < N_TEXTS; i++) {
        ck_assert_int_eq(send(p->fd, texts[i], strlen(texts[i]), 0), (ssize_t)strlen(texts[i]));
        const int n = p->came.n;
        inbox_look(p->inbox);
        heard |= (unsigned)(p->came.n > n) << i;
    }
    return heard;
}

TEST(the_kernel_drops_what_muted_runs_send_and_nothing_else)
{
    const struct muted one = { .at = 10, .secret = ONE }, other = { .at = 10, .secret = OTHER };
    const struct muted both[] = { other, one };
    struct muted many[MUTED_MAX];
    struct post p;

    post_open(&p);
    ck_assert_uint_eq(heard_of(&p), 0x3f);
    ck_assert(inbox_mute(p.inbox, &one, 1));
    ck_assert_uint_eq(heard_of(&p), 0x3f & ~0x9u);
    ck_assert(inbox_mute(p.inbox, both, 2));
    ck_assert_uint_eq(heard_of(&p), 0x3f & ~0xbu);
    for (int i = 0; i < MUTED_MAX; i++)
        many[i] = i == MUTED_MAX - 1 ? one : other;
    ck_assert(inbox_mute(p.inbox, many, MUTED_MAX));
    ck_assert_uint_eq(heard_of(&p), 0x3f & ~0xbu);
    ck_assert(inbox_mute(p.inbox, NULL, 0));
    ck_assert_uint_eq(heard_of(&p), 0x3f);
    post_close(&p);
}

TEST(what_comes_by_udp_can_be_muted_too)
{
    const struct muted one = { .at = 10, .secret = ONE };
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct post p = { .fd = socket(AF_INET, SOCK_DGRAM, 0) };

    ck_assert_int_eq(loop_create(&p.loop, NULL), 0);
    ck_assert_int_eq(inbox_open(p.loop, NULL, "127.0.0.1:0", note, &p.came, &p.inbox, NULL), 0);
    to.sin_port = htons((uint16_t)inbox_udp_port(p.inbox));
    ck_assert_int_eq(connect(p.fd, (struct sockaddr *)&to, sizeof to), 0);
    ck_assert(inbox_mute(p.inbox, &one, 1));
    ck_assert_uint_eq(heard_of(&p), 0x3f & ~0x9u);
    inbox_close(p.inbox);
    loop_destroy(p.loop);
    close(p.fd);
}
