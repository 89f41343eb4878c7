/* What scontrol says of single jobs and of itself, and sbatch of what it did. */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "act/driver/hosts.h"
#include "act/driver/output.h"
#include "act/driver/wire.h"
#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "base/text/text.h"

/* ---- devices ---- */

/* `show hostnames X` prints X, and asks nobody: it puts a mark between two jobs. */
const char *output_devices_input(struct arena *a, const char *mark, const char *const *ids,
                                 int n_ids)
{
    struct buf b;

    buf_init(&b, WIRE_LINE_MAX * 8);
    for (int i = 0; i < n_ids; i++)
        (void)buf_printf(&b, "show hostnames m%sx%d\nshow job %s\n", mark, i, ids[i]);
    (void)buf_printf(&b, "show hostnames m%sx\n", mark);
    return buf_keep(&b, a);
}

static int count(const char *text, const char *what)
{
    int n = 0;

    while ((text = strstr(text, what)) != NULL) {
        n++;
        text += strlen(what);
    }
    return n;
}

/* "0-1,3" or, of shards in 24.11, shares in use of each device "0/2,1/2", as numbers of devices. */
static void put_indices(struct buf *b, struct slice in)
{
    const char *at = in.at, *end = in.at + in.len;

    for (long k = 0; at < end; k++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        const char *slash = memchr(at, '/', (size_t)(stop - at));
        const char *dash = memchr(at, '-', (size_t)(stop - at));
        const char *mid = slash ? slash : dash ? dash : stop;
        long low = 0, high = 0;

        if (text_to_long((struct slice){ at, (size_t)(mid - at) }, 0, 65535, &low) < 0)
            return;
        high = low;
        if (dash && text_to_long((struct slice){ dash + 1, (size_t)(stop - dash) - 1 }, low, 65535,
                                 &high) < 0)
            return;
        if (slash) {
            high = low > 0 ? k : -1;
            low = k;
        }
        for (long i = low; i <= high; i++)
            (void)buf_printf(b, "%s%ld", b->len ? "," : "", i);
        at = comma ? comma + 1 : end;
    }
}

/* "shard:v100_0:1(IDX:0)" of one job and node. */
static void put_device(struct buf *out, uint64_t seq, const char *id, struct slice node,
                       struct slice item)
{
    const char *open = memchr(item.at, '(', item.len);
    struct slice in = { "", 0 };
    char text[256];
    struct buf b;

    buf_init(&b, 4096);
    if (open) {
        in = (struct slice){ open + 1, (size_t)(item.at + item.len - open) - 1 };
        item.len = (size_t)(open - item.at);
        if (in.len > 0 && in.at[in.len - 1] == ')')
            in.len--;
        if (in.len > 4 && strncmp(in.at, "IDX:", 4) == 0)
            in = (struct slice){ in.at + 4, in.len - 4 };
        put_indices(&b, in);
    }
    wire_begin(out, seq, "device");
    wire_put(out, "id", id);
    snprintf(text, sizeof text, "%.*s", (int)(node.len < 255 ? node.len : 255), node.at);
    wire_put(out, "node", text);
    snprintf(text, sizeof text, "%.*s", (int)(item.len < 255 ? item.len : 255), item.at);
    wire_put(out, "gres", text);
    wire_put(out, "index", buf_text(&b));
    wire_end(out);
    buf_release(&b);
}

/* The items of "gpu:1(IDX:0,2),shard:1(IDX:1)" are parted by commas outside of parentheses. */
static void put_node_devices(struct buf *out, uint64_t seq, const char *id, struct slice node,
                             const char *gres)
{
    while (*gres) {
        const size_t n = hosts_item_len(gres, '(', ')');

        if (n > 0)
            put_device(out, seq, id, node, (struct slice){ gres, n });
        gres += n + (gres[n] == ',');
    }
}

/* "     Nodes=v100-[0-1] CPU_IDs=0 Mem=0 GRES=shard:1(IDX:0)" */
static int put_line(struct arena *a, struct buf *out, uint64_t seq, const char *id, char *line)
{
    char *nodes = strstr(line, "Nodes="), *gres = strstr(line, " GRES=");
    const char *names;
    struct err e;

    if (!nodes || !gres || strspn(line, " ") != (size_t)(nodes - line))
        return 0;
    nodes += strlen("Nodes=");
    gres += strlen(" GRES=");
    nodes[strcspn(nodes, " ")] = '\0';
    if (hosts_expand(a, nodes, &names, &e) < 0)
        return -1;
    for (struct slice name; slice_next(&names, ',', &name);)
        put_node_devices(out, seq, id, name, gres);
    return 0;
}

/* One job. Its name, comment and command, which are its owner's, may hold lines that look like
 * those that count. These stand between two others, and behind the line that follows the name;
 * where one of the three is there twice, nothing of it is believed.
 */
static int put_job_devices(struct arena *a, struct buf *out, uint64_t seq, const char *id,
                           char *text)
{
    const char *name_end = strstr(text, "\n   UserId=");
    char *from = strstr(text, "\n   JOB_GRES="), *to = strstr(text, "\n   MinCPUsNode=");
    int rc = 0;

    if (count(text, "\n   UserId=") > 1 || count(text, "\n   JOB_GRES=") > 1 ||
        count(text, "\n   MinCPUsNode=") > 1)
        return -1;
    if (!from || !to || to < from)
        return 0;
    if (!name_end || from < name_end)
        return -1;
    *to = '\0';
    for (char *line = from + 1; line && rc == 0;) {
        char *feed = strchr(line, '\n');

        if (feed)
            *feed = '\0';
        rc = put_line(a, out, seq, id, line);
        line = feed ? feed + 1 : NULL;
    }
    return rc;
}

