/* gpu_type_table.c - the built-in GPU types and the names people give them.
 *
 * Where the columns come from, unless a row's source says otherwise:
 *
 * peak, bandwidth, memory, cap: the vendor's document named in the row. Dense rates; FP16
 *   is multiply in half precision with FP32 accumulation on tensor or matrix cores. Boards
 *   without fast half precision (K80, P4, P40, GTX 1080 Ti, TITAN Xp) compute it at the FP32
 *   rate. TF32, FP8, INT8: of tensor cores, and 0 where there are none for them; P4 and P40 have
 *   instructions for INT8. AMD's boards without TF32 multiply matrices of FP32 numbers at their
 *   FP32 matrix rate, which stands in its place. Vendors write GB for what is GiB on the device;
 *   GDDR boards with ECC on show about 1/16 less.
 * capability: NVIDIA's table of CUDA GPUs and their compute capability, times ten.
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

/* TFLOP/s, or TOP/s. */
#define RATES(fp32, tf32, fp16, fp8, int8) \
    1e12 * (fp32), 1e12 * (tf32), 1e12 * (fp16), 1e12 * (fp8), 1e12 * (int8)
#define GB 1e9
#define GIB 1073741824.0
#define US 1e-6

static const struct gpu_type types[] = {
    { "k80", "NVIDIA Tesla K80, one of two dies", RATES(4.37, 0, 4.37, 0, 0), 240 * GB, 12 * GIB,
      10 * US, 30, 10, 149, 0, 0, 0, 2014, 37,
      "NVIDIA Tesla K80 board specification BD-07317 (8.74 TFLOP/s boosted, 480 GB/s, 24 GB "
      "for two dies; boost of 875 MHz and not the base of 562 MHz with 2.8 TFLOP/s a die, "
      "because autoboost is on as delivered and one busy die has the power for it); FP16 at "
      "the FP32 rate; idle, sleep, cap: assumed" },
    { "p4", "NVIDIA Tesla P4", RATES(5.5, 0, 5.5, 0, 22), 192 * GB, 8 * GIB, 10 * US, 8, 3, 75, 60,
      0, 0, 2016, 61,
      "NVIDIA Tesla P4 datasheet (5.5 TFLOP/s, 22 INT8 TOP/s, 192 GB/s, 8 GB, 75 W); FP16 at "
      "the FP32 rate; idle: estimate, 11 % of cap" },
    { "p40", "NVIDIA Tesla P40", RATES(11.76, 0, 11.76, 0, 47), 346 * GB, 24 * GIB, 10 * US, 20, 7,
      250, 125, 0, 0, 2016, 61,
      "NVIDIA Tesla P40 datasheet (12 TFLOP/s, exactly 3,840 cores x 2 x 1.531 GHz; 47 INT8 "
      "TOP/s, 346 GB/s, 24 GB, 250 W); FP16 at the FP32 rate; idle: estimate, between owners' "
      "readings of 10 W with empty memory and 45 W with a model loaded" },
    { "p100", "NVIDIA Tesla P100 PCIe 16 GB", RATES(9.3, 0, 18.7, 0, 0), 732 * GB, 16 * GIB,
      10 * US, 30, 10, 250, 125, 0, 0, 2016, 60,
      "NVIDIA Tesla P100 PCIe datasheet (9.3 and 18.7 TFLOP/s, 732 GB/s, 16 GB, 250 W); idle, "
      "sleep, cap: assumed" },
    { "p100-sxm2", "NVIDIA Tesla P100 SXM2 16 GB", RATES(10.6, 0, 21.2, 0, 0), 732 * GB, 16 * GIB,
      10 * US, 30, 10, 300, 150, 0, 0, 2016, 60,
      "NVIDIA Tesla P100 whitepaper WP-08019 (10.6 and 21.2 TFLOP/s, 732 GB/s, 16 GB, 300 W); "
      "idle, sleep: as p100" },
    { "v100-16", "NVIDIA Tesla V100 PCIe 16 GB", RATES(14, 0, 112, 0, 0), 900 * GB, 16 * GIB,
      6 * US, 40, 10, 250, 100, 0, 0, 2017, 70,
      "NVIDIA Tesla V100 datasheet, PCIe column (14 and 112 TFLOP/s, 900 GB/s, 16 GB, 250 W); "
      "idle, sleep, cap: assumed" },
    { "v100-sxm2-16", "NVIDIA Tesla V100 SXM2 16 GB", RATES(15.7, 0, 125, 0, 0), 900 * GB, 16 * GIB,
      6 * US, 40, 10, 300, 150, 0, 0, 2017, 70,
      "NVIDIA Tesla V100 datasheet, SXM2 column (15.7 and 125 TFLOP/s, 900 GB/s, 16 GB, 300 "
      "W); idle, sleep: as v100-16" },
    { "gtx1080ti", "NVIDIA GeForce GTX 1080 Ti", RATES(11.34, 0, 11.34, 0, 0), 484 * GB, 11 * GIB,
      10 * US, 10, 3, 250, 125, 0, 0, 2017, 61,
      "NVIDIA GeForce GTX 1080 Ti product page (3,584 cores x 2 x 1.582 GHz, 484 GB/s, 11 GB, "
      "250 W); FP16 at the FP32 rate; idle: estimate, 4 % of cap, as owners read it with an "
      "empty memory" },
    { "titan-xp", "NVIDIA TITAN Xp", RATES(12.15, 0, 12.15, 0, 0), 547.7 * GB, 12 * GIB, 10 * US,
      10, 3, 250, 125, 0, 0, 2017, 61,
      "NVIDIA TITAN Xp product page (3,840 cores x 2 x 1.582 GHz, 547.7 GB/s, 12 GB, 250 W); "
      "FP16 at the FP32 rate; idle: as gtx1080ti" },
    { "titan-v", "NVIDIA TITAN V", RATES(13.8, 0, 110, 0, 0), 652.8 * GB, 12 * GIB, 6 * US, 25, 8,
      250, 100, 0, 0, 2017, 70,
      "NVIDIA TITAN V product page (110 TFLOP/s on tensor cores, an eighth of it, 13.8, in "
      "FP32; 652.8 GB/s, 12 GB, 250 W); idle: estimate, 10 % of cap" },
    { "v100-32", "NVIDIA Tesla V100 PCIe 32 GB", RATES(14, 0, 112, 0, 0), 900 * GB, 32 * GIB,
      6 * US, 40, 10, 250, 100, 0, 0, 2018, 70,
      "NVIDIA Tesla V100 datasheet, PCIe column (14 and 112 TFLOP/s, 900 GB/s, 32 GB, 250 W); "
      "idle, sleep, cap: assumed" },
    { "v100-sxm2-32", "NVIDIA Tesla V100 SXM2 32 GB", RATES(15.7, 0, 125, 0, 0), 900 * GB, 32 * GIB,
      6 * US, 40, 10, 300, 150, 0, 0, 2018, 70,
      "NVIDIA Tesla V100 datasheet, SXM2 column (15.7 and 125 TFLOP/s, 900 GB/s, 32 GB, 300 "
      "W); idle, sleep: as v100-16" },
    { "t4", "NVIDIA T4", RATES(8.1, 0, 65, 0, 130), 320 * GB, 16 * GIB, 6 * US, 10, 3, 70, 60, 0, 0,
      2018, 75,
      "NVIDIA T4 datasheet and product brief (8.1 and 65 TFLOP/s, 130 INT8 TOP/s, 320 GB/s, 16 "
      "GB, 70 W); idle: estimate, 14 % of cap" },
    { "rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", RATES(13.4, 0, 53.8, 0, 215.2), 616 * GB, 11 * GIB,
      6 * US, 25, 8, 250, 100, 0, 0, 2018, 75,
      "NVIDIA Turing whitepaper WP-09183, reference board (13.4 TFLOP/s; 53.8 with FP32 "
      "accumulation, half of the FP16 one; 215.2 INT8 TOP/s, 616 GB/s, 11 GB, 250 W); idle: "
      "estimate, 10 % of cap" },
    { "rtx6000", "NVIDIA Quadro RTX 6000 (Turing)", RATES(16.3, 0, 130.5, 0, 261), 672 * GB,
      24 * GIB, 6 * US, 50, 17, 260, 100, 0, 0, 2018, 75,
      "NVIDIA Turing whitepaper WP-09183 and Quadro RTX 6000 datasheet (16.3 and 130.5 "
      "TFLOP/s, 261 INT8 TOP/s, 672 GB/s, 24 GB; graphics power 260 W, the default limit); "
      "idle: Zeus" },
    { "titan-rtx", "NVIDIA TITAN RTX", RATES(16.3, 0, 130.5, 0, 261), 672 * GB, 24 * GIB, 6 * US,
      25, 8, 280, 100, 0, 0, 2018, 75,
      "NVIDIA Turing whitepaper WP-09183 (the full TU102 of Quadro RTX 6000: 16.3 and 130.5 "
      "TFLOP/s, 261 INT8 TOP/s) and TITAN RTX product page (130 tensor TFLOP/s, 672 GB/s, 24 "
      "GB, 280 W); idle: estimate, 9 % of cap" },
    { "a40", "NVIDIA A40", RATES(37.4, 74.8, 149.7, 0, 299.3), 696 * GB, 48 * GIB, 4 * US, 72, 24,
      300, 100, 0, 0, 2020, 86,
      "NVIDIA A40 datasheet (37.4, TF32 74.8 and 149.7 TFLOP/s, 299.3 INT8 TOP/s, 696 GB/s, 48 "
      "GB, 300 W); idle: Zeus" },
    { "rtx3090", "NVIDIA GeForce RTX 3090", RATES(35.6, 35.6, 71.2, 0, 284.7), 936 * GB, 24 * GIB,
      4 * US, 30, 10, 350, 100, 0, 0, 2020, 86,
      "NVIDIA Ampere GA102 whitepaper (35.6 TFLOP/s; 71.2 with FP32 accumulation, half of the "
      "FP16 one; TF32 35.6, 284.7 INT8 TOP/s, 936 GB/s, 24 GB, 350 W); idle: estimate, 9 % of "
      "cap" },
    { "a100-40", "NVIDIA A100 SXM4 40 GB", RATES(19.5, 156, 312, 0, 624), 1555 * GB, 40 * GIB,
      4 * US, 50, 17, 400, 100, 0, 0, 2020, 80,
      "NVIDIA A100 datasheet, SXM4 40 GB (19.5, TF32 156 and 312 TFLOP/s, 624 INT8 TOP/s, "
      "1,555 GB/s, 400 W); idle: estimate, 12 % of cap" },
    { "a100-40-pcie", "NVIDIA A100 PCIe 40 GB", RATES(19.5, 156, 312, 0, 624), 1555 * GB, 40 * GIB,
      4 * US, 35, 12, 250, 150, 0, 0, 2020, 80,
      "NVIDIA A100 datasheet, PCIe 40 GB (19.5, TF32 156 and 312 TFLOP/s, 624 INT8 TOP/s, "
      "1,555 GB/s, 250 W); idle: estimate, 14 % of cap" },
    { "a100-80", "NVIDIA A100 SXM4 80 GB", RATES(19.5, 156, 312, 0, 624), 2039 * GB, 80 * GIB,
      4 * US, 55, 18, 400, 100, 0, 0, 2020, 80,
      "NVIDIA A100 datasheet, SXM4 80 GB (19.5, TF32 156 and 312 TFLOP/s, 624 INT8 TOP/s, "
      "2,039 GB/s, 400 W); idle: estimate, 14 % of cap" },
    { "mi100", "AMD Instinct MI100", RATES(23.1, 46.1, 184.6, 0, 184.6), 1229 * GB, 32 * GIB,
      8 * US, 36, 12, 300, 0, 0, 0, 2020, 0,
      "AMD Instinct MI100 brochure and CDNA whitepaper (23.1 TFLOP/s vector, 46.1 FP32 matrix, "
      "184.6 FP16 and INT8 matrix, 1,228.8 GB/s, 32 GB, 300 W); idle: estimate, 12 % of cap" },
    { "a6000", "NVIDIA RTX A6000", RATES(38.7, 77.4, 154.8, 0, 309.7), 768 * GB, 48 * GIB, 4 * US,
      25, 8, 300, 100, 0, 0, 2020, 86,
      "NVIDIA RTX A6000 datasheet and Ampere GA102 whitepaper (38.7, TF32 77.4 and 154.8 "
      "TFLOP/s, 309.7 INT8 TOP/s, 768 GB/s, 48 GB, 300 W); idle: estimate, 8 % of cap" },
    { "a10", "NVIDIA A10", RATES(31.2, 62.5, 125, 0, 250), 600 * GB, 24 * GIB, 4 * US, 18, 6, 150,
      100, 0, 0, 2021, 86,
      "NVIDIA A10 datasheet (31.2, TF32 62.5 and 125 TFLOP/s, 250 INT8 TOP/s, 600 GB/s, 24 GB, "
      "150 W); idle: estimate, 12 % of cap" },
    { "a100-80-pcie", "NVIDIA A100 PCIe 80 GB", RATES(19.5, 156, 312, 0, 624), 1935 * GB, 80 * GIB,
      4 * US, 42, 14, 300, 150, 0, 0, 2021, 80,
      "NVIDIA A100 datasheet, PCIe 80 GB (19.5, TF32 156 and 312 TFLOP/s, 624 INT8 TOP/s, "
      "1,935 GB/s, 300 W); idle: estimate, 14 % of cap" },
    { "mi250x", "AMD Instinct MI250X, one of two dies", RATES(23.9, 47.9, 191.5, 0, 191.5),
      1638 * GB, 64 * GIB, 6 * US, 45, 15, 250, 0, 0, 0, 2021, 0,
      "AMD Instinct MI200 series datasheet (47.9 TFLOP/s vector, 95.7 FP32 matrix, 383 FP16 "
      "and INT8 matrix, 3,276.8 GB/s, 128 GB, 500 W for two dies, halved); idle: estimate, 18 "
      "% of cap" },
    { "a30", "NVIDIA A30", RATES(10.3, 82, 165, 0, 330), 933 * GB, 24 * GIB, 4 * US, 30, 10, 165,
      100, 0, 0, 2021, 80,
      "NVIDIA A30 datasheet (10.3, TF32 82 and 165 TFLOP/s, 330 INT8 TOP/s, 933 GB/s, 24 GB, "
      "165 W); idle: estimate, 18 % of cap" },
    { "mi210", "AMD Instinct MI210", RATES(22.6, 45.3, 181, 0, 181), 1638 * GB, 64 * GIB, 6 * US,
      40, 13, 300, 0, 0, 0, 2021, 0,
      "AMD Instinct MI210 datasheet (22.6 TFLOP/s vector, 45.3 FP32 matrix, 181 FP16 and INT8 "
      "matrix, 1.6 TB/s, exactly 1,638.4 GB/s; 64 GB, 300 W); idle: estimate, 13 % of cap" },
    { "h100", "NVIDIA H100 SXM5 80 GB", RATES(66.9, 494.7, 989.4, 1978.9, 1978.9), 3350 * GB,
      80 * GIB, 4 * US, 70, 23, 700, 200, 0, 0, 2022, 90,
      "NVIDIA H100 whitepaper and datasheet, SXM5 (66.9, TF32 494.7, 989.4, FP8 and INT8 "
      "1,978.9 TFLOP/s, 3.35 TB/s, 80 GB, 700 W); idle: estimate, 10 % of cap" },
    { "h100-pcie", "NVIDIA H100 PCIe 80 GB", RATES(51.2, 378, 756, 1513, 1513), 2039 * GB, 80 * GIB,
      4 * US, 48, 16, 350, 200, 0, 0, 2022, 90,
      "NVIDIA H100 whitepaper, PCIe (51.2, TF32 378, 756, FP8 and INT8 1,513 TFLOP/s, 2,039 "
      "GB/s, 80 GB, 350 W); idle: estimate, 14 % of cap" },
    { "rtx4090", "NVIDIA GeForce RTX 4090", RATES(82.6, 82.6, 165.2, 330.3, 660.6), 1008 * GB,
      24 * GIB, 4 * US, 25, 8, 450, 150, 0, 0, 2022, 89,
      "NVIDIA Ada GPU architecture whitepaper (82.6 TFLOP/s in FP32 and TF32; 165.2 in FP16 "
      "and 330.3 in FP8 with FP32 accumulation, half of the FP16 one; 660.6 INT8 TOP/s, 1,008 "
      "GB/s, 24 GB, 450 W); idle: estimate, 6 % of cap" },
    { "l40", "NVIDIA L40", RATES(90.5, 90.5, 181, 362, 362), 864 * GB, 48 * GIB, 4 * US, 35, 12,
      300, 100, 0, 0, 2022, 89,
      "NVIDIA L40 datasheet (90.5 TFLOP/s in FP32 and TF32, FP16 181, FP8 and INT8 362, 864 "
      "GB/s, 48 GB, 300 W); idle: estimate, 12 % of cap" },
    { "l4", "NVIDIA L4", RATES(30.3, 60, 121, 242.5, 242.5), 300 * GB, 24 * GIB, 4 * US, 12, 4, 72,
      40, 0, 0, 2023, 89,
      "NVIDIA L4 datasheet (30.3 TFLOP/s; 120 TF32, 242 FP16, 485 FP8 and INT8 with sparsity, "
      "halved; 300 GB/s, 24 GB, 72 W); idle: estimate, 17 % of cap" },
    { "l40s", "NVIDIA L40S", RATES(91.6, 183, 362, 733, 733), 864 * GB, 48 * GIB, 4 * US, 36, 12,
      350, 100, 0, 0, 2023, 89,
      "NVIDIA L40S datasheet (91.6, TF32 183, 362.05, FP8 and INT8 733 TFLOP/s, 864 GB/s, 48 "
      "GB, 350 W); idle: estimate, 10 % of cap" },
    { "h200", "NVIDIA H200 SXM 141 GB", RATES(66.9, 494.7, 989.4, 1978.9, 1978.9), 4800 * GB,
      141 * GIB, 4 * US, 75, 25, 700, 200, 0, 0, 2023, 90,
      "NVIDIA H200 datasheet, SXM (67 TFLOP/s; 989 TF32, 1,979 FP16, 3,958 FP8 and INT8 with "
      "sparsity, halved; 4.8 TB/s, 141 GB, 700 W); idle: estimate, 11 % of cap" },
    { "mi300x", "AMD Instinct MI300X", RATES(163.4, 653.7, 1307.4, 2614.9, 2614.9), 5300 * GB,
      192 * GIB, 6 * US, 140, 47, 750, 0, 0, 0, 2023, 0,
      "AMD Instinct MI300X datasheet (163.4 TFLOP/s vector, TF32 653.7, 1,307.4 FP16, 2,614.9 "
      "FP8 and INT8 matrix, 5.3 TB/s, 192 GB, 750 W); idle: estimate, 19 % of cap" },
    { "gh200", "NVIDIA GH200 96 GB, its H100", RATES(66.9, 494.7, 989.4, 1978.9, 1978.9), 4000 * GB,
      96 * GIB, 4 * US, 80, 27, 900, 200, 0, 0, 2023, 90,
      "NVIDIA GH200 datasheet (67 TFLOP/s; 989 TF32, 1,979 FP16, 3,958 FP8 and INT8 with "
      "sparsity, halved; 4 TB/s, 96 GB; 450 to 1,000 W for the whole module); cap: estimate, "
      "what is left of the module's by its CPU; idle: estimate, 9 % of cap" },
    { "b200", "NVIDIA B200 SXM 180 GB", RATES(80, 1125, 2250, 4500, 4500), 8000 * GB, 180 * GIB,
      4 * US, 140, 47, 1000, 200, 0, 0, 2024, 100,
      "NVIDIA Blackwell architecture technical brief, HGX B200 (80 TFLOP/s; TF32 1,125, FP16 "
      "2,250, FP8 and INT8 4,500 dense; 8 TB/s, 1,000 W) and DGX B200 datasheet (1,440 GB for "
      "eight); idle: estimate, 14 % of cap" },
};

