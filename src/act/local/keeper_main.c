/* gogh-keeper DIR - the parent of one run of a job (local.h, docs/formats/run.md).
 *
 * Takes the order in DIR, unless somebody has, starts the command as its owner, becomes the owner
 * itself, waits, and writes down how it ended. What of the command's offspring is left then is
 * killed. Knows nothing of the daemon, which may come and go meanwhile, but two signals:
 * SIGTERM asks for a checkpoint and an end, SIGUSR2 (or SIGINT) for an end.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <math.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/local/command.h"
#include "act/local/proc.h"
#include "act/local/status.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"

enum { LAST_WORDS_MAX = 16384 };    // a traceback and what the runtime said before it

#define READING_S 10.0    // file servers under load answer in less; the GPU is held meanwhile
#define STRAYS_S 10.0     // what cannot be killed in that time hangs in a driver; the run has ended

enum why { WHY_SELF, WHY_STOPPED, WHY_TIMEOUT, WHY_SERVED };

/* Memory that the keeper's forks have with it. */
struct shared {
    struct stat errors;    // where the command's go, as it began; st_mode 0: unknown
    const char *why;       // its reader's finding: a literal, which forks have in the same place
};

struct keeper_state {
    int dir, runs;    // its directory, and the one with those of all runs
    int status, lock;
    int signals;     // signalfd
    int report;      // a child that cannot exec says why here; -1: it is settled
    int out, err;    // logs in the directory; -1: files of the owner's
    struct shared *shared;
    struct arena arena;
    struct launch launch;
    gid_t *groups;
    int n_groups;
    const char *home;
    pid_t pid;       // of the command; 0: not started
    bool is_over;    // the command has ended: 'code', a status of wait(2)
    int code;
    enum why why;
    bool has_failed;
    char failure[STATUS_LINE_MAX / 2];
    double timeout_at_s, served_at_s, kill_at_s;    // on the stopwatch
    double killed_s;    // since when what is left is being killed; NaN: not yet
    double ended_s;
};

static double now_s(void)
{
    struct clock c = clock_real();

    return clock_now_s(&c);
}

/* ---- telling ---- */

/* Wake the daemon, if there is one; it would look by itself before long. */
static void poke(const struct keeper_state *k, const char *what)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char text[80];
    int n;

    if (fd < 0)
        return;
    snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/notices.sock", k->runs);
    n = snprintf(text, sizeof text, "%s %ld %ld", what, k->launch.job, k->launch.run);
    (void)sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to);
    close(fd);
}

static void fail(struct keeper_state *k, const char *what, const char *name, int error)
{
    k->has_failed = true;
    snprintf(k->failure, sizeof k->failure, "%s%s%.200s%s: %s", what, name ? " '" : "",
             name ? name : "", name ? "'" : "", strerror(error));
}

/* ---- what it said last ---- */

/* Where its errors go: a file of the owner's, which may be relative to where the command runs, or
 * the run's own log. A descriptor by which nothing can be read yet, or -1.
 */
static int find_errors(const struct keeper_state *k)
{
    const struct command *c = &k->launch.command;
    int at = c->err ? open(c->cwd ? c->cwd : k->home, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    int fd = openat(c->err ? at : k->dir, c->err ? c->err : "err", O_PATH | O_CLOEXEC);

    if (at >= 0)
        close(at);
    return fd;
}

/* The last of what this run has written there; how much. Only with the owner's rights, and only
 * from the very file that the command began with: of another nobody knows what is this run's.
 */
static ssize_t read_errors(const struct keeper_state *k, char *to, size_t size)
{
    const struct stat *began = &k->shared->errors;
    const int path = geteuid() == (uid_t)k->launch.command.uid ? find_errors(k) : -1;
    char name[40];
    struct stat st;
    ssize_t n = -1;
    int fd = -1;

    if (path < 0)
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", path);
    if (fstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == began->st_dev &&
        st.st_ino == began->st_ino)
        fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);    // a lease is an error, not a wait
    if (fd >= 0) {
        const off_t last = st.st_size - (off_t)size;
        n = pread(fd, to, size, last > began->st_size ? last : began->st_size);
        close(fd);
    }
    close(path);
    return n;
}

