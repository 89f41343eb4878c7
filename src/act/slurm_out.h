/* slurm_out.h - where a batch job of Slurm's writes: '/home/%u/train-%j.out' as the file that it is.
 *
 * Slurm keeps the pattern, and fills it in on the node. Read by act/slurm_see.c for what the daemon
 * tells of a job's output.
 */
#ifndef ACT_SLURM_OUT_H
#define ACT_SLURM_OUT_H

struct arena;
struct slurm_job;

/* The path of j's output, in 'a'; 'user' is its owner's name. What cannot be known, as the node of a job that has not
 * started (%N), stays as it is written. "" where Slurm did not say.
 */
const char *slurm_out_path(struct arena *a, const struct slurm_job *j, const char *user);

#endif
