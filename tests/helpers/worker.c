/* worker TABLE DIR WORKLOAD steps|rate NUMBER [SEED [ON-SIGNAL]] - a small real job.
 *
 * As fast as TABLE says, by the type of GPU it was given and by who else is there:
 *
 *     TYPE WORKLOAD STEPS_PER_S             alone, on one GPU
 *     TYPE WORKLOAD NEIGHBOUR FACTOR        beside another, as a part of that
 *
 * A gang of n is n times as fast, less a tenth; its slowest member sets the pace. With 'steps' it
 * is done after NUMBER of them; with 'rate' it serves at most NUMBER a second until it is told to
 * end. Then it saves its count, and ends; with the ON-SIGNAL 'ignore' it does not listen.
 *
 * In DIR, which all workers share:
 *     SLOT@JOB     its workload, locked as long as it lives there: how workers see each other
 *     JOB.lock     locked as long as it lives: a second one is a failure of whoever started it
 *     JOB.steps    what it has saved
 *     log          lines 'start|end|twice JOB RUN PID SLOTS TIME STEPS HOW', each one write
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/text/text.h"
#include "gogh.h"

#define TICK_US 50000
#define NOISE 0.03    // of a tick's speed
#define LINES_MAX 256
#define SLOTS_MAX 16

struct line {
    char type[32], workload[64], beside[64];    // beside "": alone
    double value;
};

struct worker {
    struct line lines[LINES_MAX];
    int n_lines;
    char dir[PATH_MAX / 2];
    const char *workload, *type, *job, *run, *slots;
    char slot[SLOTS_MAX][16];
    int n_slots;
    int places[SLOTS_MAX];    // locked, as long as it lives
    double steps, most, rate;
    struct rng chance;
};

static volatile sig_atomic_t is_told;

static void on_signal(int signo)
{
    (void)signo;
    is_told = 1;
}

static _Noreturn void die(const char *what, const char *name)
{
    fprintf(stderr, "worker: %s %s: %s\n", what, name, strerror(errno));
    exit(3);
}

static double number(const char *text)
{
    double v = 0;

    if (text_to_double(slice_of(text), &v) == 0)
        return v;
    errno = EINVAL;
    die("number", text);
}

static const char *variable(const char *name)
{
    const char *v = getenv(name);

    if (v)
        return v;
    errno = ENOENT;
    die("variable", name);
}

/* ---- what it reads and writes ---- */

static void read_table(struct worker *w, const char *path)
{
    FILE *f = fopen(path, "r");
    char text[256], word[4][64];

    if (!f)
        die("table", path);
    while (fgets(text, sizeof text, f) && w->n_lines < LINES_MAX) {
        struct line *l = &w->lines[w->n_lines];
        int n = sscanf(text, "%63s %63s %63s %63s", word[0], word[1], word[2], word[3]);
        if (n < 3)
            continue;
        snprintf(l->type, sizeof l->type, "%.31s", word[0]);
        snprintf(l->workload, sizeof l->workload, "%s", word[1]);
        snprintf(l->beside, sizeof l->beside, "%s", n == 4 ? word[2] : "");
        l->value = number(word[n - 1]);
        w->n_lines++;
    }
    fclose(f);
}

static const char *in_dir(const struct worker *w, const char *a, const char *b)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s%s", w->dir, a, b);
    return path;
}

static void tell(const struct worker *w, const char *what, const char *how)
{
    struct clock c = clock_real();
    char text[512];
    int fd = open(in_dir(w, "log", ""), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int n = snprintf(text, sizeof text, "%s %s %s %d %s %.3f %.3f %s\n", what, w->job, w->run,
                     (int)getpid(), w->slots, clock_now_s(&c), w->steps, how);

    if (fd < 0 || write(fd, text, (size_t)n) != n)
        die("writing", "log");
    close(fd);
}

static void save(const struct worker *w)
{
    char part[PATH_MAX], whole[PATH_MAX];
    FILE *f;

    snprintf(part, sizeof part, "%s", in_dir(w, w->job, ".part"));
    snprintf(whole, sizeof whole, "%s", in_dir(w, w->job, ".steps"));
    f = fopen(part, "w");
    if (!f || fprintf(f, "%.3f\n", w->steps) < 0 || fclose(f) != 0 || rename(part, whole) != 0)
        die("saving", whole);
}

static void resume(struct worker *w)
{
    FILE *f = fopen(in_dir(w, w->job, ".steps"), "r");
    char text[64] = "";

    if (!f)
        return;
    if (fscanf(f, "%63s", text) == 1)
        w->steps = number(text);
    fclose(f);
}

/* ---- where it is, and who else ---- */

/* Whoever holds the lock lives: it goes with the process, however that ends. */
static int lock_file(const char *path, int how)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        die("file", path);
    if (flock(fd, LOCK_EX | how) == 0)
        return fd;
    close(fd);
    return -1;
}

static void be_alone(const struct worker *w)
{
    if (lock_file(in_dir(w, w->job, ".lock"), LOCK_NB) >= 0)
        return;
    tell(w, "twice", "-");
    exit(4);
}

