#include "act/driver/call.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/local/proc.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/grow.h"
#include "base/text/text.h"

#define EXTRA_FD 3

/*     RUNS --limit or flood--> TERMED --CALL_TERM_S--> KILLED --CALL_KILL_S--> left behind
 *       '-- it ends ----------------'-----------------------'--> over             (call_go_on)
 */
enum call_phase { RUNS, TERMED, KILLED };

struct slurm_call {
    pid_t pid;
    int process;                 // pidfd: readable once it has ended
    int in, out, err, report;    // -1: closed
    const char *input;
    size_t input_len, n_written;
    struct buf output, errors;
    char why[300];             // why it could not begin; "": it did
    double began_s, next_s;    // next_s: when the phase ends
    enum call_phase phase;
    const char *const *last_words;
    bool as_user;
    bool is_flooded, is_hopeless, is_over;
};

/* ---- in the child ---- */

/* A user that the machine does not know has no groups but his own. */
static int take_groups(const struct passwd *user, uid_t uid, gid_t gid)
{
    if ((user ? initgroups(user->pw_name, gid) : setgroups(1, &gid)) == 0)
        return 0;
    return errno == EPERM && uid == geteuid() && gid == getegid() ? 0 : -errno;
}

static _Noreturn void give_up(int report, const char *what, const char *name, int error)
{
    char text[300];
    int n = snprintf(text, sizeof text, "%s%s%.150s%s: %s", what, name ? " '" : "",
                     name ? name : "", name ? "'" : "", strerror(error));
    ssize_t sent = write(report, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);

    (void)sent;    // whoever listened is gone; so are we
    _exit(127);
}

/* The program with its path, in the directories that were named, not in a user's PATH. */
static void find_program(const struct call_order *o, char *out, size_t size)
{
    const char *at = o->path ? o->path : "";

    snprintf(out, size, "%s", o->program);
    if (strchr(o->program, '/'))
        return;
    for (struct slice dir; slice_next(&at, ':', &dir);) {
        snprintf(out, size, "%.*s/%s", (int)dir.len, dir.at, o->program);
        if (dir.len > 0 && access(out, X_OK) == 0)
            return;
    }
    snprintf(out, size, "%s", o->program);
}

/* Descriptors 0 to 2, 3 where there is something extra, and the one to say what is wrong. They are
 * moved out of the way first, so that none is lost to another's place.
 */
static int place_fds(int fds[4], int report)
{
    report = fcntl(report, F_DUPFD_CLOEXEC, 20);
    for (int i = 0; i < 4; i++)
        fds[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 20);
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0 && dup2(fds[i], i) < 0)
            give_up(report, "cannot place a descriptor", NULL, errno);
    (void)close_range(fds[EXTRA_FD] >= 0 ? EXTRA_FD + 1 : EXTRA_FD, (unsigned)report - 1, 0);
    (void)close_range((unsigned)report + 1, ~0U, 0);
    return report;
}

static bool has_variable(const struct call_order *o, const char *name)
{
    const size_t n = strlen(name);

    for (size_t at = 0; at < o->extra_len; at += strlen(o->extra + at) + 1)
        if (strncmp(o->extra + at, name, n) == 0 && o->extra[at + n] == '=')
            return true;
    return false;
}

/* What a login gives, into the file that is descriptor 3, behind what is there. */
static void add_login(const struct call_order *o, const struct passwd *user)
{
    const struct {
        const char *name, *value;
    } all[] = { { "PATH", "/usr/local/bin:/usr/bin:/bin" },
                { "HOME", user ? user->pw_dir : NULL },
                { "USER", user ? user->pw_name : NULL },
                { "LOGNAME", user ? user->pw_name : NULL },
                { "SHELL", user ? user->pw_shell : NULL } };

    (void)lseek(EXTRA_FD, 0, SEEK_END);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value && !has_variable(o, all[i].name))
            dprintf(EXTRA_FD, "%s=%s%c", all[i].name, all[i].value, '\0');
    (void)lseek(EXTRA_FD, 0, SEEK_SET);
}