/* Each with what NVML, ROCm SMI, traces and people call it. Compared by text_alike, so case and
 * the characters '-', '_' and ' ' do not matter and one spelling of each is enough.
 */
static const char *const aliases[][TEXT_ALIASES] = {
    { "k80", "tesla k80", "nvidia tesla k80" },
    { "p4", "tesla p4" },
    { "p40", "tesla p40" },
    { "gtx1080ti", "1080ti", "geforce gtx 1080 ti", "nvidia geforce gtx 1080 ti" },
    { "titan-xp", "nvidia titan xp" },
    { "titan-v", "nvidia titan v" },
    { "titan-rtx", "nvidia titan rtx" },
    { "p100", "p100-16", "tesla p100", "tesla p100-pcie-16gb" },
    { "p100-sxm2", "tesla p100-sxm2-16gb" },
    { "v100-16", "v100", "v100m16", "tesla v100", "tesla v100-pcie-16gb" },
    { "v100-32", "v100m32", "tesla v100-pcie-32gb" },
    { "v100-sxm2-16", "v100-sxm2", "tesla v100-sxm2-16gb" },
    { "v100-sxm2-32", "tesla v100-sxm2-32gb" },
    { "t4", "tesla t4", "nvidia t4" },
    { "rtx2080ti", "2080ti", "geforce rtx 2080 ti", "nvidia geforce rtx 2080 ti" },
    { "rtx3090", "3090", "geforce rtx 3090", "nvidia geforce rtx 3090" },
    { "rtx4090", "4090", "geforce rtx 4090", "nvidia geforce rtx 4090" },
    { "rtx6000", "quadro rtx 6000", "nvidia quadro rtx 6000" },
    { "a10", "nvidia a10" },
    { "a30", "nvidia a30" },
    { "a40", "nvidia a40" },
    { "a6000", "rtx a6000", "nvidia rtx a6000" },
    { "a100-40", "a100", "a100-sxm4-40gb", "nvidia a100-sxm4-40gb" },
    { "a100-40-pcie", "a100-pcie-40gb", "nvidia a100-pcie-40gb" },
    { "a100-80", "a100-sxm4-80gb", "nvidia a100-sxm4-80gb" },
    { "a100-80-pcie", "nvidia a100 80gb pcie" },
    { "l4", "nvidia l4" },
    { "l40", "nvidia l40" },
    { "l40s", "nvidia l40s" },
    { "h100", "h100-sxm", "h100-80", "nvidia h100 80gb hbm3" },
    { "h100-pcie", "nvidia h100 pcie" },
    { "h200", "nvidia h200" },
    { "gh200", "gh200-96", "nvidia gh200 480gb" },
    { "b200", "nvidia b200" },
    { "mi100", "instinct mi100", "amd instinct mi100" },
    { "mi210", "instinct mi210", "amd instinct mi210" },
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
