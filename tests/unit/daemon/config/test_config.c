/* gogh.conf: what is read, what is refused and how, what may change while the daemon runs. */
#include "daemon/config/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "daemon/config/auth.h"
#include "daemon/config/inner.h"
#include "unit/suite.h"
#include "unit/support.h"
#include "unit/texts.h"

static struct arena arena;
static struct err err;

static void setup(void)
{
    arena_init(&arena);
    err = (struct err){ 0 };
}

static void teardown(void)
{
    arena_release(&arena);
}

FIXTURE(setup, teardown)

static int parse(const char *text, struct config *out)
{
    return config_parse(&arena, "gogh.conf", text, strlen(text), out, &err);
}

static struct config good(const char *text)
{
    struct config c;

    ck_assert_msg(parse(text, &c) == 0, "%s\n-> %s", text, err.text);
    return c;
}

static const char *printed(const struct config *c)
{
    struct buf b;

    buf_init(&b, 1 << 20);
    config_print(c, &b);
    return text_taken(&arena, &b);
}

/* ---- reading ---- */

TEST(a_path_is_seen_from_where_we_are)
{
    struct config c = good("store a/b.db\nrun_dir /c\n");
    char here[4096], want[4200];

    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    snprintf(want, sizeof want, "%s/a/b.db", here);
    ck_assert_str_eq(c.store, want);
    ck_assert_str_eq(c.run_dir, "/c");
}

TEST(an_empty_file_is_the_defaults)
{
    struct config c = good("# nothing\n\n"), d;

    config_defaults(&d);
    ck_assert_str_eq(printed(&c), printed(&d));
    ck_assert_str_eq(c.store, "/var/lib/gogh/gogh.db");
    ck_assert_str_eq(c.reports, "/run/gogh/reports.sock");
    ck_assert_int_eq(c.socket_scope, SCOPE_SUBMIT);
    ck_assert_double_eq(c.cluster.settings.report_s, 60);
    ck_assert_int_eq(c.cluster.n_nodes + c.cluster.n_gpus + c.cluster.n_types, 0);
    ck_assert_int_eq(config_line(&c, "store"), 0);
}

static const struct {
    const char *address;
    bool is_here;
} hosts[] = {
    { "127.0.0.1:7117", true },
    { "localhost:1", true },
    { "[::1]:7", true },
    { "127.8.9.1", true },
    { "localhost/v1", true },
    { "127.example.org:80", false },
    { "localhost.example.org", false },
    { "[::1].example.org:1", false },
    { "127.0.0.1@example.org", false },
    { "10.127.0.1:1", false },
};

EACH(the_loopback_is_known_by_its_whole_host, hosts)
{
    ck_assert_msg(config_is_loopback(hosts[_i].address) == hosts[_i].is_here, "%s",
                  hosts[_i].address);
}

TEST(reports_may_come_by_udp_alone)
{
    struct config c = good("reports none\nreports_udp 127.0.0.1:7118\n");

    ck_assert_ptr_null(c.reports);
    ck_assert_ptr_nonnull(strstr(printed(&c), "reports         none\n"));
    ck_assert_int_eq(parse("reports none\n", &c), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "reports_udp"));
}

TEST(every_line_is_read)
{
    struct config c = good("store /a/b.db\nrun_dir \"/a/my runs\"\n"
                           "socket /x/g.sock mode=0660 scope=read\n"
                           "listen [::]:7117 cert=/c key=/k\ntokens /t\n"
                           "allow user=ann admin\nallow group=ann none\n"
                           "reports_udp 127.0.0.1:0\nmode shadow\npolicy pack\nlearn no\n"
                           "gpus declared\npower dcgm=http://h:9400/metrics\nmps no\n"
                           "grace_s 5.5\nbody_max 4096\nlog debug\njob_labels yes\n"
                           "node box k80:2 v100:1\nset theta 3\n");

    ck_assert_str_eq(c.run_dir, "/a/my runs");
    ck_assert_uint_eq(c.socket_mode, 0660);
    ck_assert_int_eq(c.socket_scope, SCOPE_READ);
    ck_assert_str_eq(c.reports, "/x/reports.sock");
    ck_assert_str_eq(c.key, "/k");
    ck_assert_int_eq(c.n_allow, 2);
    ck_assert(!c.allow[0].is_group && c.allow[1].is_group);
    ck_assert_int_eq(c.allow[0].scope, SCOPE_ADMIN);
    ck_assert(c.mode == MODE_SHADOW && !c.is_learning && !c.uses_mps && c.has_job_labels);
    ck_assert_int_eq(c.power, POWER_DCGM);
    ck_assert_str_eq(c.dcgm_url, "http://h:9400/metrics");
    ck_assert_double_eq(c.grace_s, 5.5);
    ck_assert_int_eq(c.body_max, 4096);
    ck_assert_int_eq(c.log, LOG_DEBUG);
    ck_assert_int_eq(c.cluster.n_gpus, 3);
    ck_assert_int_eq(c.cluster.settings.theta, 3);
    ck_assert_int_eq(config_line(&c, "policy"), 10);
}

