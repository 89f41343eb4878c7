/* gpu_type_table.c - the built-in GPU types and the names people give them.
 *
 * Where the columns come from, unless a row's source says otherwise:
 *
 * peak, bandwidth, memory, cap: the vendor's document named in the row. Dense rates; FP16
 *   is multiply in half precision with FP32 accumulation on tensor or matrix cores. Boards
 *   without fast half precision (K80, P4, P40) compute it at the FP32 rate. Vendors write
 *   GB for what is GiB on the device; GDDR boards with ECC on show about 1/16 less.
 * idle: "assumed": the power model of docs/experiments.md (30, 30 and 40 W idle and caps of
 *   149, 250 and 250 W for K80, P100 and V100), assumed for studies on Gavel's workloads, not
 *   measured. "Zeus": the lowest averages of the Zeus traces (NSDI 2023, NCF on MovieLens:
 *   P100 33 W, V100 35 W, RTX 6000 55 W, A40 80 W) less a tenth, which is how P100's 33 W
 *   compares with its 30 W. "estimate": no measurement we can cite; a share of the cap like
 *   that of the boards in the Zeus traces (12 to 27 %) for large memories, less for boards of
 *   newer or lower-power design. Replace it with your own reading: 'gputype' lines in the
 *   cluster file.
 * sleep: 10 W for K80, P100 and V100 (assumed); elsewhere an estimate, a third of idle.
 * lowest limit: what the driver tells as the least power limit that the board accepts, as owners
 *   report it; for P100 and V100 PCIe, RTX 6000 and A40 also the lowest of Zeus's sweeps. 0, no
 *   limits, for K80 (we know of no measurement of what limits do to it) and for AMD's boards (no
 *   figure that we can cite).
 * launch: an estimate for each generation of what one more small kernel in a stream costs
 *   the device (start, drain, gap), without the framework's own time on the host: Kepler
 *   and Pascal 10 us, Volta and Turing 6 us, Ampere and later 4 us, CDNA 8 us, CDNA 2 and
 *   3 6 us.
 */
#include "catalog/gpu_type.h"

#define T 1e12
#define GB 1e9
#define GIB 1073741824.0
#define US 1e-6

