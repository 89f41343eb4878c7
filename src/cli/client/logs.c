/* logs.c - `gogh logs`: what a job has printed. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text/json.h"
#include "cli/client/client.h"
#include "cli/cmd.h"

static const char help[] =
    "Print what a job's present or last run wrote, on the box that it runs on.\n"
    "\n"
    "  --err            its standard error instead of its standard output; under Slurm both are\n"
    "                   in one file, unless sbatch was given -e, which is not known here\n"
    "  --path           only say where the file is\n" CLIENT_HELP "\n"
    "Runs before it have files of their own: the directories beside, JOB.0, JOB.1, and so on.\n"
    "\n"
    "Examples:\n"
    "  gogh logs 12\n"
    "  gogh logs my-job --err\n"
    "  tail -f \"$(gogh logs 12 --path)\"\n";

static int copy_out(const char *path, struct err *e)
{
    char bytes[65536];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(e, errno, "%s: %s%s", path, strerror(errno),
                       errno == ENOENT
                           ? "; it is on the box that the job ran on, until it is cleared away"
                       : errno == EACCES ? "; only its owner and root may read it"
                                         : "");
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        fwrite(bytes, 1, (size_t)n, stdout);
    close(fd);
    return 0;
}

static bool wants_err, wants_path;

static const struct cmd_option options[] = {
    CMD_FLAG("err", wants_err),
    CMD_FLAG("path", wants_path),
    CLIENT_OPTIONS,
};

static int check(const struct cmd_call *call)
{
    int status = client_check_job(call);

    if (status == 0 && client_options.is_json)
        return cmd_misuse(call->cmd, "a job's output is no JSON; 'gogh show --json' has the paths");
    return status;
}

static int ask(struct client *c, const struct cmd_call *call, struct err *e)
{
    const char *id = call->words[0];
    json_t *job;

    if (client_get(c, arena_printf(client_arena(c), "/v1/jobs/%s", client_escape(c, id)), &job, e) <
        0)
        return -e->code;
    const char *path = json_text_of(job, wants_err ? "stderr" : "stdout");
    if (!path && wants_err && isfinite(json_number_of(job, "slurm_id"))) {
        path = json_text_of(job, "stdout");
        if (path && !wants_path)
            fprintf(stderr, "gogh: Slurm has both in one file, unless sbatch was given -e: %s\n",
                    path);
    }
    if (!path)
        return err_set(e, ENOENT, "job %s has not run yet", id);
    if (!wants_path)
        return copy_out(path, e);
    printf("%s\n", path);
    return 0;
}

const struct cmd cmd_logs = {
    .name = "logs",
    .synopsis = "logs JOB [--err] [--path]",
    .summary = "what a job has printed",
    .help = help,
    CMD_OPTIONS(options),
    .max_words = 1,
    .check = check,
    .run = client_run,
    .ask = ask,
};
