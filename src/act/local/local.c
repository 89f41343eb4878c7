#include "act/local/local.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/capability.h>

#include "act/gpu/devices.h"
#include "act/local/command.h"
#include "act/local/inner.h"
#include "act/local/proc.h"
#include "base/err.h"
#include "base/grow.h"
#include "catalog/cluster/engine.h"
#include "catalog/cluster/state.h"

/* ---- orders ---- */

static int check_place(const struct local *l, const struct placement *p, struct err *e)
{
    int rc = order_check(l->setup.state, p, e);

    for (int i = 0; i < p->n_gpus && rc == 0; i++)
        if (l->setup.state->gpus[p->gpus[i]].node != l->setup.node)
            rc = err_set(e, ENODEV, "GPU %d is of another machine", p->gpus[i]);
    return rc;
}

/* The same GPUs under another limit: nothing is restarted. */
static int relimit(struct local *l, struct run *r, int limit_w, struct err *e)
{
    const struct gpu_set at = { .gpus = r->at.gpus, .n_gpus = r->at.n_gpus, .limit_w = limit_w };
    int rc;

    if (r->at.limit_w == limit_w)
        return 0;
    rc = limit_check(l, &at, e);
    if (rc == 0)
        limit_ask(l, r, &at, true);
    return rc;
}

static bool is_there(const struct run *r, const struct placement *p)
{
    if (r->phase == RUN_PENDING)
        return gpu_set_is(&r->next, p->gpus, p->n_gpus);
    return (r->phase == RUN_WANTED || r->phase == RUN_RUNNING) &&
           gpu_set_is(&r->at, p->gpus, p->n_gpus);
}

static int order_start(void *self, const struct placement *p, struct err *e)
{
    struct local *l = self;
    int rc = check_place(l, p, e);
    struct run *r;

    if (rc < 0)
        return rc;
    r = run_get(l, p->job);
    if (r->phase == RUN_ENDED && r->is_unheard) {
        run_tell_late(l, r, p);
        return 0;
    }
    if (r->phase == RUN_ENDED)
        return run_place(l, r, p, e);
    if (r->phase == RUN_LEAVING)
        return err_set(e, EBUSY, "job %d is still being stopped", p->job);
    if (!is_there(r, p))
        return err_set(e, EBUSY, "job %d runs elsewhere: move it", p->job);
    return r->phase == RUN_PENDING ? 0 : relimit(l, r, p->limit_w, e);
}

/* The run that an order to end is about; NULL: there is none, or not any more. */
static int find_to_end(const struct local *l, int job, struct run **out, struct err *e)
{
    int rc = order_check_job(l->setup.state, job, e);

    *out = rc == 0 ? run_find(l, job) : NULL;
    if (*out && (*out)->phase == RUN_ENDED)
        *out = NULL;
    return rc;
}

static int order_stop(void *self, int job, struct err *e)
{
    struct local *l = self;
    struct run *r;
    int rc = find_to_end(l, job, &r, e);

    if (rc < 0 || !r)
        return rc;
    if (r->phase == RUN_PENDING)
        run_drop(l, r, "stopped as planned");
    else if (r->phase != RUN_LEAVING || r->wish == WISH_MOVE)
        run_leave(l, r, WISH_STOP);
    return 0;
}

static int order_move(void *self, const struct placement *p, struct err *e)
{
    struct local *l = self;
    int rc = check_place(l, p, e);
    struct run *r;

    if (rc < 0)
        return rc;
    r = run_find(l, p->job);
    if (!r || r->phase == RUN_ENDED)
        return err_set(e, EBUSY, "job %d does not run: start it", p->job);
    if (r->phase == RUN_LEAVING && r->wish != WISH_MOVE)
        return err_set(e, EBUSY, "job %d is still being stopped", p->job);
    if (r->phase != RUN_PENDING && is_there(r, p))
        return relimit(l, r, p->limit_w, e);
    gpu_set_copy(&r->next, p->gpus, p->n_gpus);
    r->next.limit_w = p->limit_w;
    l->n_busy = -1;
    if (r->phase == RUN_PENDING)
        run_try_pending(l);
    else
        run_leave(l, r, WISH_MOVE);
    return 0;
}

static int order_cancel(void *self, int job, struct err *e)
{
    struct local *l = self;
    struct run *r;
    int rc = find_to_end(l, job, &r, e);

    if (rc < 0 || !r)
        return rc;
    if (r->phase == RUN_PENDING) {
        run_drop(l, r, NULL);
        dir_leave_all(l, job, r->number);
    } else {
        run_leave(l, r, WISH_CANCEL);
    }
    return 0;
}

