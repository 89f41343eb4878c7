/* inner.h - the Slurm executor's state, for the files here that change it. */
#ifndef ACT_SLURM_INNER_H
#define ACT_SLURM_INNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "act/runs.h"
#include "act/slurm/slurm.h"
#include "act/slurm/link.h"
#include "act/slurm/state.h"
#include "act/slurm/view.h"
#include "base/arena.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/text/text.h"

/* Why a job counts as cancelled whom nobody has cancelled. */
#define REASON_LOST "Slurm does not know it any more"
#define REASON_TAKEN "moved to another partition of Slurm's"

/* A hold by somebody with Slurm's commands. */
enum user_hold {
    USER_HOLDS_NOT,
    USER_HELD_RUN,    // while it ran: counts once it is put back
    USER_HOLDS,
    USER_HOLD_KNOWN    // and the state has it so
};

/* What 'devices' says of a run. */
enum device_lookup { LOOKUP_NONE, LOOKUP_ASKED, LOOKUP_DONE };

/* A job in our charge: what Slurm has of it, and what it is to have. Times are on the stopwatch. */
struct managed {
    int job;
    enum managed_state state;    // changed by managed_update() alone
    struct gpu_set at, next;     // where it is; where it was ordered to, and is not pinned yet

    /* Of the command. */
    uid_t uid;    // NO_UID: not known
    int checkpoint_signal, retries;
    double grace_s;    // NaN: not said

    /* Slurm's job. */
    const struct slurm_job *now;    // in the last view, while active; NULL: not there
    struct slurm_job last;    // as last seen: without its texts, which live as long as the view
    char number[48];          // as requests name it: "12", or "12_3" of an array's task
    char *out;
    char *gres;            // that it asks for; NULL: nothing
    char *gate_request;    // of the gate: " gres=gpu:2 nodes=1", kept in our notes; NULL: none
    double first_s;        // of the first view with it; NaN: none yet
    double seen_s;         // and of the last; NaN: this daemon has not seen it
    double absent_s;       // of the first view without it; NaN: it was there
    double pending_s;      // since when it is seen pending; NaN: not
    double away_s;         // before this daemon, nobody had looked after it for so long; NaN: new
    enum user_hold hold;
    long old_id;            // Slurm's job that it was, and that is not to run again; 0: none
    double old_submit_s;    // when that was submitted

    /* Requests. */
    uint64_t seq;       // the last about it: views that were asked for earlier say nothing of it
    double doubt_s;     // when one was not answered; NaN: none
    double again_s;     // nothing more is asked of Slurm before
    double due_s;       // when patience, or the grace to save, ends
    double pinned_s;    // when Slurm had taken the last pin
    int pin_run;        // what the run was then
    char *pin_gres;     // and what was asked for; NULL: never pinned
    int asked_run;      // that was told to end: how it does so is no matter; -1: none
    int stuck_run;      // that Slurm does not put back; -1: none
    enum device_lookup lookup;    // where 'lookup_run' is: 'lookup_gpus'
    int lookup_run;
    struct gpu_set lookup_gpus;

    /* What keeps it from running. */
    struct gpu_set shunned;    // nodes that may take it for one they have: not there
    int n_shunned;             // orders that were refused for that
    char *why;                 // as Slurm said; NULL
    double pause_s;            // how long it pauses when Slurm does not want it; doubled each time
    double paused_s;           // until then; 0: it does not
    int n_shut;                // times that Slurm did not start it, for a reason of its nodes
    double wait_s;             // since when others are in the way of its start; NaN: none

    /* What was told. */
    int n_notices;    // of it that nobody has taken off
    int told_run;     // the last run whose start was told; -1
    double told_s;    // wall time of the last notice
    int n_failures;
    int failed_run;    // the last that was counted there; -1

    bool is_told_running;     // the state, once it has heard all notices, has it running
    bool is_in_flight;        // a request about it has not been answered
    bool is_logged;           // what is wrong was
    bool has_token;           // its admin comment names us
    bool is_noteless;         // Slurm refuses notes about it
    bool has_old;             // the old one, or another with its token, is still there
    bool is_old_cancelled;    // by us

