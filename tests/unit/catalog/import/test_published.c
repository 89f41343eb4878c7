/* Published data sets, a few rows of each: what becomes of them, and what is refused. */
#include "catalog/import/import.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "catalog/import/models.h"
#include "unit/catalog/import/drafts.h"
#include "unit/suite.h"

FIXTURE(set_up, tear_down)

static int read_power(struct draft *to, const struct draft_text *in, struct progress *p,
                      struct err *e)
{
    (void)p;
    return miso_read_power(to, in, e);
}

static int read_vgg16(struct draft *to, const struct draft_text *in, struct progress *p,
                      struct err *e)
{
    (void)p;
    return elasticflow_read(to, "vgg16", in, e);
}

static int read_unknown_model(struct draft *to, const struct draft_text *in, struct progress *p,
                              struct err *e)
{
    (void)p;
    return elasticflow_read(to, "wide_and_deep", in, e);
}

#define NEUSIGHT "gpu,model,mode,seq_len,batch_size,variant,e2e_latency_ms,fw_latency_ms\n"
#define PTB "source_dir,gpu,num_gpus,precision,mode,model,iterations,median_ms\n"
#define POLLUX "application,kind,placement,local_bsz,step_time,sync_time,num_nodes,num_replicas\n"
#define PARVA "model,Mig instance,Batch size,Workload Number,Throughput,Latency\n"
#define MLENERGY                                                                        \
    "task,model_id,gpu_model,num_gpus,max_num_seqs,avg_batch_size,avg_output_len,"      \
    "activated_params_billions,total_params_billions,weight_precision,avg_power_watts," \
    "output_throughput_tokens_per_sec\n"
#define MISO "mig_slice,model,batch_size,epochs,median_iter_s\n"
#define POWER "model,batch_size,power_w,sm_util_pct,mem_util_pct,memory_mib\n"

/* Rows as "workload | gpu | neighbour | n_gpus spread fits throughput watts", one a line. */
static const char *show_rows(void)
{
    char *text = arena_strdup(&d.arena, "");

    for (int i = 0; i < d.n_rows; i++) {
        const struct measurement *m = &d.rows[i];

        text =
            arena_printf(&d.arena, "%s%s | %s | %s | %d %d %d %g %g\n", text,
                         d.workloads[m->key.workload].name, d.types[m->key.gpu_type].name,
                         m->key.neighbour >= 0 ? d.workloads[m->key.neighbour].name : "-",
                         m->key.n_gpus, m->key.is_spread, m->fits,
                         isnan(m->throughput) ? 0 : m->throughput, isnan(m->watts) ? 0 : m->watts);
    }
    return text;
}