/* The arguments with the user's home behind them. */
static char *const *add_home(const struct call_order *o, const struct passwd *user)
{
    const char *home = user && user->pw_dir[0] == '/' ? user->pw_dir : "/";
    const size_t size = strlen(o->home_option) + strlen(home) + 1;
    char **argv, *text = heap_array(size, 1);
    size_t n = 0;

    while (o->argv[n])
        n++;
    argv = heap_array(n + 2, sizeof *argv);
    memcpy(argv, o->argv, n * sizeof *argv);
    snprintf(text, size, "%s%s", o->home_option, home);
    argv[n] = text;
    return argv;
}

/* Everything that only root can do, or that may take its time. Returns the arguments. */
static char *const *be_user(const struct call_order *o, int report)
{
    const struct passwd *user = getpwuid(o->uid);
    char *const *argv = o->home_option ? add_home(o, user) : o->argv;
    int rc;

    if (o->has_login)
        add_login(o, user);
    rc = take_groups(user, o->uid, o->gid);
    if (rc == 0)
        rc = proc_become(o->uid, o->gid);
    if (rc < 0)
        give_up(report, "cannot become the user", NULL, -rc);
    return argv;
}

static _Noreturn void be_command(const struct call_order *o, int fds[4], int report, pid_t parent)
{
    char program[PATH_MAX];
    char *const *argv;

    report = place_fds(fds, report);
    (void)setpgid(0, 0);
    (void)umask(022);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    proc_reset_signals();
    find_program(o, program, sizeof program);
    argv = o->as_user ? be_user(o, report) : o->argv;
    if (chdir("/") != 0)
        give_up(report, "cannot enter", "/", errno);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);    // again: a change of user clears it
    if (getppid() != parent)
        _exit(127);
    execve(program, argv, o->env);
    give_up(report, "cannot run", program, errno);
}

