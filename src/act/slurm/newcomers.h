/* newcomers.h - what is new in a Slurm cluster: nodes that come, go and drain; users' jobs.
 *
 * Is shown every view (act/slurm/view.h) and compares it with the state. What has changed about
 * nodes, nodes that the state does not have, and jobs that came by sbatch, are handed to the owner
 * of the executor (struct slurm_setup), who makes events of them. Made by slurm.c; on the loop's
 * thread.
 */
#ifndef ACT_SLURM_NEWCOMERS_H
#define ACT_SLURM_NEWCOMERS_H

struct newcomers;
struct slurm_setup;
struct slurm_view;

/* How the admin comment of a job begins that was refused for good; why follows. */
#define SLURM_REFUSED "gogh1 refused: "

/* Of 's' count 'state', 'partition', 'site', 'only_watches' and what is told to the owner. */
struct newcomers *newcomers_create(const struct slurm_setup *s);
void newcomers_destroy(struct newcomers *w);    // NULL is fine

/* Hands over at most 200 new jobs; the others come with the next views, in their order. */
void newcomers_see(struct newcomers *w, const struct slurm_view *v, double now_s);

/* What came of take_job since the last of these two: the store has it; or it was lost, so those
 * jobs are forgotten here, and handed over again with the next view.
 */
void newcomers_committed(struct newcomers *w);
void newcomers_undone(struct newcomers *w);

/* Waiting and running jobs of the partition in the last view whose token is of another store:
 * GOGH cannot place them.
 */
int newcomers_n_foreign(const struct newcomers *w);

#endif
