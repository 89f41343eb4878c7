/* slurm_inner.h - the Slurm executor's state, for the files slurm_*.c that change it. */
#ifndef ACT_SLURM_INNER_H
#define ACT_SLURM_INNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "act/slurm/slurm.h"
#include "act/slurm/link.h"
#include "act/slurm/view.h"
#include "base/arena.h"
#include "base/loop.h"
#include "base/map.h"
#include "base/text/text.h"

/* A ward is a job in our charge: what Slurm has of it, and what it is to have. Its life is drawn in
 * slurm.h; LEAVING ends as HELD (a stop, a move) or ENDED (a cancel, a server that has served).
 */
enum ward_phase {
    WARD_ABSENT,    // not in Slurm, and not asked for
    WARD_ASKED,     // submitted, or perhaps so: not seen yet
    WARD_HELD,      // pending there
    WARD_WANTED,    // pinned to 'at' and released; not seen running
    WARD_RUNNING,
    WARD_LEAVING,
    WARD_ENDED,
};
enum ward_leave { LEAVE_STOP, LEAVE_MOVE, LEAVE_CANCEL, LEAVE_SERVED };

/* Why a job counts as cancelled whom nobody has cancelled. */
#define WARD_LOST "Slurm does not know it any more"
#define WARD_TAKEN "moved to another partition of Slurm's"

/* Some GPUs under a limit. Owns its list. */
struct spot {
    int *gpus;
    int n_gpus;
    int limit_w;
};

enum found { FOUND_NOT, FOUND_ASKED, FOUND_YES };    // what 'devices' says of a run

struct ward {
    int job;
    enum ward_phase phase;
    enum ward_leave leave;    // LEAVING: what for
    bool has_next;            // ordered to run at 'next', and not pinned yet
    bool is_move;             // that is the second half of a move
    struct spot at, next;

    /* Of the command. */
    uid_t uid;
    bool has_owner;    // 'uid' counts
    int checkpoint_signal, retries;
    double grace_s;    // NaN: not said

    /* Slurm's job, as last seen. */
    const struct slurm_job *now;    // in the view that is looked at; NULL: not there
    bool is_there;                  // in the last one
    bool was_seen;                  // by this daemon
    long id;
    char number[48];    // as requests name it: "12", or "12_3" of an array's task
    int run;
    enum slurm_state state;
    enum slurm_hold held;
    int exit_code, signal;
    double start_s, end_s;
    char *out;
    char *gres;          // that it asks for; NULL: nothing
    char *key_number;    // a user's: the number in its key; NULL: none
    char *request;       // of the gate: " gres=gpu:2 nodes=1", kept in our notes; NULL: none
    double first_s;      // stopwatch, of the first view with it; NaN: none yet
    double seen_s;       // and of the last
    double absent_s;     // stopwatch, of the first view without it; NaN: it was there
    double pending_s;    // stopwatch: since when it is seen pending; NaN: not
    bool has_token;      // its admin comment names us
    bool is_run_held;    // its user has held it while it ran: counts once it is put back
    bool is_taken;       // somebody has moved it to another partition: not ours any more
    bool was_before;     // in the state when this daemon began
    double away_s;       // then: nobody had looked after it for so long, at some time
    bool is_parked;      // it may have run unseen: nobody but its user lets it run again

    /* Requests. */
    uint64_t seq;          // the last about it: views that were asked for earlier say nothing of it
    bool is_in_flight;     // and it has not been answered
    double doubt_s;        // stopwatch: when one was not answered; NaN: none
    double again_s;        // stopwatch: nothing more is asked of Slurm before
    double due_s;          // stopwatch: when patience, or the grace to save, ends
    double pinned_s;       // stopwatch: when Slurm had taken the last pin
    int pin_run;           // what 'run' was then
    char *pin_gres;        // and what was asked for; NULL: never pinned
    int asked_run;         // that was told to end: how it does so is no matter; -1: none
    bool is_user_held;     // by somebody with Slurm's commands,
    bool is_hold_told;     // and the state has it so
    bool is_grumbled;      // what is wrong was logged
    long forgotten_id;     // Slurm's job that it was, and that is not to run again; 0: none
    double forgotten_s;    // its submit_s then
    bool has_old;          // that one, or another with its token, is still there
    bool is_old_cancelled;    // by us
    double submit_s;          // of the present one
    struct spot shunned;      // nodes that may take it for one they have: not there
    int n_shunned;            // orders that were refused for that
    char *why;                // it does not run, as Slurm said; NULL
    double pause_s;           // how long it pauses when Slurm does not want it; doubled each time
    double paused_s;          // stopwatch: until then; 0: it does not
    int n_shut;               // times that Slurm did not start it, for a reason of its nodes
    double wait_s;            // stopwatch: since when others are in the way of its start; NaN: none
    int stuck_run;            // that Slurm does not put back; -1: none
    bool is_noteless;         // Slurm refuses notes about it