TEST(what_is_printed_reads_back_to_the_same)
{
    struct config c =
        good("socket none\nlisten 127.0.0.1:1\nstore \"/a b=c\"\npower model\n"
             "allow group=\"x y\" operate\nnode n-[1-3] a100:2 k80:1\nrate_max 0.5\n");
    const char *once = printed(&c);
    struct config d = good(once);

    ck_assert_str_eq(printed(&d), once);
    ck_assert_ptr_null(d.socket);
    ck_assert_str_eq(d.store, "/a b=c");
    ck_assert_int_eq(d.cluster.n_nodes, 3);
}

static const struct {
    const char *name, *text, *want;
} delays[] = {
    { "by the caps of declared GPUs", "gpus declared\nnode a k80:1 v100:2\n",
      "# delay_w       auto: 64.9 W; an hour of a job's time is worth 0.0649 kWh\n" },
    { "by GPUs that are yet to be found", "gpus auto\nnode a v100:1\n",
      "# delay_w       auto: 0.3 of the mean power cap of the GPUs; 'gogh plan' says what it is\n" },
    { "as it is set", "gpus auto\nset delay_w 30\n",
      "# delay_w       an hour of a job's time is worth 0.03 kWh\n" },
};

EACH(what_time_is_worth_is_printed, delays)
{
    struct config c = good(delays[_i].text);
    const char *text = printed(&c);

    ck_assert_msg(strstr(text, delays[_i].want) != NULL, "%s: %s", delays[_i].name, text);
}

TEST(described_types_stay_without_a_node)
{
    struct config c = good("gputype mine like=v100 cap=200\ngpus auto\ngputype k80 cap=111\n");

    ck_assert_int_eq(c.cluster.n_nodes, 0);
    ck_assert_int_eq(c.cluster.n_gpus, 0);
    ck_assert_int_eq(c.cluster.n_types, 2);
    ck_assert_str_eq(c.cluster.types[0].name, "mine");
    ck_assert_double_eq(c.cluster.types[1].cap_w, 111);
}

TEST(one_pace_of_decisions)
{
    struct config a = good("decide_s 3\n"), b = good("set decide_s 4\n");

    ck_assert_double_eq(a.cluster.settings.decide_s, 3);
    ck_assert_double_eq(b.decide_s, 4);
    ck_assert_double_eq(good("set report_s 99\n").cluster.settings.report_s, 99);
}

/* ---- refusing ---- */