    int active;    // index in slurm.active; -1
};

#define NO_UID ((uid_t)-1)

/* Verbs that take several jobs: those of a turn go in one request. */
enum batch_kind { BATCH_HOLD, BATCH_REQUEUE, BATCH_SIGNAL, BATCH_CANCEL, BATCH_DEVICES, BATCHES };

struct buf;
struct command;
struct engine_rules;
struct job;
struct slurm_request;
struct wire_message;

/* A job that is not ours to run: held, and its admin comment says why. */
struct refusal {
    char number[48];
    uid_t uid;
    char *why;
    bool needs_hold, is_sent, is_done;
};

/* A node of the view with what follows from it. */
struct node_seen {
    const struct slurm_slot *slots;
    int n_slots;
};

struct slurm {
    struct slurm_setup setup;
    struct link *link;
    bool is_up;
    char why_down[200];
    char version[40];
    bool can_move_typed;
    double min_job_age_s, boot_s;

    int n_safe;               // jobs of the state that are on disk: only these are managed
    struct map_u64 by_job;    // to indices of 'managed'
    struct managed **managed;
    int n_managed, cap_managed;
    struct managed **active;    // those that a view may change
    int n_active, cap_active;
    struct {
        struct managed **jobs;
        int n, cap;
    } batch[BATCHES];    // of this turn
    int n_changing;      // pins in flight
    int n_submitting;    // submissions
    int n_noting;        // notes in flight
    int n_noted;         // sent since the last view
    struct refusal *refusals;
    int n_refusals, cap_refusals;
    struct map_u64 refused;                            // who ever was
    struct map by_number;                              // users' jobs by the number in their key
    struct slurm_request *requests, **last_request;    // that are not answered
    struct map_u64 strays;                             // Slurm jobs that were counted as such
    double stray_s;    // stopwatch, of the last request to cancel some

    /* Views: the parts that are being collected, and those that count. */
    struct loop_timer look, pass;
    bool is_looking, has_view, wants_nodes, is_node_failed, is_node_partial;
    char **unread;    // (n_unread) numbers of jobs whose lines could not be read
    int n_unread, cap_unread;
    char trouble[200];    // that was logged last
    char why_nodes[200];
    bool is_believing;    // the view has just come
    uint64_t view_seq;    // of the 'jobs' request that made the view
    int n_since_nodes, n_since_hello, n_soon;
    struct arena job_arena[2], node_arena[2];
    int job_side, node_side;     // the arenas that are being filled
    struct slurm_view coming;    // and what is in them
    int cap_jobs, cap_others, cap_nodes;
    bool has_nodes;    // the last round's nodes are complete
    struct slurm_view view;
    struct managed **managed_of;    // (view.n_jobs) whose each is; NULL: not ours
    struct node_seen *seen;         // (view.n_nodes)
    int *view_node;                 // (n_view_node) by node of the state: index in the view; -1
    int n_view_node;
    struct newcomers *newcomers;

    struct notices notices;
    struct engine_change *changes;    // by users; likewise
    int n_changes, cap_changes, first_change;
    bool has_hold;    // a hold was taken off, and is not known to be in the state yet

    bool *busy;        // (n_busy) see nodes_gpu_is_busy
    int n_busy;        // -1: to be found anew
    bool *was_busy;    // (n_was_busy) at the last view
    int n_was_busy;
    double *shut_s;    // (n_shut) by GPU, stopwatch: nothing starts there before
    int n_shut;
    double *idle_s;    // (n_idle) by node of the state, stopwatch: without work since; NaN: not
    int n_idle;
    double power_s, wake_s;    // stopwatch, of the last orders to sleep and to wake
    double reborn_s;           // stopwatch: slurmctld was found to be a new one, or back
    double gone_s;             // stopwatch: since when too many jobs are missing; NaN: they are not