static void split_slots(struct worker *w)
{
    const char *at = w->slots;

    while (*at && w->n_slots < SLOTS_MAX) {
        size_t len = strcspn(at, ",");
        snprintf(w->slot[w->n_slots++], sizeof w->slot[0], "%.*s", (int)(len < 15 ? len : 15), at);
        at += len + (at[len] == ',');
    }
}

static void take_place(struct worker *w, int i)
{
    char name[64];

    snprintf(name, sizeof name, "%s@", w->slot[i]);
    int fd = lock_file(in_dir(w, name, w->job), 0);    // others look at it for a moment
    ssize_t len = (ssize_t)strlen(w->workload);
    if (fd < 0 || ftruncate(fd, 0) < 0 || write(fd, w->workload, (size_t)len) != len)
        die("place", name);
    w->places[i] = fd;
}

static void leave_places(const struct worker *w)
{
    char name[64];

    for (int i = 0; i < w->n_slots; i++) {
        snprintf(name, sizeof name, "%s@", w->slot[i]);
        unlink(in_dir(w, name, w->job));
    }
}

/* The workload of whoever lives at a place; false: nobody does. */
static bool lives(const char *path, char *workload, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_free = fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0;
    ssize_t n = is_free ? 0 : read(fd, workload, size - 1);

    if (fd >= 0)
        close(fd);
    workload[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static double value_of(const struct worker *w, const char *beside, double otherwise)
{
    for (int i = 0; i < w->n_lines; i++) {
        const struct line *l = &w->lines[i];
        if (strcmp(l->type, w->type) == 0 && strcmp(l->workload, w->workload) == 0 &&
            strcmp(l->beside, beside) == 0)
            return l->value;
    }
    return otherwise;
}

static double factor_there(const struct worker *w, const char *slot)
{
    DIR *d = opendir(w->dir);
    size_t len = strlen(slot);
    double factor = 1;
    struct dirent *e;

    if (!d)
        die("directory", w->dir);
    while ((e = readdir(d))) {
        char workload[64];
        const char *at = e->d_name + len;
        if (strncmp(e->d_name, slot, len) == 0 && *at == '@' && strcmp(at + 1, w->job) != 0 &&
            lives(in_dir(w, e->d_name, ""), workload, sizeof workload))
            factor *= value_of(w, workload, 0.6);
    }
    closedir(d);
    return factor;
}

static double speed_now(const struct worker *w)
{
    double speed = value_of(w, "", 0), factor = 1;

    for (int i = 0; i < w->n_slots; i++)
        factor = fmin(factor, factor_there(w, w->slot[i]));
    if (w->n_slots > 1)
        speed *= 0.9 * w->n_slots;
    return speed * factor;
}

/* ---- work ---- */

static void advance(struct worker *w, double elapsed_s)
{
    double speed = speed_now(w) * exp(NOISE * rng_normal(&w->chance));

    if (w->rate > 0)
        speed = fmin(speed, w->rate);
    w->steps = fmin(w->most, w->steps + speed * fmin(elapsed_s, 1));
}

static void work(struct worker *w, bool is_deaf)
{
    struct gogh reports = gogh_open();
    double at_s = clock_stopwatch_s();

    while (w->steps < w->most && (is_deaf || !is_told)) {
        double now_s = clock_stopwatch_s();
        advance(w, now_s - at_s);
        at_s = now_s;
        gogh_steps(&reports, floor(w->steps));
        usleep(TICK_US);    // a signal ends it early, and then the loop
    }
    gogh_close(&reports);
}

static void open_worker(struct worker *w, int argc, char **argv)
{
    bool is_rate = strcmp(argv[4], "rate") == 0;

    snprintf(w->dir, sizeof w->dir, "%s", argv[2]);
    w->workload = argv[3];
    w->most = is_rate ? (double)INFINITY : number(argv[5]);
    w->rate = is_rate ? number(argv[5]) : 0;
    rng_init(&w->chance, argc > 6 ? (uint64_t)number(argv[6]) : 1, "worker");
    w->job = variable("GOGH_JOB");
    w->run = variable("GOGH_RUN");
    w->type = variable("GOGH_GPU_TYPE");
    w->slots = variable("GOGH_SLOTS");
    read_table(w, argv[1]);
}

int main(int argc, char **argv)
{
    static struct worker w;
    struct sigaction told = { .sa_handler = on_signal };

    if (argc < 6) {
        fprintf(stderr, "usage: worker TABLE DIR WORKLOAD steps|rate NUMBER [SEED [ON-SIGNAL]]\n");
        return 2;
    }
    sigaction(SIGTERM, &told, NULL);
    sigaction(SIGUSR1, &told, NULL);
    open_worker(&w, argc, argv);
    be_alone(&w);
    resume(&w);
    split_slots(&w);
    for (int i = 0; i < w.n_slots; i++)
        take_place(&w, i);
    tell(&w, "start", "-");
    work(&w, argc > 7 && strcmp(argv[7], "ignore") == 0);
    save(&w);
    leave_places(&w);
    tell(&w, "end", w.steps >= w.most ? "done" : "saved");
    return 0;
}