/* In a process of its own: a file of the owner's may hang for ever. */
static _Noreturn void be_reader(struct keeper_state *k)
{
    static char tail[LAST_WORDS_MAX];
    ssize_t n;

    close(k->lock);    // says that the keeper lives
    n = read_errors(k, tail, sizeof tail);
    k->shared->why = n > 0 ? status_incapable_words(tail, (size_t)n) : NULL;
    _exit(0);
}

/* Does a child end in that time, and well? */
static bool ends_well_within(const struct keeper_state *k, pid_t pid, double limit_s)
{
    const double until_s = clock_stopwatch_s() + limit_s;
    struct pollfd signals = { k->signals, POLLIN, 0 };
    struct signalfd_siginfo heard;
    int code = 0;

    for (;;) {
        const pid_t ended = waitpid(pid, &code, WNOHANG);
        const double left_s = until_s - clock_stopwatch_s();

        if (ended != 0)
            return ended == pid && code == 0;
        if (left_s <= 0)
            return false;
        (void)poll(&signals, 1, (int)(left_s * 1e3) + 1);
        while (read(k->signals, &heard, sizeof heard) == sizeof heard)
            continue;    // the run is over: no other matters
    }
}

/* Why a command that failed could not have run on this GPU, by its last words; "": they say
 * nothing of it, or cannot be read. A reader that hangs in a file system may not even die when it
 * is killed: nobody waits for it.
 */
static const char *why_incapable(struct keeper_state *k)
{
    const bool is_known = S_ISREG(k->shared->errors.st_mode);
    const pid_t reader = is_known ? fork() : -1;

    if (reader == 0)
        be_reader(k);
    if (reader < 0)
        return "";
    if (!ends_well_within(k, reader, READING_S)) {
        (void)kill(reader, SIGKILL);
        return "";
    }
    return k->shared->why ? k->shared->why : "";
}

/* ---- how it ended ---- */

static int write_end(const struct keeper_state *k, const char *why)
{
    static const char *const words[] = {
        [WHY_STOPPED] = "stopped", [WHY_TIMEOUT] = "timeout", [WHY_SERVED] = "served"
    };

    if (k->has_failed)
        return status_append(k->status, "ended %.3f failed %s", k->ended_s, k->failure);
    if (k->why != WHY_SELF)
        return status_append(k->status, "ended %.3f %s", k->ended_s, words[k->why]);
    if (WIFSIGNALED(k->code))
        return status_append(k->status, "ended %.3f signal %d%s%s", k->ended_s, WTERMSIG(k->code),
                             *why ? " " : "", why);
    return status_append(k->status, "ended %.3f exit %d%s%s", k->ended_s, WEXITSTATUS(k->code),
                         *why ? " " : "", why);
}

/* How it ended must be written down, even if that waits until there is room on the disk again, or
 * the disk itself is there again.
 */
static void tell_end(struct keeper_state *k)
{
    const bool is_failure = k->pid != 0 && k->code != 0 && k->why == WHY_SELF && !k->has_failed;
    const char *why = is_failure ? why_incapable(k) : "";
    int rc;

    if (!(k->ended_s > 0))
        k->ended_s = now_s();
    while ((rc = write_end(k, why)) == -ENOSPC || rc == -EDQUOT || rc == -EIO || rc == -EROFS)
        poll(NULL, 0, 1000);
    poke(k, "ended");
}

/* ---- taking the order ---- */