/* It has begun, and the state has not heard of it: it is neither to be placed nor to be moved. */
static bool is_unheard_of(const struct local *l, const struct run *r)
{
    const struct job *j = l->setup.state->jobs[r->job];

    return r->phase == RUN_RUNNING && notices_first(&l->notices) &&
           (j->state == JOB_WAITING ||
            (j->state == JOB_RUNNING && !gpu_set_is(&r->at, j->gpus, j->n_held)));
}

static bool job_is_busy(void *self, int job)
{
    const struct local *l = self;
    const struct run *r = run_find(l, job);

    return r && (r->phase == RUN_PENDING || r->phase == RUN_WANTED || r->phase == RUN_LEAVING ||
                 limit_n_awaited(l, job) > 0 || is_unheard_of(l, r));
}

static void mark_busy(struct local *l, const struct gpu_set *at)
{
    for (int i = 0; i < at->n_gpus; i++)
        l->busy[at->gpus[i]] = true;
}

/* All GPUs at once, since whoever asks asks of each; anew after something has changed. */
static void find_busy(struct local *l)
{
    const int n = l->setup.state->n_gpus;

    free(l->busy);
    l->busy = heap_array((size_t)n, sizeof *l->busy);
    l->n_busy = n;
    for (int i = 0; i < l->n_active; i++) {
        const struct run *r = l->active[i];

        if (r->phase == RUN_LEAVING || r->phase == RUN_WANTED || is_unheard_of(l, r))
            mark_busy(l, &r->at);
        if (r->phase == RUN_PENDING || (r->phase == RUN_LEAVING && r->wish == WISH_MOVE))
            mark_busy(l, &r->next);
    }
}

static bool gpu_is_busy(void *self, int gpu)
{
    struct local *l = self;

    if (l->n_phase[RUN_PENDING] + l->n_phase[RUN_WANTED] + l->n_phase[RUN_LEAVING] == 0 &&
        !notices_first(&l->notices))
        return false;
    if (l->n_busy != l->setup.state->n_gpus)
        find_busy(l);
    return l->busy[gpu];
}

/* This box has what it has; nothing runs elsewhere. Is there an elsewhere? */
static bool find_budgets(const struct local *l, struct engine_node *nodes, unsigned char *barred)
{
    bool has_others = false;

    for (int n = 0; n < l->setup.state->n_nodes; n++) {
        nodes[n] = (struct engine_node){ LONG_MAX, LONG_MAX };
        barred[n] = n == l->setup.node ? ENGINE_CAN : ENGINE_NODE;
        has_others |= n != l->setup.node && l->setup.state->nodes[n].state == NODE_UP;
    }
    if (l->setup.node >= 0)
        nodes[l->setup.node] =
            (struct engine_node){ sysconf(_SC_NPROCESSORS_ONLN),
                                  sysconf(_SC_PHYS_PAGES) / 1024 * (sysconf(_SC_PAGESIZE) / 1024) };
    return has_others;
}

static bool find_unlimited(const struct local *l, bool *unlimited)
{
    bool is_any = false;

    for (int g = 0; g < l->setup.state->n_gpus; g++) {
        const struct gpu *gpu = &l->setup.state->gpus[g];

        unlimited[g] =
            gpu->node == l->setup.node && gpu->slot < l->n_slots && l->cannot_limit[gpu->slot];
        is_any |= unlimited[g];
    }
    return is_any;
}

static bool rules(void *self, struct arena *a, const int *jobs, int n_jobs,
                  struct engine_rules *out)
{
    const struct local *l = self;
    const size_t n_nodes = (size_t)l->setup.state->n_nodes;
    struct engine_job *needs = ARENA_ARRAY(a, struct engine_job, (size_t)n_jobs);
    struct engine_node *nodes = ARENA_ARRAY(a, struct engine_node, n_nodes);
    unsigned char *barred = ARENA_ARRAY(a, unsigned char, n_nodes);
    bool *unlimited = ARENA_ARRAY(a, bool, (size_t)l->setup.state->n_gpus);
    bool has_needs = false, has_others = find_budgets(l, nodes, barred);