static const struct {
    const char *name;
    draft_read_f *read;
    const char *given, *want;
    int n_dropped;
} reads[] = {
    { "milliseconds of an iteration become iterations a second", neusight_read,
      NEUSIGHT "Tesla_T4,bert_large,train,512,2,,500,1\nNVIDIA_L4,gpt2_large,inf,1024,4,,250,1\n",
      "bert-large-512-synthetic-fp32 (batch size 2) | t4 | - | 1 0 1 2 0\n"
      "gpt2-large-prefill-synthetic-fp32 (batch size 4) | l4 | - | 1 0 1 4 0\n",
      0 },
    { "what is no plain run of a built-in model on a built-in type is left out", neusight_read,
      NEUSIGHT "Tesla_T4,bert_large,train,512,2,fusion,1,1\nTesla_T4,switch4,inf,512,2,,1,1\n"
               "Tesla_T4,bert_large,inf,128,2,,1,1\nWarp,bert_large,inf,512,2,,1,1\n"
               "Tesla_T4,opt_13,inf,2048,1,,100,1\n",
      "opt-1.3b-prefill-synthetic-fp32 (batch size 1) | t4 | - | 1 0 1 10 0\n", 4 },
    { "single precision is on tensor cores where there are any", pytorch_gpu_benchmark_read,
      PTB "a,TITAN V,1,float,train,vgg16_bn,50,100\na,TITAN V,1,half,inference,resnet18,50,10\n",
      "vgg16-bn-synthetic-tf32 (batch size 12) | titan-v | - | 1 0 1 10 0\n"
      "resnet18-imagenet-infer-synthetic-fp16 (batch size 12) | titan-v | - | 1 0 1 100 0\n",
      0 },
    { "each of several GPUs has a batch of its own", pytorch_gpu_benchmark_read,
      PTB "a,TITAN V,4,half,train,resnet50,50,100\n",
      "ResNet-50-synthetic-fp16 (batch size 12) | titan-v | - | 4 0 1 40 0\n", 0 },
    { "a type counts where it was measured first, and double precision never",
      pytorch_gpu_benchmark_read,
      PTB "a,TITAN V,1,double,train,resnet34,50,900\na,TITAN V,1,half,train,resnet34,50,100\n"
          "b,TITAN V,1,half,train,resnet34,50,300\nb,TITAN Xp,1,half,train,resnet34,50,200\n",
      "resnet34-synthetic-fp16 (batch size 12) | titan-v | - | 1 0 1 10 0\n"
      "resnet34-synthetic-fp16 (batch size 12) | titan-xp | - | 1 0 1 5 0\n",
      2 },
    { "a placement is GPUs by node", pollux_read,
      POLLUX "bert,placements,1,12,0.5,0,,\ncifar10,placements,3,32,0.1,0,,\n"
             "ncf,placements,21,64,0.5,0,,\n",
      "bert-base (batch size 12) | t4 | - | 1 0 1 2 0\n"
      "ResNet-18 (batch size 32) | t4 | - | 3 0 1 30 0\n"
      "ncf (batch size 64) | t4 | - | 3 1 1 6 0\n",
      0 },
    { "or as many replicas as it says", pollux_read, POLLUX "yolov3,scalability,,8,2,0,6.0,8.0\n",
      "yolov3 (batch size 8) | t4 | - | 8 1 1 4 0\n", 0 },
    { "inferences of each of two processes make a pair", parvagpu_read,
      PARVA "bert,1,4,1,80,1\nbert,1,4,2,60,1\nbert,1,4,3,50,1\n",
      "bert-base-infer-synthetic-tf32 (batch size 4) | a100-mig-1g | - | 1 0 1 20 0\n"
      "bert-base-infer-synthetic-tf32 (batch size 4) | a100-mig-1g | "
      "bert-base-infer-synthetic-tf32 (batch size 4) | 1 0 1 15 0\n",
      1 },
    { "none a second is out of memory", parvagpu_read, PARVA "inceptionv3,2,256,1,0,0\n",
      "inception-v3-infer-synthetic-tf32 (batch size 256) | a100-mig-2g | - | 1 0 0 0 0\n", 0 },
    { "seconds of an iteration", miso_read,
      MISO "3g.20gb,resnet,128,1,0.04\n1g.5gb,gnn,64,1,1\n"
           "7g.40gb,bert,8,1,0.125\n",
      "resnet50-cifar10-tf32 (batch size 128) | a100-mig-3g | - | 1 0 1 25 0\n"
      "bert-base-tf32 (batch size 8) | a100-mig-7g | - | 1 0 1 8 0\n",
      1 },
    { "watts are of a whole GPU", read_power, POWER "bert,8,234.5,88,67,18000\ndummy,1,70,0,0,1\n",
      "bert-base-tf32 (batch size 8) | a100-40 | - | 1 0 1 0 234.5\n", 1 },
    { "tokens of a batch are one step", mlenergy_read,
      MLENERGY "gpqa,Qwen/Qwen3-14B,B200,1,8.0,7.5,7000,14,14,bfloat16,320,225\n"
               "gpqa,Qwen/Qwen3-14B,B200,2,8.0,8,7000,14,14,bfloat16,640,400\n"
               "text-to-image,Qwen/Qwen3-14B,H100,1,,,,14,14,bfloat16,500,\n"
               "gpqa,some/other,H100,1,8,8,70,14,14,bfloat16,500,400\n",
      "Qwen3-14B/gpqa (batch size 8) | b200 | - | 1 0 1 30 320\n", 3 },
    { "a column for each number of GPUs", read_vgg16,
      "global_batch_size,1,2,16\n64,5,9,0\n128,nan,,20\n",
      "vgg16-tf32 (batch size 64) | a100-40 | - | 1 0 1 5 0\n"
      "vgg16-tf32 (batch size 64) | a100-40 | - | 2 0 1 9 0\n"
      "vgg16-tf32 (batch size 128) | a100-40 | - | 16 1 1 20 0\n",
      0 },
    { "a model that is not built in is left out", read_unknown_model, "global_batch_size,1\n64,5\n",
      "", 1 },
};

