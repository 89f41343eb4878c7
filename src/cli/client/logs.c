/* cmd_logs.c - `gogh logs`: what a job has printed. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/client/client.h"
#include "cli/cmd.h"
#include "cli/table.h"

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

static int copy_out(const char *path)
{
    struct err e = { 0 };
    char bytes[65536];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        err_set(&e, errno, "%s: %s%s", path, strerror(errno),
                errno == ENOENT ? "; it is on the box that the job ran on, until it is cleared away"
                : errno == EACCES ? "; only its owner and root may read it"
                                  : "");
        return cmd_fail(&e);
    }
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        fwrite(bytes, 1, (size_t)n, stdout);
    close(fd);
    return cmd_done();
}

static int show(struct client *c, const char *id, bool wants_err, bool wants_path)
{
    struct err e = { 0 };
    json_t *job;

    if (client_get(c, arena_printf(client_arena(c), "/v1/jobs/%s", client_escape(c, id)), &job,
                   &e) < 0)
        return client_fail(&e);
    const char *path = json_string_value(json_object_get(job, wants_err ? "stderr" : "stdout"));
    if (!path && wants_err && isfinite(json_number_of(job, "slurm_id"))) {
        path = json_text_of(job, "stdout");
        if (path && !wants_path)
            fprintf(stderr, "gogh: Slurm has both in one file, unless sbatch was given -e: %s\n",
                    path);
    }
    if (!path) {
        err_set(&e, ENOENT, "job %s has not run yet", id);
        return cmd_fail(&e);
    }
    if (!wants_path)
        return copy_out(path);
    printf("%s\n", path);
    return cmd_done();
}

static int run(int argc, char **argv)
{
    struct client_where where = { 0 };
    bool wants_err = false, wants_path = false;
    const struct cmd_option options[] = {
        { .name = "err", .kind = OPTION_FLAG, .out = &wants_err },
        { .name = "path", .kind = OPTION_FLAG, .out = &wants_path },
        CLIENT_OPTIONS(where),
    };
    struct client *c = NULL;
    struct err e = { 0 };
    const char *id;
    int status = cmd_parse(&cmd_logs, argc, argv, options, CMD_COUNT(options), &id, 1);

    if (status != CMD_GO_ON)
        return status;
    if (id == NULL)
        return cmd_misuse(&cmd_logs, "which job? its id or name");
    if (where.is_json)
        return cmd_misuse(&cmd_logs, "a job's output is no JSON; 'gogh show --json' has the paths");
    status = client_open(&where, &c, &e) < 0 ? client_fail(&e) : show(c, id, wants_err, wants_path);
    client_close(c);
    return status;
}

const struct cmd cmd_logs = {
    .name = "logs",
    .synopsis = "logs JOB [--err] [--path]",
    .summary = "what a job has printed",
    .help = help,
    .run = run,
};