static int open_dirs(struct keeper_state *k, const char *path)
{
    k->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    k->runs = k->dir >= 0 ? openat(k->dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (k->runs >= 0)
        return 0;
    fprintf(stderr, "gogh-keeper: %s: %s\n", path, strerror(errno));
    return -1;
}

/* The order and the names that lead to it are on disk before anything runs. Here, so that the
 * daemon need not wait for it.
 */
static void settle(const struct keeper_state *k)
{
    int fd = openat(k->dir, "order", O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    (void)fsync(k->dir);
    (void)fsync(k->runs);
}

/* True when the run is ours: its lock is, which nobody else gets while we live, and nobody had
 * it before.
 */
static bool take(struct keeper_state *k)
{
    char boot[BOOT_ID_SIZE];
    struct status was;
    struct proc self;

    k->lock = openat(k->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->lock < 0 || flock(k->lock, LOCK_EX | LOCK_NB) != 0)
        return false;
    if (status_read(k->dir, &was) < 0 || was.is_taken || was.ended != ENDED_NOT)
        return false;
    k->status = status_open(k->dir);
    if (k->status < 0 || proc_read(getpid(), &self) < 0)
        return false;
    proc_boot_id(boot);
    settle(k);
    return status_append(k->status, "taken %d %llu %s", (int)getpid(),
                         (unsigned long long)self.start, boot) == 0;
}

static int open_log(struct keeper_state *k, const char *name)
{
    const struct command *c = &k->launch.command;
    int fd = openat(k->dir, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        fail(k, "cannot open", name, errno);
    else if (fchown(fd, (uid_t)c->uid, (gid_t)c->gid) != 0)
        errno = 0;    // without CAP_CHOWN only the daemon can read it
    return fd;
}

/* What there are rights to now: groups, home, logs. And the memory that is shared. */
static void prepare(struct keeper_state *k)
{
    const struct command *c = &k->launch.command;
    const struct passwd *user = getpwuid((uid_t)c->uid);
    int n = 256;

    k->groups = ARENA_ARRAY(&k->arena, gid_t, (size_t)n);
    k->groups[0] = (gid_t)c->gid;
    k->n_groups = 1;
    k->home = user ? arena_strdup(&k->arena, user->pw_dir) : "/";
    if (user && getgrouplist(user->pw_name, (gid_t)c->gid, k->groups, &n) < 0 && n > 256) {
        k->groups = ARENA_ARRAY(&k->arena, gid_t, (size_t)n);
        (void)getgrouplist(user->pw_name, (gid_t)c->gid, k->groups, &n);
    }
    if (user)
        k->n_groups = n;
    if (!c->out)
        k->out = open_log(k, "out");
    if (!c->err && !k->has_failed)
        k->err = open_log(k, "err");
    k->shared =
        mmap(NULL, sizeof *k->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (k->shared == MAP_FAILED)
        fail(k, "cannot share memory with the command", NULL, errno);
}

/* ---- becoming the owner ---- */

static int become_owner(const struct keeper_state *k)
{
    const struct command *c = &k->launch.command;

    if (setgroups((size_t)k->n_groups, k->groups) != 0 &&
        (errno != EPERM || (uid_t)c->uid != geteuid()))
        return -errno;
    return proc_become((uid_t)c->uid, (gid_t)c->gid);
}

/* ---- the command ---- */

static _Noreturn void give_up(struct keeper_state *k, int report, const char *what,
                              const char *name, int error)
{
    ssize_t sent;

    fail(k, what, name, error);
    sent = write(report, k->failure, strlen(k->failure));
    (void)sent;    // the keeper is gone; so are we
    _exit(127);
}

/* A file of the owner's, or the log that is open already. A pipe that nobody reads is an error
 * rather than a wait.
 */
static void redirect(struct keeper_state *k, int report, const char *path, int log, int to)
{
    int fd = log;

    if (path) {
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
        if (fd < 0)
            give_up(k, report, "cannot open", path, errno);
        (void)fcntl(fd, F_SETFL, O_APPEND);
    }
    if (dup2(fd, to) < 0)
        give_up(k, report, "cannot write to", path ? path : "its log", errno);
}

/* Which file its errors go to and what earlier runs have left there, as only the owner is sure to
 * see it.
 */
static void note_errors(struct keeper_state *k)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) == 0)
        k->shared->errors = st;
}

static _Noreturn void be_command(struct keeper_state *k, int report)
{
    const struct command *c = &k->launch.command;
    const char *cwd = c->cwd ? c->cwd : k->home;
    int rc;

    close(k->lock);    // says that the keeper lives
    setpgid(0, 0);
    rc = become_owner(k);
    if (rc < 0)
        give_up(k, report, "cannot become its owner", NULL, -rc);
    if (chdir(cwd) != 0)
        give_up(k, report, "cannot enter", cwd, errno);
    redirect(k, report, c->out, k->out, STDOUT_FILENO);
    redirect(k, report, c->err, k->err, STDERR_FILENO);
    note_errors(k);
    proc_reset_signals();
    environ = c->env;    // whose PATH is searched
    execvpe(c->argv[0], c->argv, c->env);
    give_up(k, report, "cannot run", c->argv[0], errno);
}

static void start(struct keeper_state *k)
{
    const struct command *c = &k->launch.command;
    const double t = clock_stopwatch_s();
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0) {
        fail(k, "cannot make a pipe", NULL, errno);
        return;
    }
    k->pid = fork();
    if (k->pid == 0)
        be_command(k, ends[1]);
    close(ends[1]);
    if (k->pid < 0) {
        fail(k, "cannot fork", NULL, errno);
        k->pid = 0;
        close(ends[0]);
        return;
    }
    (void)setpgid(k->pid, k->pid);    // here too: whoever comes first
    k->report = ends[0];
    if (c->timeout_s > 0)
        k->timeout_at_s = t + c->timeout_s;
    if (k->launch.finish_after_s > 0)
        k->served_at_s = t + k->launch.finish_after_s;
}