EACH(figures_become_steps_per_second, reads)
{
    struct draft_text in = { "in.csv", reads[_i].given, strlen(reads[_i].given) };
    struct err e = { 0 };

    ck_assert_msg(reads[_i].read(&d, &in, NULL, &e) == 0, "%s: %s", reads[_i].name, e.text);
    ck_assert_msg(strcmp(show_rows(), reads[_i].want) == 0, "%s:\n%s", reads[_i].name, show_rows());
    ck_assert_int_eq(d.report.n_dropped, reads[_i].n_dropped);
    for (int i = 0; i < d.n_workloads; i++)
        ck_assert_msg(d.workloads[i].flop_per_sample > 0, "%s: %s is not described", reads[_i].name,
                      d.workloads[i].name);
}

static const struct {
    const char *name;
    draft_read_f *read;
    const char *given, *want;
} refusals[] = {
    { "nothing", neusight_read, "", "in.csv" },
    { "only a header", neusight_read, NEUSIGHT, "not one measurement" },
    { "a missing column", neusight_read, "gpu,model\nx,y\n", "mode" },
    { "no time", neusight_read, NEUSIGHT "Tesla_T4,bert_large,train,512,2,,0,1\n",
      "in.csv:2: e2e_latency_ms: 0 is not within" },
    { "a fraction of a batch", neusight_read, NEUSIGHT "Tesla_T4,opt_13,train,512,2.5,,9,1\n",
      "in.csv:2: batch_size: want a whole number" },
    { "no model", neusight_read, NEUSIGHT "Tesla_T4,,train,512,2,,9,1\n",
      "in.csv:2: model: want 1 to 100" },
    { "a time that is a text", pytorch_gpu_benchmark_read,
      PTB "a,TITAN V,1,half,train,vgg16,50,fast\n", "in.csv:2" },
    { "no GPU at all", pytorch_gpu_benchmark_read, PTB "a,TITAN V,0,half,train,vgg16,50,1\n",
      "in.csv:2: num_gpus" },
    { "only what is left out", pytorch_gpu_benchmark_read,
      PTB "a,TITAN V,1,double,train,vgg16,50,1\n", "not one measurement" },
    { "an application nobody knows", pollux_read, POLLUX "gpt9,placements,1,12,0.5,0,,\n",
      "in.csv:2: application: 'gpt9' is not known" },
    { "a placement of letters", pollux_read, POLLUX "bert,placements,1x,12,0.5,0,,\n",
      "in.csv:2: placement: '1x'" },
    { "no placement", pollux_read, POLLUX "bert,placements,,12,0.5,0,,\n", "num_replicas" },
    { "a slice that is none", parvagpu_read, PARVA "bert,5,4,1,80,1\n",
      "in.csv:2: Mig instance: an A100 has no" },
    { "a negative speed", parvagpu_read, PARVA "bert,1,4,1,-1,1\n", "in.csv:2: Throughput" },
    { "no parameters", mlenergy_read, MLENERGY "gpqa,a,B200,1,8,8,7,0,0,bfloat16,1,2\n",
      "in.csv:2: activated_params_billions" },
    { "a slice of nothing", miso_read, MISO "0g,bert,8,1,1\n", "in.csv:2: mig_slice" },
    { "a slice by another name", miso_read, MISO "a100,bert,8,1,1\n", "in.csv:2: mig_slice" },
    { "milliwatts", read_power, POWER "bert,8,234000,88,67,18000\n", "in.csv:2: power_w" },
    { "a table without its first column", read_vgg16, "1,2\n5,9\n", "global_batch_size" },
    { "GPUs that are no number", read_vgg16, "global_batch_size,many\n64,5\n", "number of GPUs" },
    { "a batch of less than one", read_vgg16, "global_batch_size,1\n0,5\n", "in.csv:2" },
    { "a speed below zero", read_vgg16, "global_batch_size,1\n64,-5\n", "in.csv:2" },
};