    /* What was told. */
    bool is_told;        // the state, once it has heard all notices, has it running
    int n_notices;       // of it that nobody has taken off
    int told_run;        // the last run whose start was told; -1
    bool is_end_told;    // its end, too
    double told_s;       // wall time of the last notice
    int n_failures;
    int failed_run;    // the last that was counted there; -1

    enum found found;    // 'spare' is where this run is, as 'devices' said
    int found_run;
    struct spot spare;
    int active;    // index in slurm.active; -1
};

/* Verbs that take several jobs: those of a turn go in one request. */
enum batch { BATCH_HOLD, BATCH_REQUEUE, BATCH_SIGNAL, BATCH_CANCEL, BATCH_DEVICES, BATCHES };

struct buf;
struct engine_rules;
struct errand;
struct wire_message;

struct ward_list {
    struct ward **wards;
    int n, cap;
};

/* A job that is not ours to run: held, and its admin comment says why. */
struct refusal {
    char number[48];
    uid_t uid;
    char *why;
    bool needs_hold, is_sent, is_done;
};

struct slurm_notice {
    struct run_notice told;
    int *gpus;
    char *reason;
};

/* A node of the view with what follows from it. */
struct node_seen {
    int state_node;    // index in the state; -1: not there
    const struct slurm_slot *slots;
    int n_slots;
};

struct slurm {
    struct slurm_setup setup;
    char *partition, *site, *reports;
    struct link *link;
    bool is_up;
    char why_down[200];
    char version[40];
    bool can_move_typed;
    double min_job_age_s, boot_s;

    int n_safe;               // jobs of the state that are on disk: only these are wards
    struct map_u64 by_job;    // to indices of 'wards'
    struct ward **wards;
    int n_wards, cap_wards;
    struct ward **active;    // those that a view may change
    int n_active, cap_active;
    struct ward_list batch[BATCHES];
    int n_changing;      // pins in flight
    int n_submitting;    // submissions
    int n_noting;        // notes in flight
    int n_noted;         // sent since the last view
    struct refusal *refusals;
    int n_refusals, cap_refusals;
    struct map_u64 refused;    // who ever was
    struct map by_number;      // users' jobs by the number in their key
    struct errand *errands;    // requests that are not answered
    struct map_u64 strays;     // Slurm jobs that were counted as such
    double stray_s;            // stopwatch, of the last request to cancel some

    /* Views: the parts that are being collected, and those that count. */
    struct loop_timer look, pass;
    bool is_looking, has_view, wants_nodes, is_partial, is_node_failed, is_node_partial;
    char **unread;    // (n_unread) numbers of jobs whose lines could not be read
    int n_unread, cap_unread;
    char trouble[200];    // that was logged last
    char why_nodes[200];
    bool is_believing;               // the view has just come
    uint64_t view_seq;               // of the 'jobs' request that made the view
    double asked_s, asked_wall_s;    // of the one that is under way
    int n_since_nodes, n_since_hello, n_soon;
    struct arena job_arena[2], node_arena[2];
    int job_side, node_side;    // the arenas that are being filled
    struct slurm_job *jobs;     // being filled
    int n_jobs, cap_jobs;
    struct slurm_other *others;
    int n_others, cap_others;
    struct slurm_node *nodes;
    int n_nodes, cap_nodes;
    bool has_nodes;    // the last round's nodes are complete
    struct slurm_view view;
    struct ward **ward_of;     // (view.n_jobs) whose each is; NULL: not ours
    struct node_seen *seen;    // (view.n_nodes)
    int *view_node;            // (n_view_node) by node of the state: index in the view; -1
    int n_view_node;
    slurm_view_f *on_view;
    void *view_self;