/* Everything from one mark to the next. scontrol may echo its commands, and their marks: what
 * stands between an echo and the mark itself is nothing.
 */
struct output_bad output_devices(struct arena *a, char *text, const char *mark,
                                 const char *const *ids, int n_ids, uint64_t seq, struct buf *out)
{
    const char *start = arena_printf(a, "m%sx", mark);
    struct output_bad bad = { 0 };
    char *at = strstr(text, start);

    while (at) {
        char *number = at + strlen(start), *body = number + strspn(number, "0123456789");
        const struct slice digits = { number, (size_t)(body - number) };
        char *next = strstr(body, start);
        long i = -1;

        if (next)
            *next = '\0';
        if (next && text_to_long(digits, 0, n_ids - 1, &i) == 0 &&
            put_job_devices(a, out, seq, ids[i], body) < 0) {
            if (bad.n_names < OUTPUT_BAD_MAX)
                bad.names[bad.n_names++] = ids[i];
            if (bad.n++ == 0)
                bad.why = arena_printf(
                    a, "%.40s: its owner wrote what cannot be told from Slurm's words", ids[i]);
        }
        if (next)
            *next = start[0];
        at = next;
    }
    return bad;
}

/* ---- of Slurm itself ---- */

/* The value of "KEY   = VALUE"; NULL: there is none. */
static const char *config_value(struct arena *a, const char *text, const char *key)
{
    const size_t len = strlen(key);

    for (struct slice line; slice_next(&text, '\n', &line);) {
        const char *at = line.at;

        if (strncasecmp(at, key, len) != 0)
            continue;
        at += len + strspn(at + len, " ");
        if (*at != '=')
            continue;
        at += 1 + strspn(at + 1, " ");
        return arena_strndup(a, at, strcspn(at, "\n"));
    }
    return NULL;
}

/* The number in front of "300 sec". */
static void put_number(struct buf *out, const char *key, const char *value)
{
    long n = 0;

    if (value &&
        text_to_long((struct slice){ value, strspn(value, "0123456789") }, 0, LONG_MAX, &n) == 0)
        wire_put_long(out, key, n);
}

/* The three numbers of "23.02.6-1" as one that can be compared. */
static long version_number(const char *v)
{
    long number = 0;

    for (int i = 0; i < 3; i++) {
        const size_t n = strspn(v, "0123456789");
        long part = 0;

        (void)text_to_long((struct slice){ v, n }, 0, 999, &part);
        number = number * 1000 + part;
        v += n + (v[n] == '.');
    }
    return number;
}

/* Jobs with typed gres can be moved by requeue from this one on. */
#define MOVES_TYPED "23.02.6"

int output_config(struct arena *a, const char *text, uint64_t seq, struct buf *out)
{
    const char *version = config_value(a, text, "SLURM_VERSION");
    const char *requeue = config_value(a, text, "JobRequeue");

    if (!version || !isdigit((unsigned char)*version))
        return -1;
    wire_begin(out, seq, "config");
    wire_put(out, "version", version);
    put_number(out, "min_job_age_s", config_value(a, text, "MinJobAge"));
    put_number(out, "kill_wait_s", config_value(a, text, "KillWait"));
    wire_put(out, "requeue", requeue && strcmp(requeue, "1") == 0 ? "yes" : "no");
    put_number(out, "boot_s", config_value(a, text, "BOOT_TIME"));
    wire_put(out, "cluster", config_value(a, text, "ClusterName"));
    wire_put(out, "can_move_typed",
             version_number(version) >= version_number(MOVES_TYPED) ? "yes" : "no");
    wire_end(out);
    return 0;
}

/* "PartitionName=gogh" begins each. */
static bool has_partition(const char *text, const char *name)
{
    static const char key[] = "PartitionName=";
    const size_t len = strlen(name);

    for (struct slice line; slice_next(&text, '\n', &line);) {
        if (strncmp(line.at, key, sizeof key - 1) != 0)
            continue;
        line.at += sizeof key - 1;
        if (strncmp(line.at, name, len) == 0 && strchr(" \n", line.at[len]))
            return true;
    }
    return false;
}

const char *output_partition_missing(const char *text, const struct wire_message *m)
{
    for (int i = 0; i < m->n_pairs; i++)
        if (strcmp(m->pairs[i].key, "partition") == 0 && !has_partition(text, m->pairs[i].value))
            return m->pairs[i].value;
    return NULL;
}

/* "17" or "17;cluster". */
long output_submitted(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    long id = 0;

    if (text[n] != '\0' && text[n] != '\n' && text[n] != ';')
        return 0;
    return text_to_long((struct slice){ text, n }, 1, LONG_MAX, &id) < 0 ? 0 : id;
}

/* "Slurmctld(primary) at HOST is UP": any of several controllers will do. */
bool output_is_up(const char *text)
{
    for (struct slice s; slice_next(&text, '\n', &s);)
        if (s.len > 6 && strncmp(s.at, "Slurmctld(", 10) == 0 &&
            strncmp(s.at + s.len - 6, " is UP", 6) == 0)
            return true;
    return false;
}
