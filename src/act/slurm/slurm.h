/* slurm.h - the executor for a Slurm cluster: jobs are Slurm's, GOGH says where and when.
 *
 * Every job that GOGH has is, or becomes, one Slurm job in GOGH's partition, found by its token
 * (docs/formats/slurm-driver.md). It waits there held; an order to start pins it to nodes and gres
 * and releases it; a stop or move asks it to save, requeues it held, and pins it anew. Whatever is
 * asked of Slurm goes through the driver, a process that may hang or die; what Slurm has done is
 * learned from views, taken every few seconds. So the truth is always Slurm's, and everything here
 * is a wish that is repeated until a view shows that it came true; state.h draws a job's life.
 *
 * A service runs nowhere, and Slurm never hears of it. Its replicas are jobs as all others, but for
 * one thing: a replica has one run. However that ends, it is told as a failure, and it is neither
 * put back nor submitted again; its service asks for another (cycle/services.h).
 *
 * Nothing is started twice: a job is submitted held and only one with its token is ever released.
 * On the loop's thread; nothing here waits.
 */
#ifndef ACT_SLURM_SLURM_H
#define ACT_SLURM_SLURM_H

#include <stdbool.h>
#include <stddef.h>

#include "act/executor.h"
#include "act/slurm/view.h"
#include "catalog/cluster/state.h"

struct catalog;
struct clock;
struct err;
struct job_spec;
struct loop;
struct slurm;

/* Texts are borrowed, as is all else that is pointed at. */
struct slurm_setup {
    struct loop *loop;
    const struct clock *clock;
    const struct state *state;    // specs, GPUs, names
    const struct catalog *catalog;
    const char *driver;       // program
    const char *commands;     // directory of Slurm's commands; NULL: by PATH
    const char *conf;         // SLURM_CONF; NULL: Slurm's default
    const char *partition;    // GOGH's
    const char *site;         // first part of tokens: 16 hex digits, the store's own
    const char *reports;      // address that jobs are told to report to (GOGH_REPORTS)
    bool only_watches;        // shadow mode: nothing but reading calls
    int theta;                // jobs that may share a GPU; from 1 on
    double rate;              // calls a second, on average
    double poll_s;            // between two views; 2
    double grace_s;           // to save, where a command says nothing else
    double patience_s;        // a pinned job that Slurm does not start is taken back; 60
    double wake_s;            // a sleeping node's way back
    double sleep_after_s;     // a node without work is sent to sleep after this long; 0: never

    const unsigned char *key;    // (16) what secrets of jobs' reports are made from; NULL: none is

    /* What is told to whoever has it, while a view is looked at; NULL take_job: nothing is. */
    void *owner;

    /* A node that the state does not have, with its slots; 0: it is going to have it. Others are
     * told of again with the next view; what is wrong with them is logged once.
     */
    int (*add_node)(void *owner, const struct slurm_node *n, const struct slurm_slot *slots,
                    int n_slots, struct err *e);

    /* A node that the state has, with as many slots, when it is first seen and when its gres has
     * changed; NULL: nobody wants to know.
     */
    void (*node_has)(void *owner, int node, const struct slurm_slot *slots);

    /* A waiting or running job of GOGH's partition that has no token. (One that neither came by the
     * gate nor asks Slurm for a GPU has none, and is left alone.) It may be one that the state has
     * already (its key is there), whose token was never written. True: it was taken in or refused
     * for good; false: it is told of again with a later view (a store that cannot be written).
     */
    bool (*take_job)(void *owner, const struct slurm_job *j);

    /* A node of the state came, went or drains; 'ends_drain': also where somebody drained it. */
    void (*node_is)(void *owner, int node, enum node_state is, bool ends_drain, double time_s);

    /* That was all of a view; its consequences are told as notices. */
    void (*on_view)(void *owner);

    /* See link_setup: tests have a driver of their own; NULL: the program. */
    int (*open)(void *self);
    void *open_self;
};

int slurm_create(const struct slurm_setup *s, struct slurm **out, struct err *e);
void slurm_destroy(struct slurm *x);    // leaves the jobs running; NULL is fine

/* gpu_is_busy is true, too, for GPUs that jobs of other partitions hold, and of nodes that Slurm
 * keeps from us; gpu_wake_s is not 0 for sleeping nodes. A job that the state has is to be in
 * Slurm, too: one that is new is submitted soon; one that came from Slurm is there already, and the
 * next view finds it by its key. It has no 'close': its owner has more to close than this.
 */
struct executor slurm_executor(struct slurm *x);
void *slurm_owner(const struct slurm *x);

/* Did it come by sbatch (slurm_key)? GOGH does not submit such a job again. */
bool slurm_is_users(const struct job_spec *s);

/* Which job of the state it is; -1: none. Slurm sets a job's submit_s anew with each requeue, so
 * that its key is not enough.
 */
int slurm_find_job(struct slurm *x, const struct slurm_job *j);

/* This job of the view is not GOGH's to run, for this reason: it stays held, and its admin comment
 * says why.
 */
void slurm_refuse(struct slurm *x, const struct slurm_job *j, const char *why);

/* The slots of a node, as pins name them; the daemon made the state's nodes from the same. */
const struct slurm_slot *slurm_slot_of(const struct slurm *x, int gpu);    // NULL: not in Slurm

#endif