static const struct gpu_type types[] = {
    { "k80", "NVIDIA Tesla K80, one of two dies", 4.37 * T, 4.37 * T, 240 * GB, 12 * GIB, 10 * US,
      30, 10, 149, 0, 0, 2014,
      "NVIDIA Tesla K80 board specification BD-07317 (8.74 TFLOP/s boosted, 480 GB/s, 24 GB for "
      "two dies; boost of 875 MHz and not the base of 562 MHz with 2.8 TFLOP/s a die, because "
      "autoboost is on as delivered and one busy die has the power for it); FP16 at the FP32 "
      "rate; idle, sleep, cap: assumed" },
    { "p4", "NVIDIA Tesla P4", 5.5 * T, 5.5 * T, 192 * GB, 8 * GIB, 10 * US, 8, 3, 75, 60, 0, 2016,
      "NVIDIA Tesla P4 datasheet (5.5 TFLOP/s, 192 GB/s, 8 GB, 75 W); FP16 at the FP32 rate; "
      "idle: estimate, 11 % of cap" },
    { "p40", "NVIDIA Tesla P40", 11.76 * T, 11.76 * T, 346 * GB, 24 * GIB, 10 * US, 20, 7, 250, 125,
      0, 2016,
      "NVIDIA Tesla P40 datasheet (12 TFLOP/s, exactly 3,840 cores x 2 x 1.531 GHz; 346 GB/s, "
      "24 GB, 250 W); FP16 at the FP32 rate; idle: estimate, between owners' readings of 10 W "
      "with empty memory and 45 W with a model loaded" },
    { "p100", "NVIDIA Tesla P100 PCIe 16 GB", 9.3 * T, 18.7 * T, 732 * GB, 16 * GIB, 10 * US, 30,
      10, 250, 125, 0, 2016,
      "NVIDIA Tesla P100 PCIe datasheet (9.3 and 18.7 TFLOP/s, 732 GB/s, 16 GB, 250 W); idle, "
      "sleep, cap: assumed" },
    { "p100-sxm2", "NVIDIA Tesla P100 SXM2 16 GB", 10.6 * T, 21.2 * T, 732 * GB, 16 * GIB, 10 * US,
      30, 10, 300, 150, 0, 2016,
      "NVIDIA Tesla P100 whitepaper WP-08019 (10.6 and 21.2 TFLOP/s, 732 GB/s, 16 GB, 300 W); "
      "idle, sleep: as p100" },
    { "v100-16", "NVIDIA Tesla V100 PCIe 16 GB", 14 * T, 112 * T, 900 * GB, 16 * GIB, 6 * US, 40,
      10, 250, 100, 0, 2017,
      "NVIDIA Tesla V100 datasheet, PCIe column (14 and 112 TFLOP/s, 900 GB/s, 16 GB, 250 W); "
      "idle, sleep, cap: assumed" },
    { "v100-sxm2-16", "NVIDIA Tesla V100 SXM2 16 GB", 15.7 * T, 125 * T, 900 * GB, 16 * GIB, 6 * US,
      40, 10, 300, 150, 0, 2017,
      "NVIDIA Tesla V100 datasheet, SXM2 column (15.7 and 125 TFLOP/s, 900 GB/s, 16 GB, 300 W); "
      "idle, sleep: as v100-16" },
    { "v100-32", "NVIDIA Tesla V100 PCIe 32 GB", 14 * T, 112 * T, 900 * GB, 32 * GIB, 6 * US, 40,
      10, 250, 100, 0, 2018,
      "NVIDIA Tesla V100 datasheet, PCIe column (14 and 112 TFLOP/s, 900 GB/s, 32 GB, 250 W); "
      "idle, sleep, cap: assumed" },
    { "v100-sxm2-32", "NVIDIA Tesla V100 SXM2 32 GB", 15.7 * T, 125 * T, 900 * GB, 32 * GIB, 6 * US,
      40, 10, 300, 150, 0, 2018,
      "NVIDIA Tesla V100 datasheet, SXM2 column (15.7 and 125 TFLOP/s, 900 GB/s, 32 GB, 300 W); "
      "idle, sleep: as v100-16" },
    { "t4", "NVIDIA T4", 8.1 * T, 65 * T, 320 * GB, 16 * GIB, 6 * US, 10, 3, 70, 60, 0, 2018,
      "NVIDIA T4 datasheet and product brief (8.1 and 65 TFLOP/s, 320 GB/s, 16 GB, 70 W); idle: "
      "estimate, 14 % of cap" },
    { "rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", 13.4 * T, 53.8 * T, 616 * GB, 11 * GIB, 6 * US, 25,
      8, 250, 100, 0, 2018,
      "NVIDIA Turing whitepaper WP-09183, reference board (13.4 TFLOP/s; 53.8 with FP32 "
      "accumulation, half of the FP16 one; 616 GB/s, 11 GB, 250 W); idle: estimate, 10 % of cap" },
    { "rtx6000", "NVIDIA Quadro RTX 6000 (Turing)", 16.3 * T, 130.5 * T, 672 * GB, 24 * GIB, 6 * US,
      50, 17, 260, 100, 0, 2018,
      "NVIDIA Turing whitepaper WP-09183 and Quadro RTX 6000 datasheet (16.3 and 130.5 TFLOP/s, "
      "672 GB/s, 24 GB; graphics power 260 W, the default limit); idle: Zeus" },
    { "a40", "NVIDIA A40", 37.4 * T, 149.7 * T, 696 * GB, 48 * GIB, 4 * US, 72, 24, 300, 100, 0,
      2020, "NVIDIA A40 datasheet (37.4 and 149.7 TFLOP/s, 696 GB/s, 48 GB, 300 W); idle: Zeus" },
    { "rtx3090", "NVIDIA GeForce RTX 3090", 35.6 * T, 71.2 * T, 936 * GB, 24 * GIB, 4 * US, 30, 10,
      350, 100, 0, 2020,
      "NVIDIA Ampere GA102 whitepaper (35.6 TFLOP/s; 71.2 with FP32 accumulation, half of the "
      "FP16 one; 936 GB/s, 24 GB, 350 W); idle: estimate, 9 % of cap" },
    { "a100-40", "NVIDIA A100 SXM4 40 GB", 19.5 * T, 312 * T, 1555 * GB, 40 * GIB, 4 * US, 50, 17,
      400, 100, 0, 2020,
      "NVIDIA A100 datasheet, SXM4 40 GB (19.5 and 312 TFLOP/s, 1,555 GB/s, 400 W); idle: "
      "estimate, 12 % of cap" },
    { "a100-40-pcie", "NVIDIA A100 PCIe 40 GB", 19.5 * T, 312 * T, 1555 * GB, 40 * GIB, 4 * US, 35,
      12, 250, 150, 0, 2020,
      "NVIDIA A100 datasheet, PCIe 40 GB (19.5 and 312 TFLOP/s, 1,555 GB/s, 250 W); idle: "
      "estimate, 14 % of cap" },
    { "a100-80", "NVIDIA A100 SXM4 80 GB", 19.5 * T, 312 * T, 2039 * GB, 80 * GIB, 4 * US, 55, 18,
      400, 100, 0, 2020,
      "NVIDIA A100 datasheet, SXM4 80 GB (19.5 and 312 TFLOP/s, 2,039 GB/s, 400 W); idle: "
      "estimate, 14 % of cap" },
    { "mi100", "AMD Instinct MI100", 23.1 * T, 184.6 * T, 1229 * GB, 32 * GIB, 8 * US, 36, 12, 300,
      0, 0, 2020,
      "AMD Instinct MI100 brochure and CDNA whitepaper (23.1 TFLOP/s vector, 184.6 FP16 matrix, "
      "1,228.8 GB/s, 32 GB, 300 W); idle: estimate, 12 % of cap" },
    { "a10", "NVIDIA A10", 31.2 * T, 125 * T, 600 * GB, 24 * GIB, 4 * US, 18, 6, 150, 100, 0, 2021,
      "NVIDIA A10 datasheet (31.2 and 125 TFLOP/s, 600 GB/s, 24 GB, 150 W); idle: estimate, 12 % "
      "of cap" },
    { "a100-80-pcie", "NVIDIA A100 PCIe 80 GB", 19.5 * T, 312 * T, 1935 * GB, 80 * GIB, 4 * US, 42,
      14, 300, 150, 0, 2021,
      "NVIDIA A100 datasheet, PCIe 80 GB (19.5 and 312 TFLOP/s, 1,935 GB/s, 300 W); idle: "
      "estimate, 14 % of cap" },
    { "mi250x", "AMD Instinct MI250X, one of two dies", 23.9 * T, 191.5 * T, 1638 * GB, 64 * GIB,
      6 * US, 45, 15, 250, 0, 0, 2021,
      "AMD Instinct MI200 series datasheet (47.9 TFLOP/s vector, 383 FP16 matrix, 3,276.8 GB/s, "
      "128 GB, 500 W for two dies, halved); idle: estimate, 18 % of cap" },
    { "h100", "NVIDIA H100 SXM5 80 GB", 66.9 * T, 989.4 * T, 3350 * GB, 80 * GIB, 4 * US, 70, 23,
      700, 200, 0, 2022,
      "NVIDIA H100 whitepaper and datasheet, SXM5 (66.9 and 989.4 TFLOP/s, 3.35 TB/s, 80 GB, "
      "700 W); idle: estimate, 10 % of cap" },
    { "h100-pcie", "NVIDIA H100 PCIe 80 GB", 51.2 * T, 756 * T, 2039 * GB, 80 * GIB, 4 * US, 48, 16,
      350, 200, 0, 2022,
      "NVIDIA H100 whitepaper, PCIe (51.2 and 756 TFLOP/s, 2,039 GB/s, 80 GB, 350 W); idle: "
      "estimate, 14 % of cap" },
    { "l4", "NVIDIA L4", 30.3 * T, 121 * T, 300 * GB, 24 * GIB, 4 * US, 12, 4, 72, 40, 0, 2023,
      "NVIDIA L4 datasheet (30.3 TFLOP/s; 242 FP16 with sparsity, halved; 300 GB/s, 24 GB, "
      "72 W); idle: estimate, 17 % of cap" },
    { "l40s", "NVIDIA L40S", 91.6 * T, 362 * T, 864 * GB, 48 * GIB, 4 * US, 36, 12, 350, 100, 0,
      2023,
      "NVIDIA L40S datasheet (91.6 and 362.05 TFLOP/s, 864 GB/s, 48 GB, 350 W); idle: estimate, "
      "10 % of cap" },
    { "h200", "NVIDIA H200 SXM 141 GB", 66.9 * T, 989.4 * T, 4800 * GB, 141 * GIB, 4 * US, 75, 25,
      700, 200, 0, 2023,
      "NVIDIA H200 datasheet, SXM (67 TFLOP/s; 1,979 FP16 with sparsity, halved; 4.8 TB/s, "
      "141 GB, 700 W); idle: estimate, 11 % of cap" },
    { "mi300x", "AMD Instinct MI300X", 163.4 * T, 1307.4 * T, 5300 * GB, 192 * GIB, 6 * US, 140, 47,
      750, 0, 0, 2023,
      "AMD Instinct MI300X datasheet (163.4 TFLOP/s vector, 1,307.4 FP16 matrix, 5.3 TB/s, "
      "192 GB, 750 W); idle: estimate, 19 % of cap" },
    { "b200", "NVIDIA B200 SXM 180 GB", 80 * T, 2250 * T, 8000 * GB, 180 * GIB, 4 * US, 140, 47,
      1000, 200, 0, 2024,
      "NVIDIA Blackwell architecture technical brief, HGX B200 (80 TFLOP/s; 2,250 FP16 dense; "
      "8 TB/s, 1,000 W) and DGX B200 datasheet (1,440 GB for eight); idle: estimate, 14 % of "
      "cap" },
};