static const struct {
    const char *name, *text, *says;
} wrong[] = {
    { "an unknown word, and the one that is near", "\n\nstroe /x\n",
      "gogh.conf:3: there is no setting 'stroe'; did you mean 'store'?" },
    { "a word that is near nothing", "zebra\n", "'gogh config template'" },
    { "key=value instead of words", "grace_s=3\n", "gogh.conf:1: want 'grace_s VALUE'" },
    { "a setting twice, and where", "seed 1\n# x\nseed 2\n",
      "gogh.conf:3: seed is set in line 1 already" },
    { "a pace of decisions twice", "decide_s 1\nset decide_s 2\n",
      "gogh.conf:2: decide_s is set in line 1" },
    { "no value", "store\n", "gogh.conf:1: store has no value" },
    { "two values", "store /a b\n", "wants quotes" },
    { "a socket's path that is too long",
      "socket /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n",
      "at most 107 bytes" },
    { "a socket's directory that leaves no room for the reports' one",
      "socket /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aaaaaaaaaaaaaaa/s\n",
      "leaves no room for reports.sock" },
    { "a mode that is none", "socket /a mode=0999\n", "octal" },
    { "a mode with too many bits", "socket /a mode=7777\n", "octal" },
    { "a scope that is none", "socket /a scope=submi\n", "did you mean 'submit'?" },
    { "an unknown key", "socket /a mod=0666\n", "did you mean 'mode'?" },
    { "a key twice", "socket /a mode=0666 mode=0600\n", "mode= is there twice" },
    { "an address without a port", "listen localhost\n", "HOST:PORT" },
    { "a port beyond all", "listen localhost:65536\n", "HOST:PORT" },
    { "IPv6 without brackets", "listen ::1:7117\n", "[::1]:7117" },
    { "TCP for all without TLS", "listen 0.0.0.0:7117\n", "only on the loopback" },
    { "a certificate without its key", "listen 127.0.0.1:1 cert=/a\n", "go together" },
    { "a number out of range", "grace_s -1\n", "from 0 to 86400, not '-1'" },
    { "a number that is none", "grace_s 3x\n", "not '3x'" },
    { "a whole number with a part", "body_max 4096.5\n", "whole number" },
    { "neither yes nor no", "learn maybe\n", "learn is no or yes, not 'maybe'" },
    { "a mode that is near one", "mode shadwo\n", "did you mean 'shadow'?" },
    { "dcgm without an address", "power dcgm\n", "dcgm=http" },
    { "dcgm with something else", "power dcgm=localhost\n", "dcgm=http" },
    { "nobody is allowed", "allow ann operate\n", "allow user=NAME SCOPE" },
    { "somebody twice", "allow user=a read\nallow user=a submit\n", "line 1 is about 'a'" },
    { "a cluster line keeps its number", "# a\nstore /x\nnode n nosuch:1\nseed 2\n",
      "gogh.conf:3: GPU type 'nosuch'" },
    { "a wrong 'set' keeps its number", "seed 1\nset theta 99\n", "gogh.conf:2:" },
    { "an open quote", "seed 1\nstore \"/a\n", "gogh.conf:2: a quote" },
};

EACH(a_wrong_line_is_named_with_its_cure, wrong)
{
    struct config c;

    ck_assert_msg(parse(wrong[_i].text, &c) == -EINVAL, "%s: accepted", wrong[_i].name);
    ck_assert_msg(strstr(err.text, wrong[_i].says) != NULL, "%s: '%s' lacks '%s'", wrong[_i].name,
                  err.text, wrong[_i].says);
}

/* ---- the template ---- */

static char *whole_template(void)
{
    const char *whole = "";

    for (int i = 0; config_template[i]; i++)
        whole = arena_printf(&arena, "%s%s", whole, config_template[i]);
    return arena_strdup(&arena, whole);
}

/* Settings of the template with their '#' taken away. */
static char *uncommented(void)
{
    char *text = whole_template();

    for (char *p = text; p != NULL && *p != '\0'; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (p[0] == '#' && p[1] != ' ' && p[1] != '\n')
            p[0] = ' ';
    }
    return text;
}

TEST(the_template_is_the_defaults_and_has_every_setting)
{
    static const char *const many[] = { "allow", "node", "gputype", "workload", "set" };
    const char *text = uncommented();
    struct config c = good(text), empty = good(whole_template()), d;

    config_defaults(&d);
    ck_assert_str_eq(printed(&empty), printed(&d));
    for (int i = 0; i < config_n_settings + 5; i++) {
        const char *word =
            i < config_n_settings ? config_settings[i].name : many[i - config_n_settings];
        const char *line = arena_printf(&arena, "\n#%s ", word);

        ck_assert_msg(strstr(whole_template(), line) != NULL, "no '%s'", word);
    }
    c.listen = c.cert = c.key = c.tokens = c.reports_udp = c.model = NULL;    // examples
    c.slurm_conf = c.slurm_commands = c.record = c.scrape_table = NULL;
    c.n_allow = 0;
    c.cluster.n_nodes = c.cluster.n_types = c.cluster.n_workloads = 0;
    ck_assert_str_eq(printed(&c), printed(&d));
}