    uint64_t calls_before, late_before;    // of drivers that are gone
    uint64_t n_calls, n_late, n_views, n_resubmits, n_strays;
    double skew_s;                        // tests let time pass with this
    char secret[RUN_SECRET_BYTES + 1];    // last told
    struct arena scratch, names;          // of a turn; of the process
};

/* slurm.c */
double slurm_now_s(const struct slurm *x);    // on the stopwatch
double slurm_wall_s(const struct slurm *x);
void slurm_pass_soon(struct slurm *x);

/* action.c */
void managed_action(struct slurm *x, struct managed *m);    // ask for what its state wants
void slurm_pass(void *self);                                // give Slurm what is to be given

/* look.c: views. */
void look_begin(void *self);        // a driver is there
void look_soon(struct slurm *x);    // something was changed
void look_on_timer(void *self);
void look_on_line(void *self, const struct wire_message *m);
void look_release(struct slurm *x);
bool look_is_unread(const struct slurm *x, const struct managed *m);    // it may be in the view
void slurm_set_down(struct slurm *x, const char *why);

/* state.c */
bool managed_is_leaving(const struct managed *m);    // STOPPING to RETIRING
bool managed_has_ended(const struct managed *m);     // ENDED, REPORTED, TAKEN

/* managed.c: the list of managed jobs. */
struct managed *managed_find(const struct slurm *x, int job);    // NULL: none
struct managed *managed_get(struct slurm *x, int job);           // made if need be
void managed_free(struct managed *m);
void managed_set_active(struct slurm *x, struct managed *m, bool is_active);
void managed_leave(struct slurm *x, struct managed *m, enum managed_event e);    // unless we watch
void managed_give_up(struct slurm *x, struct managed *m,
                     const char *why);    // the order to run at 'next'
void managed_pause(struct slurm *x, struct managed *m,
                   const char *why);    // Slurm does not want it now
bool managed_is_paused(const struct slurm *x, const struct managed *m);
void managed_forget_run(struct managed *m);    // of its Slurm job nothing counts any more
void managed_replace(struct slurm *x, struct managed *m);    // another is to take its job's place
void keep_text(char **to, const char *text);    // a copy instead of the old one; "" is NULL
bool managed_is_under_way(const struct managed *m);
bool managed_is_going(const struct managed *m);    // it is about to leave 'at', or may be there yet
bool managed_is_fresh(const struct slurm *x,
                      const struct managed *m);    // the view knows all we asked
const char *managed_name(const struct slurm *x, const struct managed *m);
const struct job *managed_job(const struct slurm *x, const struct managed *m);
bool managed_is_over(const struct slurm *x, const struct managed *m);      // its job, for good
bool managed_is_doomed(const struct slurm *x, const struct managed *m);    // and GOGH ended it
bool managed_may_run(const struct slurm *x, const struct managed *m);
bool managed_is_held(const struct slurm *x, const struct managed *m);    // its job, by GOGH
bool managed_is_asked(const struct managed *m);    // its present run was told to end
bool managed_has_served(const struct slurm *x, const struct managed *m);    // a server, its time
bool managed_is_users(const struct slurm *x, const struct managed *m);
bool managed_is_replica(const struct slurm *x, const struct managed *m);    // it has one run
bool slurm_has_ended(enum slurm_state s);

/* match.c: which Slurm job is which of ours. */
void match_view(struct slurm *x);
void match_strays(struct slurm *x);    // cancel what was submitted twice

/* see.c: one managed job in a new view. */
void see_managed(struct slurm *x, struct managed *m);

/* end.c: how jobs end, and how they are missed. */
void end_managed(struct slurm *x, struct managed *m);    // its Slurm job has ended
void end_missed(struct slurm *x, struct managed *m);     // the view does not have it