/* Each with what NVML, ROCm SMI, traces and people call it. Compared by text_alike, so case and
 * the characters '-', '_' and ' ' do not matter and one spelling of each is enough.
 */
static const char *const aliases[][TEXT_ALIASES] = {
    { "k80", "tesla k80", "nvidia tesla k80" },
    { "p4", "tesla p4" },
    { "p40", "tesla p40" },
    { "p100", "p100-16", "tesla p100", "tesla p100-pcie-16gb" },
    { "p100-sxm2", "tesla p100-sxm2-16gb" },
    { "v100-16", "v100", "v100m16", "tesla v100", "tesla v100-pcie-16gb" },
    { "v100-32", "v100m32", "tesla v100-pcie-32gb" },
    { "v100-sxm2-16", "v100-sxm2", "tesla v100-sxm2-16gb" },
    { "v100-sxm2-32", "tesla v100-sxm2-32gb" },
    { "t4", "tesla t4", "nvidia t4" },
    { "rtx2080ti", "2080ti", "geforce rtx 2080 ti", "nvidia geforce rtx 2080 ti" },
    { "rtx3090", "3090", "geforce rtx 3090", "nvidia geforce rtx 3090" },
    { "rtx6000", "quadro rtx 6000", "nvidia quadro rtx 6000" },
    { "a10", "nvidia a10" },
    { "a40", "nvidia a40" },
    { "a100-40", "a100", "a100-sxm4-40gb", "nvidia a100-sxm4-40gb" },
    { "a100-40-pcie", "a100-pcie-40gb", "nvidia a100-pcie-40gb" },
    { "a100-80", "a100-sxm4-80gb", "nvidia a100-sxm4-80gb" },
    { "a100-80-pcie", "nvidia a100 80gb pcie" },
    { "l4", "nvidia l4" },
    { "l40s", "nvidia l40s" },
    { "h100", "h100-sxm", "h100-80", "nvidia h100 80gb hbm3" },
    { "h100-pcie", "nvidia h100 pcie" },
    { "h200", "nvidia h200" },
    { "b200", "nvidia b200" },
    { "mi100", "instinct mi100", "amd instinct mi100" },
    { "mi250x", "instinct mi250x", "amd instinct mi250x" },
    { "mi300x", "instinct mi300x", "amd instinct mi300x" },
};

enum {
    N_TYPES = sizeof types / sizeof types[0],
    N_ALIASES = sizeof aliases / sizeof aliases[0],
};

const struct gpu_type *gpu_type_builtin_all(int *n)
{
    *n = N_TYPES;
    return types;
}

const struct gpu_type *gpu_type_builtin(const char *name)
{
    name = text_unalias(aliases, N_ALIASES, name);
    for (int i = 0; i < N_TYPES; i++) {
        if (text_alike(types[i].name, name))
            return &types[i];
    }
    return NULL;
}