/* ---- reloading ---- */

static const struct {
    const char *name, *was, *now, *says;
} reloads[] = {
    { "nothing", "", "", NULL },
    { "who may do what", "", "allow user=a read\nsocket /run/gogh/gogh.sock scope=read\n", NULL },
    { "what is told, and how long jobs may take", "", "log debug\ngrace_s 1\npolicy pack\n", NULL },
    { "the store", "", "seed 1\nstore /x\n", "gogh.conf:2: 'store'" },
    { "the socket's place", "", "socket /x\n", "'socket'" },
    { "the socket's mode", "", "socket /run/gogh/gogh.sock mode=0600\n", "'socket'" },
    { "a certificate", "listen 127.0.0.1:1\n", "listen 127.0.0.1:1 cert=/a key=/b\n", "'listen'" },
    { "a node", "node a v100:1\n", "node a v100:2\n", "'node'" },
    { "a type's figures", "gputype v100 cap=200\n", "gputype v100 cap=201\n", "'gputype'" },
    { "a workload", "", "workload w like=resnet50\n", "'workload'" },
    { "what plans reckon with", "", "set theta 1\n", "'set'" },
    { "the mode", "mode active\n", "mode shadow\n", "'mode'" },
};

EACH(a_reload_takes_what_can_change, reloads)
{
    struct config was = good(reloads[_i].was), now = good(reloads[_i].now);
    int rc = config_may_reload(&was, &now, &err);

    ck_assert_msg((rc == 0) == (reloads[_i].says == NULL), "%s: %s", reloads[_i].name, err.text);
    if (rc < 0)
        ck_assert_msg(strstr(err.text, reloads[_i].says) != NULL, "%s: %s", reloads[_i].name,
                      err.text);
}

/* ---- the machine ---- */

static char *dir;

static void make_dir(void)
{
    setup();
    dir = scratch_make();
}

static void remove_dir(void)
{
    scratch_remove(dir);
    teardown();
}

FIXTURE(make_dir, remove_dir)