/* ---- in the driver ---- */

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A file without a name that holds 'bytes', at its beginning; -1: none wanted, or errno. */
static int make_extra(const char *bytes, size_t len)
{
    int fd = memfd_create("environment", MFD_CLOEXEC);

    if (fd < 0)
        return -1;
    for (size_t n = 0; n < len;) {
        const ssize_t wrote = write(fd, bytes + n, len - n);

        if (wrote <= 0) {
            close(fd);
            return -1;
        }
        n += (size_t)wrote;
    }
    (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

static void set_nonblocking(int fd)
{
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Four pipes; ends[i][0] is read from. */
static int make_pipes(int ends[4][2])
{
    for (int i = 0; i < 4; i++)
        if (pipe2(ends[i], O_CLOEXEC) != 0)
            return -errno;
    return 0;
}

static void close_all(int ends[4][2], int extra)
{
    for (int i = 0; i < 4; i++) {
        shut(&ends[i][0]);
        shut(&ends[i][1]);
    }
    shut(&extra);
}

static int begin_child(struct slurm_call *c, const struct call_order *o, struct err *e)
{
    int ends[4][2] = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
    const pid_t self = getpid();
    int extra = -1, rc = make_pipes(ends);

    if (rc == 0 && o->extra)
        extra = make_extra(o->extra, o->extra_len);
    if (rc < 0 || (o->extra && extra < 0)) {
        rc = rc < 0 ? rc : -errno;
        close_all(ends, extra);
        return err_set(e, -rc, "%s: cannot make pipes: %s", o->program, strerror(-rc));
    }
    c->pid = fork();
    if (c->pid == 0)
        be_command(o, (int[4]){ ends[0][0], ends[1][1], ends[2][1], extra }, ends[3][1], self);
    rc = -errno;
    c->process = c->pid > 0 ? pidfd_open(c->pid, 0) : -1;
    if (c->pid > 0)
        (void)setpgid(c->pid, c->pid);    // here too: whoever comes first
    c->in = ends[0][1];
    c->out = ends[1][0];
    c->err = ends[2][0];
    c->report = ends[3][0];
    ends[0][1] = ends[1][0] = ends[2][0] = ends[3][0] = -1;
    close_all(ends, extra);
    if (c->pid < 0)
        return err_set(e, -rc, "%s: cannot fork: %s", o->program, strerror(-rc));
    if (c->process < 0)    // no descriptor is left: its end could not be waited for
        return err_set(e, EMFILE, "%s: cannot watch it", o->program);
    return 0;
}

int call_begin(const struct call_order *o, double now_s, struct slurm_call **out, struct err *e)
{
    struct slurm_call *c = heap_array(1, sizeof *c);
    int rc;

    *c = (struct slurm_call){ .process = -1, .in = -1, .out = -1, .err = -1, .report = -1 };
    c->began_s = now_s;
    c->next_s = now_s + o->limit_s;
    c->as_user = o->as_user;
    c->last_words = o->last_words;
    buf_init(&c->output, o->output_max);
    buf_init(&c->errors, CALL_ERRORS_MAX);
    c->input = o->input;
    c->input_len = o->input ? o->input_len : 0;
    rc = begin_child(c, o, e);
    if (rc < 0) {
        call_destroy(c);
        return rc;
    }
    set_nonblocking(c->in);
    set_nonblocking(c->out);
    set_nonblocking(c->err);
    set_nonblocking(c->report);
    *out = c;
    return 0;
}

int call_fds(const struct slurm_call *c, struct pollfd *fds)
{
    const int all[CALL_FDS] = { c->process, c->out, c->err, c->report, c->in };
    int n = 0;

    for (int i = 0; i < CALL_FDS; i++)
        if (all[i] >= 0)
            fds[n++] = (struct pollfd){ all[i], i == CALL_FDS - 1 ? POLLOUT : POLLIN, 0 };
    return n;
}

double call_wake_s(const struct slurm_call *c)
{
    return c->next_s;
}

static void feed(struct slurm_call *c)
{
    while (c->in >= 0 && c->n_written < c->input_len) {
        const ssize_t n = write(c->in, c->input + c->n_written, c->input_len - c->n_written);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0)
            break;
        c->n_written += (size_t)n;
    }
    shut(&c->in);
}

/* All that is there to be read, into 'b'; past its ceiling it is thrown away, and true returned. */
static bool drain(int *fd, struct buf *b)
{
    bool is_full = false;
    char bytes[65536];

    while (*fd >= 0) {
        const ssize_t n = read(*fd, bytes, sizeof bytes);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            break;
        if (n <= 0) {
            shut(fd);
            break;
        }
        if (buf_append(b, bytes, (size_t)n) < 0) {
            (void)buf_append(b, bytes, b->max - b->len);
            is_full = true;
            break;    // a flood must not keep us here
        }
    }
    return is_full;
}

static void drain_all(struct slurm_call *c)
{
    struct buf why;

    c->is_flooded |= drain(&c->out, &c->output);
    (void)drain(&c->err, &c->errors);
    buf_init(&why, sizeof c->why - 1);
    (void)drain(&c->report, &why);
    if (why.len)
        snprintf(c->why, sizeof c->why, "%s", buf_text(&why));
    buf_release(&why);
}

/* Its number is its group's, and stays so until it is waited for. */
static void signal_group(const struct slurm_call *c, int signo)
{
    if (c->pid <= 0 || c->is_over)
        return;
    (void)kill(-c->pid, signo);
    if (signo != SIGKILL)
        (void)kill(-c->pid, SIGCONT);
}

static void enter(struct slurm_call *c, enum call_phase phase, double now_s)
{
    signal_group(c, phase == TERMED ? SIGTERM : SIGKILL);
    c->phase = phase;
    c->next_s = now_s + (phase == TERMED ? CALL_TERM_S : CALL_KILL_S);
}

/* True: the command itself has ended; what it left behind is killed, and 'code' is its own. */
static bool reap(struct slurm_call *c, int *code)
{
    siginfo_t s = { 0 };

    if (waitid(P_PID, (id_t)c->pid, &s, WEXITED | WNOHANG | WNOWAIT) != 0) {
        *code = 0;
        return errno == ECHILD;    // somebody else's doing; never of ours
    }
    if (s.si_pid == 0)
        return false;
    signal_group(c, SIGKILL);
    (void)waitpid(c->pid, code, 0);
    c->is_over = true;
    return true;
}

/* The descriptor for complaints is closed by the command's beginning: while it is open, there is no
 * command yet, but somebody who looks its user up. It cannot begin any more.
 */
static void prevent(struct slurm_call *c, double now_s)
{
    enter(c, KILLED, now_s);
    snprintf(c->why, sizeof c->why, "%s within %.1f s",
             c->as_user ? "cannot become the user: who that is cannot be found out"
                        : "cannot begin",
             now_s - c->began_s);
}

/* At once: what it waits for must not come in between. */
static void hear_last_words(struct slurm_call *c, double now_s)
{
    for (const char *const *w = c->last_words; w && *w && c->phase == RUNS; w++) {
        if (!strstr(buf_text(&c->errors), *w))
            continue;
        enter(c, KILLED, now_s);
        c->is_hopeless = true;
    }
}

static void move_on(struct slurm_call *c, double now_s)
{
    hear_last_words(c, now_s);
    if (c->phase == RUNS && now_s >= c->next_s && c->report >= 0) {
        prevent(c, now_s);
    } else if (c->phase == RUNS && (now_s >= c->next_s || c->is_flooded)) {
        enter(c, TERMED, now_s);
    } else if (c->phase == TERMED && now_s >= c->next_s) {
        enter(c, KILLED, now_s);
    }
}

static struct call_result result_of(struct slurm_call *c, int code, double now_s)
{
    struct call_result r = { .out_len = c->output.len, .took_s = now_s - c->began_s };

    (void)buf_append(&c->output, "", 0);    // there is something to point at
    r.out = c->output.data;
    r.errors = c->why[0] ? c->why : buf_text(&c->errors);
    if (c->why[0])
        r.end = CALL_NOT_BEGUN;
    else if (c->is_flooded)
        r.end = CALL_FLOODED;
    else if (c->is_hopeless)
        r.end = CALL_HOPELESS;
    else if (c->phase != RUNS)
        r.end = CALL_LATE;
    else
        r.end = WIFSIGNALED(code) ? CALL_KILLED : CALL_EXITED;
    if (r.end == CALL_KILLED)
        r.status = WTERMSIG(code);
    else if (r.end == CALL_EXITED)
        r.status = WEXITSTATUS(code);
    return r;
}

bool call_go_on(struct slurm_call *c, double now_s, struct call_result *out)
{
    int code = 0;
    bool is_over;

    feed(c);
    drain_all(c);
    is_over = reap(c, &code);
    if (is_over)
        drain_all(c);    // what it wrote last
    else
        move_on(c, now_s);
    if (!is_over && (c->phase != KILLED || now_s < c->next_s))
        return false;
    *out = result_of(c, code, now_s);
    return true;
}

void call_destroy(struct slurm_call *c)
{
    if (!c)
        return;
    if (c->pid > 0 && !c->is_over) {
        signal_group(c, SIGKILL);
        (void)waitpid(c->pid, NULL, WNOHANG);
    }
    shut(&c->process);
    shut(&c->in);
    shut(&c->out);
    shut(&c->err);
    shut(&c->report);
    buf_release(&c->output);
    buf_release(&c->errors);
    free(c);
}
