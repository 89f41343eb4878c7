/* CUDA MPS, which lets the kernels of two jobs on one GPU run at once: its control daemon is
 * started where it is installed, and jobs are told where its pipe is. Without it they take turns.
 */
#include "act/local/inner.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "act/gpu/devices.h"
#include "act/local/proc.h"
#include "base/err.h"
#include "base/log.h"
#include "base/text/text.h"

#define PROGRAM "nvidia-cuda-mps-control"

static bool has_nvidia(const struct local *l)
{
    for (int i = 0; l->setup.devices && i < devices_n(l->setup.devices); i++)
        if (devices_get(l->setup.devices, i)->maker == DEVICE_NVIDIA)
            return true;
    return false;
}

/* Left running by a daemon before us: its pid is in a file beside its pipe. */
static bool runs_already(struct local *l)
{
    const char *path = arena_printf(&l->scratch, "%s/mps/pipe/" PROGRAM ".pid", l->run_dir);
    FILE *f = fopen(path, "re");
    char line[32] = "";
    long pid = 0;

    if (!f)
        return false;
    bool is_read = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    const struct slice word = { .at = line, .len = strcspn(line, " \n") };
    return is_read && text_to_long(word, 1, INT_MAX, &pid) == 0 &&
           (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static void tell(const struct local *l)
{
    if (l->setup.on_mps)
        l->setup.on_mps(l->setup.mps_self, l->has_mps);
}

static void on_exit_of_starter(void *self, int fd, unsigned ready)
{
    struct local *l = self;
    siginfo_t s = { 0 };

    (void)ready;
    (void)waitid(P_PIDFD, (id_t)fd, &s, WEXITED | WNOHANG);
    mps_release(l);
    l->has_mps = s.si_code == CLD_EXITED && s.si_status == 0;
    if (!l->has_mps)
        log_warn(PROGRAM " -d failed (%s %d); jobs that share a GPU take turns",
                 s.si_code == CLD_EXITED ? "exit" : "signal", s.si_status);
    tell(l);
}

static pid_t spawn(struct local *l)
{
    char *const argv[] = { PROGRAM, "-d", NULL };
    char *const env[] = {
        arena_printf(&l->scratch, "CUDA_MPS_PIPE_DIRECTORY=%s/mps/pipe", l->run_dir),
        arena_printf(&l->scratch, "CUDA_MPS_LOG_DIRECTORY=%s/mps/log", l->run_dir),
        arena_printf(&l->scratch, "PATH=%s", getenv("PATH") ? getenv("PATH") : ""), NULL
    };

    return proc_spawn(&(struct proc_spawn){
        .program = PROGRAM, .is_searched = true, .argv = argv, .env = env, .fd = -1 });
}

void mps_start(struct local *l)
{
    struct err e = { 0 };
    pid_t pid;

    if (!l->setup.uses_mps || !has_nvidia(l))
        return;
    l->has_mps = runs_already(l);
    if (l->has_mps) {
        tell(l);
        return;
    }
    (void)mkdir(arena_printf(&l->scratch, "%s/mps", l->run_dir), 0711);
    (void)mkdir(arena_printf(&l->scratch, "%s/mps/pipe", l->run_dir), 0755);
    (void)mkdir(arena_printf(&l->scratch, "%s/mps/log", l->run_dir), 0755);
    pid = spawn(l);
    if (pid == -ENOENT)
        log_info(PROGRAM " is not installed; jobs that share a GPU take turns");
    else if (pid < 0)
        log_warn(PROGRAM ": %s; jobs that share a GPU take turns", strerror(-pid));
    if (pid < 0) {
        tell(l);
        return;
    }
    l->mps_fd = pidfd_open(pid, 0);
    const int rc = l->mps_fd < 0 ? err_set(&e, errno, "%s", strerror(errno))
                                 : loop_watch(l->setup.loop, l->mps_fd, LOOP_READ, PROGRAM,
                                              on_exit_of_starter, l, &e);
    if (rc == 0)
        return;
    log_warn(PROGRAM ": cannot wait for it: %s; jobs that share a GPU take turns", e.text);
    mps_release(l);
    tell(l);
}

void mps_release(struct local *l)
{
    if (l->mps_fd < 0)
        return;
    loop_unwatch(l->setup.loop, l->mps_fd);
    close(l->mps_fd);
    l->mps_fd = -1;
}