    struct slurm_notice *notices;    // a queue: from 'first_notice' on
    int n_notices, cap_notices, first_notice;
    struct slurm_did *deeds;    // likewise
    int n_deeds, cap_deeds, first_deed;
    bool has_hold;    // a hold was taken off, and is not known to be in the state yet
    void (*on_news)(void *self);
    void *news_self;
    struct loop_timer news;

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
    double skew_s;    // tests let time pass with this
    struct arena scratch;
};

/* slurm.c. 'open': see link_setup; NULL: the driver's program. */
int slurm_create_with(const struct slurm_setup *s, int (*open)(void *self), void *open_self,
                      struct slurm **out, struct err *e);
double slurm_now_s(const struct slurm *x);    // on the stopwatch
double slurm_wall_s(const struct slurm *x);
void slurm_pass_soon(struct slurm *x);

/* slurm_pass.c */
void slurm_pass(void *self);    // give Slurm what is to be given

/* slurm_look.c: views. */
void look_begin(struct slurm *x);    // a driver is there
void look_soon(struct slurm *x);     // something was changed
void look_on_timer(void *self);
void look_said(void *self, uint64_t seq, const struct wire_message *m);
void look_release(struct slurm *x);
bool look_is_unread(const struct slurm *x, const struct ward *w);    // it may be in the view
void slurm_set_down(struct slurm *x, const char *why);

/* slurm_ward.c: the list of wards. */
struct ward *ward_find(const struct slurm *x, int job);    // NULL: none
struct ward *ward_get(struct slurm *x, int job);           // made if need be
void ward_free(struct ward *w);
void ward_set_phase(struct slurm *x, struct ward *w, enum ward_phase phase);
void ward_set_active(struct slurm *x, struct ward *w, bool is_active);
void ward_leave(struct slurm *x, struct ward *w, enum ward_leave leave);
void ward_give_up(struct slurm *x, struct ward *w,
                  const char *why);    // the order to run at 'next'
void ward_say_why(struct ward *w, const char *why);
void ward_pause(struct slurm *x, struct ward *w, const char *why);    // Slurm does not want it now
bool ward_is_paused(const struct slurm *x, const struct ward *w);
void ward_forget_run(struct ward *w);                // of its Slurm job nothing counts any more
void ward_renew(struct slurm *x, struct ward *w);    // another Slurm job is to take its place
bool ward_is_under_way(const struct ward *w);
bool ward_is_fresh(const struct slurm *x, const struct ward *w);    // the view knows all we asked
const char *ward_name(const struct slurm *x, const struct ward *w);
bool ward_is_over(const struct slurm *x, const struct ward *w);      // its job, for good
bool ward_is_doomed(const struct slurm *x, const struct ward *w);    // and GOGH ended it
bool ward_may_run(const struct slurm *x, const struct ward *w);
bool ward_is_held(const struct slurm *x, const struct ward *w);    // its job, by GOGH
bool ward_is_asked(const struct ward *w);    // its present run was told to end
bool ward_has_served(const struct slurm *x, const struct ward *w);    // a server, its time
bool ward_is_users(const struct slurm *x, const struct ward *w);
bool slurm_has_ended(enum slurm_state s);

/* slurm_match.c: which Slurm job is which of ours. */
void match_view(struct slurm *x);
int match_job(struct slurm *x, const struct slurm_job *j);    // -1: not ours
void match_strays(struct slurm *x);                           // cancel what was submitted twice
void match_number(const struct slurm_job *j, char *out, size_t size);

/* slurm_see.c: one ward in a new view. */
void see_ward(struct slurm *x, struct ward *w);

/* slurm_end.c: how jobs end, and how they are missed. */
void end_ward(struct slurm *x, struct ward *w);      // its Slurm job has ended
void end_missed(struct slurm *x, struct ward *w);    // the view does not have it

