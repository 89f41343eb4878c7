#include "act/local/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "base/text/text.h"

static ssize_t slurp(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = read(fd, to, size - 1);
    close(fd);
    if (n >= 0)
        to[n] = '\0';
    return n;
}

/* The next number of a line of them; '*at' becomes NULL where there is none. */
static uint64_t next_field(const char **at)
{
    char *end = NULL;
    uint64_t value =
        *at ? strtoull(*at, &end, 10) : 0;    // a number below 0 wraps, and none counts

    *at = end != *at ? end : NULL;
    return value;
}

/* "PID (name) S parent group session ... start ...": the name may hold anything, so what counts
 * begins after the last ')'. The start time is the 22nd field (proc(5)).
 */
int proc_read(pid_t pid, struct proc *out)
{
    char path[40], text[1024];
    const char *at;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (slurp(path, text, sizeof text) <= 0)
        return -ESRCH;
    at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == '\0')
        return -ESRCH;
    *out = (struct proc){ .pid = pid, .state = at[2] };
    at += 3;
    out->parent = (pid_t)next_field(&at);
    out->group = (pid_t)next_field(&at);
    out->session = (pid_t)next_field(&at);
    for (int field = 7; field < 22; field++)
        next_field(&at);
    out->start = next_field(&at);
    return at ? 0 : -ESRCH;
}

void proc_boot_id(char out[BOOT_ID_SIZE])
{
    char text[64];

    memset(out, 0, BOOT_ID_SIZE);
    if (slurp("/proc/sys/kernel/random/boot_id", text, sizeof text) >= BOOT_ID_SIZE - 1)
        memcpy(out, text, BOOT_ID_SIZE - 1);
}

int proc_open(pid_t pid, uint64_t start)
{
    struct proc p;
    int fd;

    if (pid <= 0)
        return -ESRCH;
    fd = pidfd_open(pid, 0);
    if (fd < 0)
        return -errno;
    if (proc_read(pid, &p) == 0 && p.start == start)
        return fd;
    close(fd);
    return -ESRCH;
}

int proc_signal(pid_t pid, uint64_t start, int signo)
{
    int fd = proc_open(pid, start);
    int rc;

    if (fd < 0)
        return fd;
    rc = pidfd_send_signal(fd, signo, NULL, 0) == 0 ? 0 : -errno;
    close(fd);
    return rc;
}

static bool has_entry(pid_t pid, uid_t uid, const char *entry)
{
    char path[40], *text = NULL;
    struct stat st;
    size_t size = 0;
    bool is_found = false;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    f = fopen(path, "re");
    if (f && fstat(fileno(f), &st) == 0 && st.st_uid == uid)
        while (!is_found && getdelim(&text, &size, '\0', f) > 0)
            is_found = strcmp(text, entry) == 0;
    free(text);
    if (f)
        fclose(f);
    return is_found;
}

/* The number of a session is not given to a new process while any member lives: if its leader is
 * somebody else now, there is none.
 */
int proc_kill_left(pid_t leader, uint64_t start, uid_t uid, const char *entry)
{
    struct proc p;
    const bool is_gone = leader <= 0 || (proc_read(leader, &p) == 0 && p.start != start);
    DIR *d = opendir("/proc");
    struct dirent *at;
    int n = 0;

    if (!d)
        return 0;
    while ((at = readdir(d)) != NULL) {
        long pid = 0;

        if (text_to_long(slice_of(at->d_name), 1, INT_MAX, &pid) < 0 || pid == (long)getpid() ||
            proc_read((pid_t)pid, &p) < 0 || p.state == 'Z')
            continue;
        if ((is_gone || p.session != leader) && !has_entry(p.pid, uid, entry))
            continue;
        (void)proc_signal(p.pid, p.start, SIGKILL);
        n++;
    }
    closedir(d);
    return n;
}

/* And look whether they are gone. */
static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct none[2] = { { 0 } }, left[2] = { { 0 } };

    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &head, none) != 0 || syscall(SYS_capget, &head, left) != 0 ||
        left[0].effective || left[0].permitted || left[1].effective || left[1].permitted)
        return -EPERM;
    return 0;
}

int proc_become(uid_t uid, gid_t gid)
{
    uid_t r = 0, s = 0, f = 0;
    gid_t gr = 0, gs = 0, gf = 0;

    if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return -errno;
    if (getresuid(&r, &f, &s) != 0 || r != uid || f != uid || s != uid)
        return -EPERM;
    if (getresgid(&gr, &gf, &gs) != 0 || gr != gid || gf != gid || gs != gid)
        return -EPERM;
    if (uid == 0)
        return 0;
    return drop_capabilities() < 0 || setuid(0) == 0 ? -EPERM : 0;
}

void proc_reset_signals(void)
{
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        (void)signal(i, SIG_DFL);    // those that cannot be are already
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void proc_settle_fds(void)
{
    (void)close_range(3, ~0U, 0);
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            exit(1);
}

/* ---- others ---- */

static void place_fds(posix_spawn_file_actions_t *files, int fd)
{
    posix_spawn_file_actions_init(files);
    if (fd >= 0) {
        posix_spawn_file_actions_adddup2(files, fd, 0);
        posix_spawn_file_actions_adddup2(files, 0, 1);
    } else {
        posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(files, 1, 2);
    }
    posix_spawn_file_actions_addclosefrom_np(files, 3);
}

pid_t proc_spawn(const struct proc_spawn *p)
{
    const int flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t all, none;
    pid_t pid;
    int rc;

    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_init(&how);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setsigmask(&how, p->blocked ? p->blocked : &none);
    posix_spawnattr_setflags(&how, (short)(p->fd < 0 ? flags | POSIX_SPAWN_SETSID : flags));
    place_fds(&files, p->fd);
    rc = p->is_searched ? posix_spawnp(&pid, p->program, &files, &how, p->argv, p->env)
                        : posix_spawn(&pid, p->program, &files, &how, p->argv, p->env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return rc == 0 ? pid : -rc;
}

void proc_kill_children(void)
{
    char path[60], word[24];
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    f = fopen(path, "re");
    if (!f)
        return;
    while (fscanf(f, "%20s", word) == 1) {
        char *end;
        const long pid = strtol(word, &end, 10);

        if (pid > 1 && !*end)
            (void)kill((pid_t)pid, SIGKILL);
    }
    fclose(f);
}