/* The report pipe: text says why there is no command; its end, that there is one. */
static void on_report(struct keeper_state *k)
{
    ssize_t n = read(k->report, k->failure, sizeof k->failure - 1);
    struct proc p = { .start = 0 };

    if (n < 0 && errno == EINTR)
        return;
    close(k->report);
    k->report = -1;
    if (n > 0) {
        k->failure[n] = '\0';
        k->has_failed = true;
        return;
    }
    (void)proc_read(k->pid, &p);    // there, if only as a zombie: nobody has waited for it
    (void)status_append(k->status, "started %d %llu %.3f", (int)k->pid, (unsigned long long)p.start,
                        now_s());
    poke(k, "started");
}

/* ---- ending ---- */

static void signal_group(const struct keeper_state *k, int signo)
{
    if (k->pid == 0 || k->is_over)
        return;
    (void)kill(-k->pid, signo);
    if (signo != SIGKILL)
        (void)kill(-k->pid, SIGCONT);    // one that was halted is to hear it too
}

static void leave(struct keeper_state *k, enum why why, int signo)
{
    const double t = clock_stopwatch_s();
    const double grace_s = signo ? k->launch.command.grace_s : 0;

    if (k->is_over)
        return;
    if (k->why == WHY_SELF) {
        k->why = why;
        (void)status_append(k->status, "stopping %.3f", now_s());
    }
    if (signo)
        signal_group(k, signo);
    k->kill_at_s = fmin(k->kill_at_s, t + grace_s);
    k->timeout_at_s = k->served_at_s = (double)INFINITY;
}

/* Wait for whoever has ended. The command's number is its group's; while it is a zombie the group
 * can be signalled by it. False: no children are left.
 */
static bool reap(struct keeper_state *k)
{
    for (;;) {
        siginfo_t s = { 0 };
        int code = 0;

        if (waitid(P_ALL, 0, &s, WEXITED | WNOHANG | WNOWAIT) != 0)
            return errno != ECHILD;
        if (s.si_pid == 0)
            return true;
        if (s.si_pid == k->pid && k->why == WHY_SELF)
            signal_group(k, SIGKILL);
        (void)waitpid(s.si_pid, &code, 0);
        if (s.si_pid != k->pid || k->is_over)
            continue;
        k->is_over = true;
        k->code = code;
        k->ended_s = now_s();
        if (k->why == WHY_SELF)    // asked to end, its offspring keeps the grace it was given
            k->kill_at_s = clock_stopwatch_s();
    }
}

