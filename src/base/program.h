/* program.h - where programs are that ours start: those that are installed beside them.
 *
 * Asked by goghd and gogh for what they do not link: gogh-keeper, gogh-slurm-driver, gogh-pair,
 * gogh-burn.
 */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#define PROGRAM_PATH_SIZE 4096

/* The path of 'name': as the environment's 'variable' says, beside this program, or else in
 * 'libexec'. Into 'room', or borrowed from the environment.
 */
const char *program_find(const char *name, const char *variable, const char *libexec,
                         char room[PROGRAM_PATH_SIZE]);

#endif