EACH(malformed_rows_are_refused_with_their_line, refusals)
{
    struct draft_text in = { "in.csv", refusals[_i].given, strlen(refusals[_i].given) };
    struct err e = { 0 };

    ck_assert_msg(refusals[_i].read(&d, &in, NULL, &e) == -EINVAL, "%s", refusals[_i].name);
    ck_assert_msg(strstr(e.text, refusals[_i].want) != NULL && strstr(e.text, "in.csv") == e.text,
                  "%s: %s", refusals[_i].name, e.text);
}

/* ---- descriptors ---- */

static const struct workload *used(enum precision precision, const char *model, bool is_synthetic)
{
    struct model_use use = { .model = model,
                             .family = "f",
                             .batch = 8,
                             .precision = precision,
                             .is_synthetic = is_synthetic };

    int i = model_workload(&d, &use);
    return &d.workloads[i];
}

TEST(bytes_are_those_of_the_precision_and_made_up_input_costs_the_host_nothing)
{
    struct workload trained, answers;

    ck_assert_int_eq(workload_builtin(&d.arena, "vgg16", 8, &trained, NULL), 0);
    ck_assert_int_eq(workload_builtin(&d.arena, "vgg16-infer", 8, &answers, NULL), 0);
    ck_assert(used(PRECISION_TF32, "vgg16", false)->bytes_per_sample == trained.bytes_per_sample);
    ck_assert(used(PRECISION_FP16, "vgg16", false)->bytes_per_sample ==
              trained.bytes_per_sample / 2);
    ck_assert(used(PRECISION_FP16, "vgg16-infer", true)->bytes_per_sample ==
              answers.bytes_per_sample);
    ck_assert(used(PRECISION_FP32, "vgg16-infer", true)->bytes_per_sample ==
              2 * answers.bytes_per_sample);
    ck_assert(used(PRECISION_UNKNOWN, "vgg16", false)->cpu_ms_per_sample > 0);
    ck_assert(used(PRECISION_UNKNOWN, "vgg16", true)->cpu_ms_per_sample == 0);
    ck_assert_str_eq(used(PRECISION_UNKNOWN, "vgg16", true)->dataset, "synthetic");
    ck_assert_str_eq(used(PRECISION_FP16, "vgg16", false)->family, "f");
    ck_assert_int_eq(used(PRECISION_FP16, "vgg16", false)->precision, PRECISION_FP16);
    ck_assert_int_eq(d.n_workloads, 6);
}

static const struct {
    const char *network, *training, *inference;
} families[] = {
    { "resnet101", "resnet", "resnet-infer" },
    { "vgg16_bn", "vgg-bn", "vgg-bn-infer" },
    { "wide_resnet50_2", "wide_resnet", "wide_resnet-infer" },
    { "shufflenet_v2_x0_5", "shufflenet", "shufflenet-infer" },
    { "bert", "bert", "bert-infer" },
};

EACH(networks_of_one_design_are_a_family, families)
{
    ck_assert_str_eq(model_family(&d, families[_i].network, false), families[_i].training);
    ck_assert_str_eq(model_family(&d, families[_i].network, true), families[_i].inference);
}

TEST(a_slice_is_a_part_of_an_a100)
{
    const struct gpu_type *whole = gpu_type_builtin("a100-40");
    int two = model_slice(&d, 2), seven = model_slice(&d, 7);
    const struct gpu_type *t = &d.types[two];

    ck_assert_int_eq(model_slice(&d, 2), two);
    ck_assert_str_eq(t->name, "a100-mig-2g");
    ck_assert_double_eq_tol(t->peak_fp16_flops, whole->peak_fp16_flops * 2 / 7, 1);
    ck_assert_double_eq_tol(t->mem_bytes, whole->mem_bytes / 4, 1);
    ck_assert_int_eq(gpu_type_check(t, NULL), 0);
    ck_assert_double_eq_tol(d.types[seven].bandwidth_bytes_s, whole->bandwidth_bytes_s, 1);
}
