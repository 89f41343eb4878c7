#include "study/scenario/data.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/file.h"
#include "catalog/cluster/cluster.h"
#include "catalog/import/draft.h"
#include "catalog/import/import.h"
#include "sim/ground.h"

static const char *const names[DATA_FILES] = {
    [DATA_GAVEL_PAIRS] = "gavel/simulation_throughputs.json",
    [DATA_GAVEL_ISOLATED] = "gavel/physical_cluster_throughputs.json",
    [DATA_GAVEL_WORKLOADS] = "workloads/gavel_workloads.csv",
    [DATA_GAVEL_WATTS] = "power/gavel_watts.csv",
    [DATA_GAVEL_TRACES] = "gavel/traces.tar.gz",
    [DATA_PHILLY] = "philly_via_pollux/philly.csv.gz",
    [DATA_OPENB_NODES] = "alibaba_openb_v2023/openb_node_list_gpu_node.csv.gz",
    [DATA_OPENB_PODS] = "alibaba_openb_v2023/openb_pod_list_default.csv.gz",
};

/* Of any one file, unpacked; the largest has 5 MB. */
#define DATA_BYTES_MAX ((size_t)256 << 20)

int data_path(struct arena *a, const char *data, enum data_file f, const char **out, struct err *e)
{
    const char *path = arena_printf(a, "%s/%s", data, names[f]);

    if (access(path, R_OK) < 0)
        return err_set(e, errno == EACCES ? EACCES : ENOENT,
                       "%s: %s: give --data DIR or set GOGH_DATA (docs/formats/study.md#data)",
                       path, strerror(errno));
    *out = path;
    return 0;
}

int data_read(struct arena *a, const char *data, enum data_file f, const char *member,
              const char **text, size_t *len, struct err *e)
{
    const char *path = NULL;
    int rc = data_path(a, data, f, &path, e);

    return rc < 0 ? rc : file_read_text(a, path, member, DATA_BYTES_MAX, text, len, e);
}

/* A file as it lies there, packed or not. */
static int read_raw(struct arena *a, const char *path, char **bytes, size_t *len, struct err *e)
{
    FILE *f = fopen(path, "rb");
    long size = -1;
    int rc = 0;

    if (f != NULL && fseek(f, 0, SEEK_END) == 0)
        size = ftell(f);
    if (size < 0 || fseek(f, 0, SEEK_SET) != 0)
        rc = err_set(e, EIO, "%s: cannot be read: %s", path, strerror(errno));
    if (rc == 0) {
        *len = (size_t)size;
        *bytes = arena_alloc(a, *len);
        if (fread(*bytes, 1, *len, f) != *len)
            rc = err_set(e, EIO, "%s: changes while it is read", path);
    }
    if (f != NULL)
        fclose(f);
    return rc;
}

int data_file_digest(const char *path, char hex[65], struct err *e)
{
    struct arena scratch;
    char *bytes = NULL;
    size_t len = 0;

    arena_init(&scratch);
    int rc = read_raw(&scratch, path, &bytes, &len, e);
    if (rc == 0)
        file_digest(bytes, len, hex);
    arena_release(&scratch);
    return rc;
}

/* Name and digest of a file, where it is there. */
static int put_digest(struct arena *a, const char *data, enum data_file f, struct buf *out,
                      struct err *e)
{
    const char *path = NULL;
    char digest[65];

    if (data_path(a, data, f, &path, NULL) < 0)
        return 0;
    int rc = data_file_digest(path, digest, e);
    return rc < 0 ? rc : buf_printf(out, "%s %s\n", names[f], digest);
}

int data_digest(struct arena *a, const char *data, unsigned files, const char **out, struct err *e)
{
    char digest[65];
    struct buf all;
    int rc = 0;

    buf_init(&all, 1 << 16);
    for (int f = 0; f < DATA_FILES && rc == 0; f++)
        if ((files >> f & 1) != 0)
            rc = put_digest(a, data, (enum data_file)f, &all, e);
    if (rc == 0 && all.len > 0) {
        file_digest(buf_text(&all), all.len, digest);
        *out = arena_strdup(a, digest);
    } else if (rc == 0) {
        *out = "none";
    }
    buf_release(&all);
    return rc;
}

/* ---- Gavel's measurements as truth ---- */

static int gavel_paths(struct arena *a, const char *data, struct import_gavel *in, struct err *e)
{
    const char **const out[] = { &in->path, &in->isolated, &in->workloads, &in->watts };
    int rc = 0;

    for (int i = 0; i < 4 && rc == 0; i++)
        rc = data_path(a, data, (enum data_file)(DATA_GAVEL_PAIRS + i), out[i], e);
    return rc;
}

int data_ground_gavel(struct ground *g, const char *data, const struct cluster *cl, struct err *e)
{
    struct import_report report;
    struct import_gavel in;
    struct arena a;
    int rc;

    *g = (struct ground){ 0 };
    catalog_init(&g->catalog);
    arena_init(&a);
    rc = gavel_paths(&a, data, &in, e);
    if (rc == 0)
        rc = import_gavel(&g->catalog, &in, 0, NULL, &report, e);
    if (rc == 0)
        rc = ground_describe_types(g, cl, e);
    if (rc == 0)
        rc = truth_from_catalog(&g->truth, &g->catalog, &g->n_filled, e);
    if (rc < 0)
        ground_close(g);
    arena_release(&a);
    return rc;
}