static void on_signals(struct keeper_state *k)
{
    struct signalfd_siginfo s;

    while (read(k->signals, &s, sizeof s) == sizeof s) {
        (void)reap(k);    // what has ended by now was not asked to
        if (s.ssi_signo == SIGTERM && k->why == WHY_SELF)
            leave(k, WHY_STOPPED, k->launch.command.checkpoint_signal);
        else if (s.ssi_signo == SIGINT || s.ssi_signo == SIGUSR2)
            leave(k, WHY_STOPPED, SIGTERM);
    }
}

static void on_time(struct keeper_state *k)
{
    const double t = clock_stopwatch_s();

    if (t >= k->timeout_at_s)
        leave(k, WHY_TIMEOUT, SIGTERM);
    if (t >= k->served_at_s)
        leave(k, WHY_SERVED, SIGTERM);
    if (t < k->kill_at_s)
        return;
    if (isnan(k->killed_s))
        k->killed_s = t;
    signal_group(k, SIGKILL);
    proc_kill_children();
}

static int wait_ms(const struct keeper_state *k)
{
    double at_s = fmin(k->timeout_at_s, fmin(k->served_at_s, k->kill_at_s));
    double left_s = at_s - clock_stopwatch_s();

    if (!isnan(k->killed_s))    // a killed one's children become ours without a word
        return clock_stopwatch_s() - k->killed_s < 1 ? 10 : 500;
    if (isinf(at_s))
        return -1;
    return left_s <= 0 ? 0 : (int)fmin(left_s * 1e3 + 1, 3600e3);
}

static void keep(struct keeper_state *k)
{
    bool has_children = true;

    while (has_children) {
        struct pollfd fds[2] = { { k->signals, POLLIN, 0 }, { k->report, POLLIN, 0 } };

        (void)poll(fds, 2, wait_ms(k));
        if (k->report >= 0 && fds[1].revents)
            on_report(k);
        on_signals(k);
        has_children = reap(k);
        if (k->report >= 0 && k->is_over)
            on_report(k);    // whatever it had to say is there
        on_time(k);
        if (k->is_over && clock_stopwatch_s() - k->killed_s > STRAYS_S)
            break;
    }
}

static int open_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void run(struct keeper_state *k)
{
    struct err e = { 0 };
    int rc = launch_read(&k->arena, k->dir, &k->launch, &e);

    if (rc < 0) {
        k->has_failed = true;
        snprintf(k->failure, sizeof k->failure, "%.300s", e.text);
        return;
    }
    prepare(k);
    on_signals(k);    // those that came before there was anything to end
    if (k->has_failed || k->why != WHY_SELF)
        return;
    start(k);
    if (k->pid == 0)
        return;
    rc = become_owner(k);
    if (rc < 0)
        k->kill_at_s = 0;    // the command says the same of itself
    keep(k);
}

int main(int argc, char **argv)
{
    struct keeper_state k = { .report = -1, .out = -1, .err = -1, .killed_s = (double)NAN };

    if (argc != 2) {
        fprintf(stderr, "usage: gogh-keeper DIRECTORY-OF-A-RUN\n");
        return 2;
    }
    k.timeout_at_s = k.served_at_s = k.kill_at_s = (double)INFINITY;
    proc_settle_fds();
    k.signals = open_signals();
    umask(022);
    if (k.signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        open_dirs(&k, argv[1]) < 0)
        return 1;
    if (!take(&k))
        return 0;
    arena_init(&k.arena);
    run(&k);
    tell_end(&k);
    _exit(0);    // nothing is left to do, and it may be another user that would do it
}