/* slurm_ask.c: requests about wards. */
void ask_batch(struct slurm *x, struct ward *w, enum batch b);
void ask_flush(struct slurm *x);
void ask_submit(struct slurm *x, struct ward *w);
void ask_pin(struct slurm *x, struct ward *w);
void ask_note(struct slurm *x, struct ward *w, int asked_run);
bool ask_may_note(const struct slurm *x);    // there is room for one
void ask_refusals(struct slurm *x);
void ask_strays(struct slurm *x, const char *const *numbers, int n);
void ask_power(struct slurm *x, const char *const *nodes, int n, const char *state);
bool ask_may(const struct slurm *x, const struct ward *w);    // may anything be asked about it now?
void ask_release(struct slurm *x);

/* slurm_submit.c: a command becomes a request; the owner and manners of a command. */
int submit_check(struct slurm *x, const struct ward *w, struct err *e);
void submit_put(struct slurm *x, const struct ward *w, struct buf *b);    // one that was checked
void submit_learn(struct slurm *x, struct ward *w);

/* slurm_place.c: places, and what Slurm calls them. */
void spot_set(struct spot *s, const int *gpus, int n_gpus, int limit_w);
void spot_move(struct spot *to, struct spot *from);
bool spot_has(const struct spot *s, int gpu);
bool spot_is(const struct spot *s, const int *gpus, int n_gpus);
int place_check(struct slurm *x, const struct ward *w, const struct spot *s, struct err *e);
const char *place_nodes(struct slurm *x, const struct spot *s, int *n_nodes);    // "a,b"
const char *place_gres(struct slurm *x, const struct ward *w, const struct spot *s, struct err *e);
bool place_needs_new(struct slurm *x, const struct ward *w,
                     const char *gres);    // its Slurm job cannot ask for that any more
bool place_is_bound(struct slurm *x, const struct ward *w);    // to its device, likewise
bool place_has_gres(struct slurm *x, const struct spot *s, const char *gres);
bool place_guess(struct slurm *x, const char *nodes, struct spot *out);
bool gres_is_same(const char *a, const char *b);
const char *place_token(struct slurm *x, int job);
const char *place_note(struct slurm *x, const struct ward *w, const struct spot *s, int asked_run);
bool place_is_on(struct slurm *x, const struct spot *s, const char *nodes);    // exactly on these
struct slice next_name(const char **at);    // of "a,b,c", moving behind it; empty at the end
int place_node(const struct slurm *x, struct slice name);              // in the state; -1: none
bool place_find(struct slurm *x, struct ward *w, struct spot *out);    // where its run is
void place_heard(struct slurm *x, const struct wire_message *m);       // a 'device' line
bool gres_names(const char *gres, const struct slurm_slot *slot);      // by the slot's own type

/* slurm_nodes.c: what nodes allow. */
void nodes_learn(struct slurm *x);                  // from a new view
int nodes_find(const struct slurm *x, int node);    // of the state: index in the view; -1: none
bool nodes_gpu_is_busy(struct slurm *x, int gpu);
double nodes_wake_s(const struct slurm *x, int gpu);
bool nodes_are_awake(struct slurm *x, const struct spot *s);
void nodes_hurry(
    struct slurm *x);    // after a view: what is about to change, and what has come free
bool nodes_are_away(struct slurm *x, const struct spot *s);    // one of them: down or drained
bool nodes_are_settling(struct slurm *x);                      // nothing is started yet
void nodes_shut(struct slurm *x, const struct spot *s, double for_s);
void nodes_wake(struct slurm *x);
void nodes_sleep(struct slurm *x);
bool nodes_is_ours(struct slurm *x, const struct ward *w, const struct slurm_job *j);
void nodes_release(struct slurm *x);

/* slurm_rules.c: what Slurm would not do. */
bool slurm_rules(void *self, struct arena *a, const int *jobs, int n_jobs,
                 struct engine_rules *out);

/* slurm_tell.c: notices and deeds. */
bool told_running(const struct slurm *x, const struct ward *w);
void tell_started(struct slurm *x, struct ward *w);
void tell_end(struct slurm *x, struct ward *w, enum notice_kind kind, const char *reason);
void tell_deed(struct slurm *x, struct ward *w, enum slurm_deed deed,
               const char *reason);    // a literal; NULL: by Slurm's commands
void tell_release(struct slurm *x);
struct runs tell_runs(struct slurm *x);
void tell_on_news(void *self);

#endif
