#include "probe/pair/gauge.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/gpu/devices.h"
#include "act/local/proc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/text/text.h"

#define EVERY_MS 200    // drivers tell means of a tenth of a second to a second

/* A difference of joules over less than this shows the moments at which they are counted. */
#define JOULES_MIN_S 1.0

/* ---- which GPU ---- */

static int find(const struct device *list, int n, enum device_maker maker, const char *names)
{
    const struct slice name = { names, strcspn(names, ",") };
    long index = -1;

    if (name.len == 0)
        return -1;
    (void)text_to_long(name, 0, n, &index);
    for (int i = 0; i < n; i++) {
        if (list[i].maker != maker)
            continue;
        if (index >= 0
                ? list[i].index == index
                : name.len > 4 && list[i].uuid && strncasecmp(list[i].uuid, name.at, name.len) == 0)
            return i;
    }
    return -1;
}

/* Does a number of CUDA's mean the driver's? */
static bool has_order(const struct device *list, int n, const char *order)
{
    const char *first = NULL;

    if (order && strcmp(order, "PCI_BUS_ID") == 0)
        return true;
    for (int i = 0; i < n; i++) {
        if (list[i].maker != DEVICE_NVIDIA)
            continue;
        if (first && strcmp(first, list[i].title) != 0)
            return false;
        first = list[i].title;
    }
    return true;
}

int gauge_pick(const struct device *list, int n, const struct gauge_names *names)
{
    const char *cuda = names->cuda;
    int i = -1;

    if (!cuda && !names->rocr)
        return n == 1 ? 0 : -1;
    if (cuda && (!isdigit((unsigned char)*cuda) || has_order(list, n, names->order)))
        i = find(list, n, DEVICE_NVIDIA, cuda);
    return i < 0 && names->rocr ? find(list, n, DEVICE_AMD, names->rocr) : i;
}

/* ---- the process ---- */

static int open_device(struct devices **out)
{
    struct err e = { 0 };
    struct device *list;
    int n, i;

    if (devices_open(true, true, false, out, &e) < 0)
        return -1;
    n = devices_n(*out);
    list = heap_array((size_t)n, sizeof *list);
    for (i = 0; i < n; i++)
        list[i] = *devices_get(*out, i);
    i = gauge_pick(list, n,
                   &(struct gauge_names){ .cuda = getenv("CUDA_VISIBLE_DEVICES"),
                                          .order = getenv("CUDA_DEVICE_ORDER"),
                                          .rocr = getenv("ROCR_VISIBLE_DEVICES") });
    free(list);
    return i;
}

static _Noreturn void be_gauge(int to, pid_t parent)
{
    struct devices *devices = NULL;
    struct device_power p;
    struct err e = { 0 };
    int i;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(to, STDOUT_FILENO) < 0)
        _exit(1);
    proc_settle_fds();
    proc_reset_signals();
    i = open_device(&devices);
    while (i >= 0 && devices_power(devices, i, &p, &e) == 0) {
        const struct gauge_reading r = { clock_stopwatch_s(), p.watts,   p.joules,
                                         p.use.gpu,           p.use.mem, p.use.mem_bytes };

        if (write(STDOUT_FILENO, &r, sizeof r) != (ssize_t)sizeof r)    // of a pipe: whole or not
            break;
        poll(NULL, 0, EVERY_MS);
    }
    _exit(0);
}

int gauge_start(pid_t *pid)
{
    const pid_t parent = getpid();
    int ends[2];

    *pid = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    *pid = fork();
    if (*pid == 0)
        be_gauge(ends[1], parent);
    close(ends[1]);
    if (*pid < 0) {
        *pid = 0;
        close(ends[0]);
        return -EAGAIN;
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return ends[0];
}

void gauge_stop(pid_t pid, int fd)
{
    if (fd >= 0)
        close(fd);
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, WNOHANG);
}

/* ---- sums ---- */

void gauge_begin(struct pair_gauge *g, double from_s)
{
    *g = (struct pair_gauge){ .from_s = from_s, .first_s = NAN, .mem_bytes = NAN };
}

static void add(double v, double *sum, int *n)
{
    if (isnan(v))
        return;
    *sum += v;
    ++*n;
}

void gauge_add(struct pair_gauge *g, const struct gauge_reading *r)
{
    if (!(r->t_s >= g->from_s))
        return;
    add(r->watts, &g->watts, &g->n_watts);
    add(r->gpu, &g->gpu, &g->n_gpu);
    add(r->mem, &g->mem, &g->n_mem);
    g->mem_bytes = fmax(g->mem_bytes, r->mem_bytes);
    if (isnan(r->joules))
        return;
    if (isnan(g->first_s)) {
        g->first_s = r->t_s;
        g->first_joules = r->joules;
    }
    g->last_s = r->t_s;
    g->last_joules = r->joules;
}

double gauge_watts(const struct pair_gauge *g)
{
    const double took_s = g->last_s - g->first_s, joules = g->last_joules - g->first_joules;

    if (!isnan(g->first_s) && took_s >= JOULES_MIN_S && joules > 0)
        return joules / took_s;
    return g->n_watts > 0 ? g->watts / g->n_watts : (double)NAN;
}

double gauge_gpu(const struct pair_gauge *g)
{
    return g->n_gpu > 0 ? g->gpu / g->n_gpu : (double)NAN;
}

double gauge_mem(const struct pair_gauge *g)
{
    return g->n_mem > 0 ? g->mem / g->n_mem : (double)NAN;
}