    for (int i = 0; i < n_jobs; i++) {
        needs[i] = command_needs(a, l->setup.state->jobs[jobs[i]]->spec.command);
        needs[i].barred = has_others ? barred : NULL;
        has_needs |= needs[i].cpus > 0 || needs[i].mem_mib > 0;
    }
    *out = (struct engine_rules){ .nodes = has_needs ? nodes : NULL, .jobs = needs };
    if (find_unlimited(l, unlimited))
        out->unlimited = unlimited;
    return has_needs || has_others || out->unlimited;
}

int local_n_under_way(const struct local *l)
{
    return l->n_phase[RUN_PENDING] + l->n_phase[RUN_WANTED] + l->n_phase[RUN_LEAVING] +
           limit_n_awaited(l, -1);
}

/* ---- notices ---- */

static bool is_end(const struct run_notice *n)
{
    return n->kind == NOTICE_FINISHED || n->kind == NOTICE_FAILED;
}

/* Held or cancelled since it was ordered to start: then it is not to run, and nobody hears of it.
 * That it has ended for good is heard when a held one is placed again.
 */
static bool is_unwanted(struct local *l, const struct run_notice *n)
{
    const struct job *j = l->setup.state->jobs[n->job];
    const bool is_held = j->state == JOB_HELD;
    struct run *r = run_find(l, n->job);

    if (job_may_run(j))
        return false;
    if (r)
        r->is_told = false;
    if (r && n->kind == NOTICE_STARTED && r->number == n->run && r->phase != RUN_ENDED)
        run_leave(l, r, is_held ? WISH_STOP : WISH_CANCEL);
    if (r && is_end(n) && is_held) {
        r->is_unheard = true;
        r->n_failures -= n->kind == NOTICE_FAILED;    // counted when it is told
    }
    return true;
}

static void notice_done(void *self)
{
    struct local *l = self;
    const struct run_notice *n = notices_first(&l->notices);
    const struct run *r = run_find(l, n->job);

    if (n->kind != NOTICE_STARTED && !(r && r->is_unheard))
        dir_mark_later(l, n->job, n->run, is_end(n));
    notices_drop(&l->notices);
    l->n_busy = -1;
}

static int next_notice(void *self, struct run_notice *out)
{
    struct local *l = self;
    const struct run_notice *n;

    while ((n = notices_first(&l->notices))) {
        *out = *n;
        if (!is_unwanted(l, out))
            return 1;
        notice_done(l);
    }
    return 0;
}

static void committed(void *self)
{
    struct local *l = self;

    for (int i = 0; i < l->n_ends; i++) {
        const struct run_end *h = &l->ends[i];

        dir_mark_told(l, h->job, h->number);
        if (h->is_last)
            dir_leave_all(l, h->job, h->number);
    }
    l->n_ends = 0;
}

static void on_news(void *self, void (*f)(void *to), void *to)
{
    struct local *l = self;

    notices_listen(&l->notices, f, to);
}

/* ---- life ---- */

static int make_run_dir(const struct local *l, struct err *e)
{
    struct stat st;

    if (mkdir(l->run_dir, 0711) != 0 && errno != EEXIST)
        return err_set(e, errno, "%s: cannot make the run directory: %s", l->run_dir,
                       strerror(errno));
    if (stat(l->run_dir, &st) != 0 || !S_ISDIR(st.st_mode))
        return err_set(e, ENOTDIR, "%s: not a directory; name one in run_dir", l->run_dir);
    if ((st.st_mode & 022) || (st.st_uid != geteuid() && st.st_uid != 0))
        return err_set(e, EPERM,
                       "%s: others may write to it; chown it to the daemon, chmod go-w it",
                       l->run_dir);
    if (access(l->run_dir, W_OK | X_OK) != 0)
        return err_set(e, errno, "%s: cannot write to it: %s", l->run_dir, strerror(errno));
    return 0;
}

static struct local *local_make(const struct local_setup *s)
{
    struct local *l = heap_array(1, sizeof *l);

    *l = (struct local){
        .setup = *s, .notice_fd = -1, .mps_fd = -1, .limit_due_s = (double)INFINITY
    };
    l->run_dir = s->run_dir[0] == '/' ? heap_text(s->run_dir) : realpath(s->run_dir, NULL);
    l->run_dir = l->run_dir ? l->run_dir : heap_text(s->run_dir);
    l->n_slots = s->devices ? devices_n(s->devices) : 0;
    l->limit_w = heap_array((size_t)l->n_slots, sizeof *l->limit_w);
    l->cannot_limit = heap_array((size_t)l->n_slots, sizeof *l->cannot_limit);
    for (int i = 0; i < l->n_slots; i++)
        l->limit_w[i] = -1;
    arena_init(&l->scratch);
    proc_boot_id(l->boot);
    notices_init(&l->notices, l->setup.loop, "notices of runs");
    loop_timer_init(&l->sweep, l->setup.loop, "sweep of runs", run_on_sweep, l);
    loop_timer_init(&l->more, l->setup.loop, "starts of runs", run_on_more, l);
    return l;
}

