/* Trace files: read, refused, and written so that they read the same. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "sim/trace/trace.h"
#include "unit/suite.h"
#include "unit/texts.h"

/* The trace as trace_write has it, or the error. */
static const char *digest(struct arena *a, const char *text)
{
    struct err e = { 0 };
    struct trace t;
    struct buf b;

    buf_init(&b, 65536);
    if (trace_parse(a, "t", text, strlen(text), &t, &e) < 0)
        buf_printf(&b, "! %s", e.text);
    else
        ck_assert_int_eq(trace_write(&t, &b), 0);
    return text_taken(a, &b);
}

static const struct text_row cases[] = {
    { "a training job", "job a at=0 workload=w steps=10\n", "job a at=0 workload=w steps=10\n" },
    { "an inference job", "job a at=1.5 workload=w rate=3 duration=60\n",
      "job a at=1.5 workload=w rate=3 duration=60\n" },
    { "all there is",
      "job a one_node at=1 exclusive types=\"v100,a100\" owner=ann urgency=2.5 priority=-3 max_gpus=4 gpus=2 "
      "deadline=7200 min=0.25 steps=1e6 workload=\"w x\"\n",
      "job a at=1 workload=\"w x\" steps=1000000 min=0.25 deadline=7200 gpus=2 max_gpus=4 "
      "priority=-3 urgency=2.5 owner=ann types=v100,a100 exclusive one_node\n" },
    { "a gang over nodes", "job a at=0 workload=w steps=1 nodes=2 gpus=4\n",
      "job a at=0 workload=w steps=1 gpus=4 nodes=2\n" },
    { "one of these is the older word", "job a at=0 workload=w steps=1 nodes=1 gpus=3\n",
      "job a at=0 workload=w steps=1 gpus=3 one_node\n" },
    { "a gang that nodes cannot have in equal parts",
      "job a at=0 workload=w steps=1 nodes=2 gpus=3\n",
      "! t:1: job 'a' has gpus=3, which nodes=2 cannot have in equal parts" },
    { "a gang over nodes that would grow",
      "job a at=0 workload=w steps=1 nodes=2 gpus=2 max_gpus=4\n",
      "! t:1: job 'a' has nodes=2 and cannot grow: leave max_gpus= out" },
    { "one node and several", "job a at=0 workload=w steps=1 nodes=2 gpus=2 one_node\n",
      "! t:1: job 'a' says one_node and nodes=2: keep one" },
    { "the batch becomes part of the name", "job a at=0 workload=w batch=32 steps=1\n",
      "job a at=0 workload=\"w (batch size 32)\" steps=1\n" },
    { "jobs are sorted by arrival, equal ones stay in order",
      "job c at=5 workload=w steps=1\njob b at=0 workload=w steps=1\njob a at=5 workload=w "
      "steps=1\n",
      "job b at=0 workload=w steps=1\njob c at=5 workload=w steps=1\njob a at=5 workload=w "
      "steps=1\n" },
    { "numbers keep every digit", "job a at=0.30000000000000004 workload=w steps=1\n",
      "job a at=0.30000000000000004 workload=w steps=1\n" },
    { "nothing in it", "\n",
      "! t: no job: add lines like 'job a at=0 workload=resnet50 steps=1000'" },
    { "an unknown line", "work a\n", "! t:1: a line begins with job, service or #" },
    { "no name", "job at=0\n",
      "! t:1: want 'job NAME key=value ...', NAME of 1 to 200 printable bytes, in quotes when it "
      "has blanks or '='" },
    { "no arrival", "job a workload=w steps=1\n", "! t:1: job 'a' has no arrival: add at=SECONDS" },
    { "no workload", "job a at=0 steps=1\n", "! t:1: job 'a' has no workload: add workload=NAME" },
    { "no work", "job a at=0 workload=w\n",
      "! t:1: job 'a' wants either steps=N (training) or both rate=R and duration=S (inference)" },
    { "two kinds of work", "job a at=0 workload=w steps=1 rate=1 duration=1\n",
      "! t:1: job 'a' wants either steps=N (training) or both rate=R and duration=S (inference)" },
    { "a rate without a duration", "job a at=0 workload=w rate=1\n",
      "! t:1: job 'a' wants either steps=N (training) or both rate=R and duration=S (inference)" },
    { "a name twice", "job a at=0 workload=w steps=1\njob a at=1 workload=w steps=1\n",
      "! t:2: job 'a' is there twice: give each its own name" },
    { "a key twice", "job a at=0 at=1 workload=w steps=1\n",
      "! t:1: 'at=' is there twice: keep one" },
    { "an unknown key", "job a at=0 wrkload=w steps=1\n",
      "! t:1: no key 'wrkload'; there are at, workload, batch, steps, rate, duration, min, "
      "deadline, gpus, max_gpus, nodes, priority, urgency, owner, types" },
    { "more urgent than can be", "job a at=0 workload=w steps=1 urgency=101\n",
      "! t:1: urgency=101: want a number from 0.01 to 100" },
    { "an unknown word", "job a at=0 workload=w steps=1 fast\n",
      "! t:1: 'fast' is neither key=value nor exclusive nor one_node" },
    { "a number that is none", "job a at=now workload=w steps=1\n",
      "! t:1: at=now: want a number from 0 to 1e+12" },
    { "a count that is not whole", "job a at=0 workload=w steps=1 gpus=1.5\n",
      "! t:1: gpus=1.5: want a whole number from 1 to 4096" },
    { "a maximum below the gang", "job a at=0 workload=w steps=1 gpus=4 max_gpus=2\n",
      "! t:1: job 'a' has max_gpus=2 below gpus=4" },
    { "a service",
      "service web owner=ann end=9 seed=3 traffic=drawn load=60 max_gpus=4 max_batch=8 p99=0.2 "
      "rate=40 batch=16 workload=w at=1\n",
      "service web at=1 workload=\"w (batch size 16)\" rate=40 p99=0.2 max_batch=8 max_gpus=4 "
      "load=60 traffic=drawn seed=3 end=9 owner=ann\n" },
    { "services come after jobs, each by arrival",
      "service b at=5 workload=w rate=1 p99=1 traffic=steady\njob j at=9 workload=w steps=1\n"
      "service a at=0 workload=w rate=1 p99=1 arrivals=\"f 1\"\n",
      "job j at=9 workload=w steps=1\nservice a at=0 workload=w rate=1 p99=1 arrivals=\"f 1\"\n"
      "service b at=5 workload=w rate=1 p99=1 traffic=steady\n" },
    { "a service without a promise", "service a at=0 workload=w rate=1 traffic=steady\n",
      "! t:1: service 'a' wants rate=REQUESTS_A_SECOND and p99=SECONDS, or of a language model "
      "ttft=SECONDS and tpot=SECONDS" },
    { "a language model's service", "service a tpot=0.1 ttft=2 at=0 workload=w rate=1 arrivals=f\n",
      "service a at=0 workload=w rate=1 ttft=2 tpot=0.1 arrivals=f\n" },
    { "a first token without the others", "service a at=0 workload=w rate=1 ttft=2 arrivals=f\n",
      "! t:1: service 'a' wants rate=REQUESTS_A_SECOND and p99=SECONDS, or of a language model "
      "ttft=SECONDS and tpot=SECONDS" },
    { "two kinds of promise", "service a at=0 workload=w rate=1 p99=1 tpot=1 arrivals=f\n",
      "! t:1: service 'a' promises p99=, or ttft= and tpot=: keep one" },
    { "a service without requests", "service a at=0 workload=w rate=1 p99=1\n",
      "! t:1: service 'a' wants either traffic=steady, diurnal or drawn, or arrivals=FILE" },
    { "traffic of no kind", "service a at=0 workload=w rate=1 p99=1 traffic=heavy\n",
      "! t:1: traffic=heavy: want steady, diurnal or drawn" },
    { "a service that ends at once",
      "service a at=3 end=3 workload=w rate=1 p99=1 traffic=steady\n",
      "! t:1: service 'a' ends before it begins: set end= above at=" },
    { "a service's unknown key", "service a at=0 steps=3\n",
      "! t:1: no key 'steps'; there are at, workload, batch, rate, p99, ttft, tpot, max_batch, "
      "max_gpus, load, traffic, arrivals, seed, end, owner" },
    { "a service of a job's name",
      "job a at=0 workload=w steps=1\nservice a at=0 workload=w rate=1 p99=1 traffic=steady\n",
      "! t:2: job 'a' is there twice: give each its own name" },
    { "two batches", "job a at=0 workload=\"w (batch size 8)\" batch=4 steps=1\n",
      "! t:1: job 'a' has its batch in the workload's name: leave batch= out" },
};

EACH(reading, cases)
{
    struct arena a;
    const char *got;

    arena_init(&a);
    got = digest(&a, cases[_i].given);
    text_row_check(&cases[_i], got);
    if (got[0] != '!')
        ck_assert_str_eq(digest(&a, got), got);
    arena_release(&a);
}

TEST(what_is_not_said_has_a_default)
{
    static const char text[] = "job a at=0 workload=w steps=1 gpus=3\n";
    struct trace t;
    struct arena a;
    struct err e;

    arena_init(&a);
    ck_assert_int_eq(trace_parse(&a, "t", text, strlen(text), &t, &e), 0);
    ck_assert(isnan(t.jobs[0].deadline_s) && t.jobs[0].max_gpus == 3 && !t.jobs[0].is_exclusive &&
              t.jobs[0].owner == NULL && t.jobs[0].types == NULL && t.jobs[0].priority == 0 &&
              t.jobs[0].min_throughput == 0 && !t.jobs[0].is_inference);
    arena_release(&a);
}
