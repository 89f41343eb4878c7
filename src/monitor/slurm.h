/* slurm.h - a Slurm cluster as the sensor sees it: nodes that come, go and drain; users' jobs.
 *
 * Is shown every view (act/slurm_view.h) and compares it with the state: what has changed about
 * nodes becomes observations that 'watch' tells; nodes that the state does not have, and jobs that
 * came by sbatch, are handed to the owner, who knows how to make events of them. Made by
 * the daemon; on the loop's thread.
 */
#ifndef MONITOR_SLURM_H
#define MONITOR_SLURM_H

#include <stdbool.h>

struct err;
struct slurm;
struct slurm_job;
struct slurm_node;
struct slurm_slot;
struct slurm_view;
struct slurm_watch;
struct state;
struct watch;

/* How the admin comment of a job begins that was refused for good; why follows. */
#define SLURM_REFUSED "gogh1 refused: "

struct slurm_watch_setup {
    const struct state *state;    // borrowed
    struct watch *watch;          // borrowed: tells observations
    const char *partition;
    const char *site;     // of our tokens; NULL: no token is foreign
    bool only_watches;    // shadow mode: jobs that Slurm starts by itself are no surprise
    void *self;

    /* A node that the state does not have, with its slots; 0: it has been added. Others are asked
     * for again with the next view; what is wrong with them is logged once.
     */
    int (*add_node)(void *self, const struct slurm_node *n, const struct slurm_slot *slots,
                    int n_slots, struct err *e);

    /* A waiting or running job of GOGH's partition that has no token. (One that neither came by the
     * gate nor asks Slurm for a GPU has none, and is left alone.) It may be one that the state has
     * already (its key is there), whose token was never written. True: it was taken in or refused
     * for good; false: ask again with a later view (a store that cannot be written).
     */
    bool (*take_job)(void *self, const struct slurm_job *j);
};

struct slurm_watch *slurm_watch_create(const struct slurm_watch_setup *s);
void slurm_watch_destroy(struct slurm_watch *w);    // NULL is fine

/* Hands over at most 200 new jobs; the others come with the next views, in their order. */
void slurm_watch_see(struct slurm_watch *w, const struct slurm_view *v, double now_s);

/* What came of take_job since the last of these two: 'safe': the store has it; 'undone': it was
 * lost, so those jobs are forgotten here, and handed over again with the next view.
 */
void slurm_watch_safe(struct slurm_watch *w);
void slurm_watch_undone(struct slurm_watch *w);

/* Waiting and running jobs of the partition in the last view whose token is of another store:
 * GOGH cannot place them.
 */
int slurm_watch_n_foreign(const struct slurm_watch *w);

#endif