int local_create(const struct local_setup *s, struct local **out, struct err *e)
{
    struct local *l;
    int rc;

    *out = NULL;
    l = local_make(s);
    rc = make_run_dir(l, e);
    if (rc == 0 && access(l->setup.keeper, X_OK) != 0)
        rc = err_set(e, errno, "%s: not a program that can be run: %s", l->setup.keeper,
                     strerror(errno));
    if (rc == 0)
        rc = dir_listen(l, e);
    if (rc == 0)
        rc = dir_adopt_all(l, e);
    if (rc < 0) {
        local_destroy(l);
        return rc;
    }
    mps_start(l);
    run_on_sweep(l);
    *out = l;
    return 0;
}

void local_destroy(struct local *l)
{
    if (!l)
        return;
    loop_timer_clear(&l->sweep);
    loop_timer_clear(&l->more);
    while (l->keepers)
        keeper_free(l->keepers);
    mps_release(l);
    limit_release(l);
    start_release(l);
    if (l->notice_fd >= 0) {
        loop_unwatch(l->setup.loop, l->notice_fd);
        close(l->notice_fd);
    }
    notices_release(&l->notices);
    for (int i = 0; i < l->n_runs; i++)
        if (l->runs[i])
            run_free(l, l->runs[i]);
    map_u64_release(&l->by_job);
    arena_release(&l->scratch);
    free(l->runs);
    free(l->active);
    free(l->ends);
    free(l->old_dirs);
    free(l->busy);
    free(l->limit_w);
    free(l->cannot_limit);
    free(l->run_dir);
    free(l);
}

static void set_grace(void *self, double grace_s)
{
    struct local *l = self;

    l->setup.grace_s = grace_s;
}

static void close_it(void *self)
{
    local_destroy(self);
}

/* ---- questions ---- */

static unsigned long long effective_capabilities(void)
{
    FILE *f = fopen("/proc/self/status", "re");
    unsigned long long caps = 0;
    char line[256];

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "CapEff:", 7) == 0)
            caps = strtoull(line + 7, NULL, 16);
    if (f)
        fclose(f);
    return caps;
}

int local_may_run_as(uid_t uid, struct err *e)
{
    const unsigned long long need = 1ULL << CAP_SETUID | 1ULL << CAP_SETGID | 1ULL << CAP_KILL;

    if (uid == geteuid() || (effective_capabilities() & need) == need)
        return 0;
    return err_set(e, EPERM,
                   "the daemon is user %u and may not start processes of user %u; start it as "
                   "root, or with the capabilities SETUID, SETGID and KILL",
                   (unsigned)geteuid(), (unsigned)uid);
}

static bool find_run(void *self, int job, struct run_info *out)
{
    const struct run *r = run_find(self, job);

    if (!r || r->number < 0)
        return false;
    *out = (struct run_info){ .run = r->number,
                              .is_there = r->pid != 0,
                              .pid = r->pid,
                              .dir = r->dir,
                              .out = r->out,
                              .err = r->err,
                              .secret = r->secret,
                              .n_failures = r->n_failures };
    return true;
}

/* Plans with limits that nobody can set would be refused again and again. */
static bool take_limits(const struct local *l)
{
    bool do_all = l->n_slots > 0;

    for (int i = 0; i < l->n_slots; i++)
        do_all = do_all && isfinite(devices_get(l->setup.devices, i)->limit_low_w);
    return do_all;
}

struct executor local_executor(struct local *l)
{
    return (struct executor){
        .self = l,
        .start = order_start,
        .stop = order_stop,
        .move = order_move,
        .cancel = order_cancel,
        .job_is_busy = job_is_busy,
        .gpu_is_busy = gpu_is_busy,
        .rules = rules,
        .committed = committed,
        .next = next_notice,
        .done = notice_done,
        .on_news = on_news,
        .find = find_run,
        .may_run_as = local_may_run_as,
        .set_grace = set_grace,
        .close = close_it,
        .takes_limits = take_limits(l),
        .may_sleep = true,
        .node = l->setup.node,
        .devices = l->setup.devices,
    };
}