/* ask.c: requests about managed jobs. */
void ask_batch(struct slurm *x, struct managed *m, enum batch_kind b);
void ask_flush(struct slurm *x);
void ask_submit(struct slurm *x, struct managed *m);
void ask_pin(struct slurm *x, struct managed *m);
void ask_note(struct slurm *x, struct managed *m, int asked_run);
bool ask_may_note(const struct slurm *x);    // there is room for one
void ask_refusals(struct slurm *x);
void ask_strays(struct slurm *x, const char *const *numbers, int n);
void ask_power(struct slurm *x, const char *const *nodes, int n, const char *state);
bool ask_may(const struct slurm *x,
             const struct managed *m);    // may anything be asked about it now?
void ask_release(struct slurm *x);

/* submit.c: a command becomes a request; the owner and manners of a command. */
int submit_check(struct slurm *x, const struct managed *m, struct command *out, struct err *e);
void submit_put(struct slurm *x, const struct managed *m, const struct command *c, struct buf *b);
void submit_learn(struct slurm *x, struct managed *m);
const char *slurm_secret(struct slurm *x, int job);    // borrowed until the next call; NULL: none

/* place.c: places, and what Slurm calls them. */
const char *place_nodes(struct slurm *x, const struct gpu_set *s, int *n_nodes);    // "a,b"
const char *place_gres(struct slurm *x, const struct managed *m, const struct gpu_set *s,
                       struct err *e);    // what a pin asks for; NULL: it cannot be had there
bool place_needs_new(struct slurm *x, const struct managed *m,
                     const char *gres);    // its Slurm job cannot ask for that any more
bool place_is_bound(struct slurm *x, const struct managed *m);    // to its device, likewise
bool place_has_gres(struct slurm *x, const struct gpu_set *s, const char *gres);
bool place_guess(struct slurm *x, const char *nodes, struct gpu_set *out);
bool gres_is_same(const char *a, const char *b);
const char *place_token(struct slurm *x, int job);
const char *place_note(struct slurm *x, const struct managed *m, const struct gpu_set *s,
                       int asked_run);
bool place_is_on(struct slurm *x, const struct gpu_set *s,
                 const char *nodes);                         // exactly on these
int place_node(const struct slurm *x, struct slice name);    // in the state; -1: none
bool place_find(struct slurm *x, struct managed *m, struct gpu_set *out);    // where its run is
void place_on_device(struct slurm *x, const struct wire_message *line);      // a 'device' line
bool gres_names(const char *gres, const struct slurm_slot *slot);    // by the slot's own type

/* nodes.c: what nodes allow. */
void nodes_learn(struct slurm *x);                  // from a new view
int nodes_find(const struct slurm *x, int node);    // of the state: index in the view; -1: none
bool nodes_gpu_is_busy(void *self, int gpu);
double nodes_wake_s(void *self, int gpu);
const char *nodes_address(void *self, int node);
bool nodes_are_awake(struct slurm *x, const struct gpu_set *s);
void nodes_hurry(
    struct slurm *x);    // after a view: what is about to change, and what has come free
bool nodes_are_away(struct slurm *x, const struct gpu_set *s);    // one of them: down or drained
bool nodes_are_settling(struct slurm *x);                         // nothing is started yet
void nodes_shut(struct slurm *x, const struct gpu_set *s, double for_s);
void nodes_wake(struct slurm *x);
void nodes_sleep(struct slurm *x);
bool nodes_has_stranger(struct slurm *x, int i);    // job i of the view has nodes, not by our order
void nodes_release(struct slurm *x);

/* rules.c: what Slurm would not do. */
bool slurm_rules(void *self, struct arena *a, const int *jobs, int n_jobs,
                 struct engine_rules *out);

/* tell.c: notices, and what users did. */
bool told_running(const struct slurm *x, const struct managed *m);
void tell_started(struct slurm *x, struct managed *m);
void tell_end(struct slurm *x, struct managed *m, enum notice_kind kind, const char *reason);
void tell_change(struct slurm *x, struct managed *m, enum job_change change,
                 const char *reason);    // a literal; NULL: by Slurm's commands
void tell_release(struct slurm *x);
void tell_fill(struct executor *out);

#endif