static void put_file(const char *name, const char *text)
{
    FILE *f = fopen(arena_printf(&arena, "%s/%s", dir, name), "w");

    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

/* %d of a text is the test's directory. */
static const char *placed(const char *text)
{
    const char *out = "", *at;

    while ((at = strstr(text, "%d")) != NULL) {
        out = arena_printf(&arena, "%s%.*s%s", out, (int)(at - text), text, dir);
        text = at + 2;
    }
    return arena_printf(&arena, "%s%s", out, text);
}

#define SLURM "executor slurm\nslurm_commands %d/bin\n"

static const struct {
    const char *name, *more;
    int n_bad;
    const char *says;
} probes[] = {
    { "all is well", "", 0, "" },
    { "no directory for the store", "store %d/none/g.db\n", 1, "store: the directory '" },
    { "runs where a file is", "run_dir %d/file\n", 1, "is no directory" },
    { "endpoints where a file is", "services_dir %d/file\n", 1, "services_dir: '" },
    { "a file where the socket is to be", "reports %d/file\n", 1, "no socket" },
    { "no way in", "socket none\nreports %d/r\n", 1, "nobody can reach it" },
    { "no tokens file", "tokens %d/none\n", 1, "gogh token new" },
    { "tokens that all can read", "tokens %d/file\n", 1, "chmod 600" },
    { "a token's line that is none", "tokens %d/private\n", 1, "want 'NAME SCOPE OWNER DIGEST'" },
    { "more than one node", "node a v100:1\nnode b v100:1\n", 1, "declare one" },
    { "a certificate that is none", "listen 127.0.0.1:1 cert=%d/file key=%d/key\n", 1,
      "has no line" },
    { "a certificate that is not there", "listen 127.0.0.1:1 cert=%d/none key=%d/key\n", 1,
      "listen: cert=" },
    { "a good pair", "listen 127.0.0.1:1 cert=%d/cert key=%d/key\n", 0, "without a 'tokens' line" },
    { "no TLS on the loopback", "listen 127.0.0.1:1\n", 0, "without TLS" },
    { "no such policy", "policy best\n", 1, "policy: " },
    { "no such model", "model %d/none\n", 1, "gogh train" },
    { "no table of metrics", "scrape_table %d/none\n", 1, "scrape_table: " },
    { "a table of metrics that is none", "scrape_table %d/file\n", 1, ":1: want SERVER VERSIONS" },
    { "nobody of that name", "allow user=no-such-user-here read\n", 0, "there is no user" },
    { "nothing declared", "gpus declared\n", 1, "gpus: none is declared" },
    { "all is well with Slurm", SLURM "slurm_conf %d/file\nreports_udp head:7118\n", 0, "" },
    { "no directory of Slurm's commands", "executor slurm\nslurm_commands %d/none\n", 1,
      "the directory '" },
    { "not all of Slurm's commands", "executor slurm\nslurm_commands %d\nreports_udp h:1\n", 1,
      "there is no sbatch, scancel, scontrol, sinfo, squeue in '" },
    { "no slurm.conf", SLURM "slurm_conf %d/none\nreports_udp h:1\n", 1, "slurm_conf: '" },
    { "a partition that is an option", SLURM "slurm_partition -x\nreports_udp h:1\n", 1,
      "'-x' is no name of a partition" },
    { "two partitions", SLURM "slurm_partition a,b\nreports_udp h:1\n", 1,
      "'a,b' is no name of a partition" },
    { "jobs on other nodes that are told a socket", SLURM, 0, "reports_udp HOST:PORT" },
    { "jobs on other nodes that are told to talk to themselves",
      SLURM "reports_udp 127.0.0.1:7118\n", 0, "reports_udp: 127.0.0.1:7118" },
    { "two things at once, the worse one first",
      "allow group=no-such-group-here read\npolicy best\n", 1, "policy: " },
};

static void put_commands(void)
{
    static const char *const names[] = { "bin/sbatch", "bin/scancel", "bin/scontrol", "bin/sinfo",
                                         "bin/squeue" };

    ck_assert_int_eq(mkdir(placed("%d/bin"), 0755), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        put_file(names[i], "");
        ck_assert_int_eq(chmod(arena_printf(&arena, "%s/%s", dir, names[i]), 0755), 0);
    }
}

EACH(the_machine_is_looked_at, probes)
{
    struct config c;
    struct buf out;
    int n;

    put_file("file", "words\n");
    put_file("private", "words\n");
    put_commands();
    ck_assert_int_eq(chmod(placed("%d/private"), 0600), 0);
    put_file("cert", "-----BEGIN CERTIFICATE-----\n");
    put_file("key", "-----BEGIN PRIVATE KEY-----\n");
    buf_init(&out, 1 << 20);
    c = good(placed(probes[_i].more));
    if (config_line(&c, "store") == 0)
        c.store = placed("%d/g.db");
    if (config_line(&c, "run_dir") == 0)
        c.run_dir = placed("%d/runs");
    if (config_line(&c, "socket") == 0)
        c.socket = placed("%d/g.sock");
    if (config_line(&c, "reports") == 0)
        c.reports = placed("%d/r.sock");
    n = config_probe(&c, &out);
    ck_assert_msg(n == probes[_i].n_bad, "%s: %d bad\n%s", probes[_i].name, n, buf_text(&out));
    ck_assert_msg(strstr(buf_text(&out), probes[_i].says) != NULL, "%s:\n%s", probes[_i].name,
                  buf_text(&out));
    if (n > 0 && probes[_i].says[0] == 'p')
        ck_assert_msg(strstr(buf_text(&out), probes[_i].says) < strchr(buf_text(&out), '\n'),
                      "%s: %s", probes[_i].name, buf_text(&out));
    ck_assert((probes[_i].says[0] == '\0') == (out.len == 0));
    buf_release(&out);
}

TEST(a_missing_file_is_told_apart)
{
    struct config c;

    ck_assert_int_eq(config_read(&arena, placed("%d/none"), &c, &err), -ENOENT);
    put_file("gogh.conf", "seed 7\n");
    ck_assert_int_eq(config_read(&arena, placed("%d/gogh.conf"), &c, &err), 0);
    ck_assert_int_eq(c.seed, 7);
    put_file("gogh.conf", "seed\n");
    ck_assert_int_eq(config_read(&arena, placed("%d/gogh.conf"), &c, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "gogh.conf:1:"));
}
