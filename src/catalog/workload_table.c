/* workload_table.c - the built-in models at their usual batch sizes.
 *
 * Figures are public knowledge, meant to be right to about 1.5x; what was chosen
 * with measurements in view is named below. The rules, where a row does not say otherwise:
 *
 * params, FLOP: from the paper named above the row. A multiply-add is two FLOP and the
 *   backward pass costs twice the forward one. Attention networks: 6 FLOP a parameter and
 *   token (embeddings left out unless they are also the output layer) and 12*s*s*h a layer
 *   for sequences of s tokens and width h.
 * bytes (training): three times the activations kept for the backward pass, in FP32:
 *   written forward, read backward, and their gradients. Convolutions with batch
 *   normalisation keep about 9 bytes an output element; an attention layer keeps
 *   s*h*(64 + 9*a*s/h) bytes with a heads (twice the FP16 count of Korthikanti et al. 2022).
 *   Mixed precision halves it.
 * bytes (inference): FP16 activations or KV cache read and written; the weights are
 *   added by workload_step().
 * kernels: about 8 launches a parameter tensor and training step in convolution networks
 *   with SGD, 12 in attention networks with Adam; inference: about 12 a transformer layer
 *   and 3 a convolution.
 * cpu: as in Gavel's rows, a decoded and cropped ImageNet picture takes 1.3 ms,
 *   a CIFAR picture 0.15 ms, a tokenised text 0.05 ms. A step: 10 us a launch, the pace of
 *   an eager framework; 2 ms where launches are recorded and replayed (text generators) or
 *   issued by one library call (DeepSpeech2's layers, 20 ms). Gavel's rows: as given.
 *
 * Held against measurements of others (Zeus, Gavel, NeuSight, Pollux; torchvision on an
 * RTX 2080 Ti), with time taken as FLOP at 65 % of the FP32 peak plus 0.3 of the bytes at
 * full bandwidth or as the launches, whichever is longer: large batches of ResNets, BERT,
 * GPT-2, DeepSpeech2 and YOLOv3 mostly take 0.75 to 1.5 times that. Further off: DeepSpeech2
 * on a P100 and BERT on a T4 (about 2), VGG-16 (0.6; probably Winograd), DenseNet
 * and MobileNet at batch 12 (2 to 5, probably the host) and Gavel's LM and Transformer (2 to
 * 9), which are kept as published.
 *
 * For some rows that is no independent test, as choices were made with the same traces in
 * view: DeepSpeech2 (the variant of 38 M and not 87 M; bytes by the largest batches that
 * fit), bert-base-sentiment (50 tokens and not 128), the host's time of ncf and
 * shufflenetv2, shufflenetv2's bytes, and the 10 us a launch.
 *
 * Sequence lengths and what a step is are part of the model: bert-base is SQuAD at 384
 * tokens, and a step of a text generator is one token for every sequence of the batch.
 */
#include "catalog/workload.h"

#include <errno.h>
#include <math.h>

#include "base/err.h"
#include "catalog/burn.h"

// NOLINTBEGIN(bugprone-macro-parentheses): pieces of an initialiser; strings are joined
#define AT(model, b) .name = model " (batch size " #b ")", .family = model, .batch = b
#define ALONE(model) .name = model, .family = model, .batch = NAN
#define COST(p, flop, bytes, kernels) \
    .params = p, .flop_per_sample = flop, .bytes_per_sample = bytes, .kernels_per_step = kernels
#define HOST(sample, step) .cpu_ms_per_sample = sample, .cpu_ms_per_step = step, NO_PROFILE
#define NO_PROFILE \
    .gpu_activity = NAN, .mem_activity = NAN, .solo_watts = NAN, .mem_used_bytes = NAN
// NOLINTEND(bugprone-macro-parentheses)

#define CLASSIFY "image-classification"
#define GENERATE "text-generation"
#define LANGUAGE "language-modeling"
#define SPEECH "speech-recognition"

/* ---- what published measurements are of ----
 *
 * torchvision's networks at 224x224 (inception 299x299): million parameters and G multiply-adds as
 * its documentation has them; million convolution outputs as timm counts activations (those of
 * ShuffleNet, SqueezeNet and of MNASNet other than 1.0: our count, to about 1.3x); convolutions;
 * bytes an output moves in training and launches a convolution takes, with batch normalisation (27,
 * 24), without (15, 16), and with DenseNet's concatenations (46, 24). Answering reads and writes
 * about 6.3 bytes an output in FP16, as resnet50-infer does.
 */
#define TRAINED_ABOVE(X)                                \
    X("resnet18-imagenet", 11.7, 1.81, 2.5, 20, 27, 24) \
    X("resnet34", 21.8, 3.66, 3.7, 36, 27, 24)          \
    X("resnet101", 44.5, 7.80, 16.2, 104, 27, 24)       \
    X("resnet152", 60.2, 11.51, 22.6, 155, 27, 24)      \
    X("vgg16", 138.4, 15.47, 13.6, 13, 15, 16)          \
    X("inception-v3", 27.2, 5.71, 9.0, 94, 27, 24)      \
    X("densenet121", 7.98, 2.83, 6.9, 120, 46, 24)      \
    X("mobilenet-v2", 3.50, 0.30, 6.7, 52, 27, 24)
#define TRAINED_HERE(X)                                   \
    X("densenet161", 28.7, 7.73, 11.1, 160, 46, 24)       \
    X("densenet169", 14.1, 3.36, 7.3, 168, 46, 24)        \
    X("densenet201", 20.0, 4.29, 7.9, 200, 46, 24)        \
    X("mnasnet0-5", 2.22, 0.10, 3.1, 52, 27, 24)          \
    X("mnasnet0-75", 3.17, 0.21, 4.4, 52, 27, 24)         \
    X("mnasnet1-0", 4.38, 0.31, 5.5, 52, 27, 24)          \
    X("mnasnet1-3", 6.28, 0.53, 7.0, 52, 27, 24)          \
    X("resnext50-32x4d", 25.0, 4.23, 14.4, 53, 27, 24)    \
    X("resnext101-32x8d", 88.8, 16.41, 31.2, 104, 27, 24) \
    X("shufflenet-v2-x0-5", 1.37, 0.04, 1.0, 56, 27, 24)  \
    X("shufflenet-v2-x1-0", 2.28, 0.14, 2.0, 56, 27, 24)  \
    X("shufflenet-v2-x1-5", 3.50, 0.30, 2.9, 56, 27, 24)  \
    X("shufflenet-v2-x2-0", 7.39, 0.58, 4.0, 56, 27, 24)  \
    X("squeezenet1-0", 1.25, 0.82, 4.0, 26, 15, 16)       \
    X("squeezenet1-1", 1.24, 0.35, 2.2, 26, 15, 16)       \
    X("vgg11", 132.9, 7.61, 7.4, 8, 15, 16)               \
    X("vgg11-bn", 132.9, 7.61, 7.4, 8, 27, 24)            \
    X("vgg13", 133.0, 11.31, 12.3, 10, 15, 16)            \
    X("vgg13-bn", 133.1, 11.31, 12.3, 10, 27, 24)         \
    X("vgg16-bn", 138.4, 15.47, 13.6, 13, 27, 24)         \
    X("vgg19", 143.7, 19.63, 14.9, 16, 15, 16)            \
    X("vgg19-bn", 143.7, 19.63, 14.9, 16, 27, 24)         \
    X("wide-resnet50-2", 68.9, 11.40, 14.4, 53, 27, 24)   \
    X("wide-resnet101-2", 126.9, 22.75, 21.2, 104, 27, 24)

#define TRAINS(model, p, macs, outputs, convs, bytes, launches)                 \
    { AT(model, 32),                                                            \
      .task = CLASSIFY,                                                         \
      .dataset = "ImageNet",                                                    \
      COST((p)*1e6, (macs)*6e9, (outputs) * (bytes)*1e6, (convs) * (launches)), \
      HOST(1.3, (convs) * (launches) / 100.0),                                  \
      .conv = 1 },
#define ANSWERS(model, p, macs, outputs, convs, bytes, launches) \
    { AT(model "-infer", 16),                                    \
      .is_inference = true,                                      \
      .task = CLASSIFY,                                          \
      .dataset = "ImageNet",                                     \
      COST((p)*1e6, (macs)*2e9, (outputs)*6.3e6, (convs)*3),     \
      HOST(0.2, 0.3 + (convs)*3 / 100.0),                        \
      .conv = 1 },

// NOLINTBEGIN(bugprone-macro-parentheses): pieces of an initialiser
#define BENCHMARK(model, b, layers, side, elements, tiny, host_ms, products)                \
    { AT(model, b),                                                                         \
      .is_inference = true,                                                                 \
      .task = "benchmark",                                                                  \
      .dataset = "none",                                                                    \
      .precision = PRECISION_FP32,                                                          \
      COST(BURN_PARAMS(layers, side), BURN_FLOP(layers, side, elements, tiny),              \
           BURN_BYTES(layers, side, elements, tiny), BURN_KERNELS(layers, elements, tiny)), \
      HOST(0, host_ms),                                                                     \
      .gemm = products },
// NOLINTEND(bugprone-macro-parentheses)

static const struct workload models[] = {
    /* The seven families of the Gavel traces (OSDI 2020), approximate to about 1.4x. */
    { AT("ResNet-18", 128), .task = CLASSIFY, .dataset = "CIFAR-10",
      COST(11.2e6, 3.34e9, 20e6, 500), HOST(0.15, 1), .conv = 1 },
    { AT("ResNet-50", 64), .task = CLASSIFY, .dataset = "ImageNet",
      COST(25.6e6, 24.6e9, 300e6, 1300), HOST(1.3, 1), .conv = 1 },
    { AT("Transformer", 64), .task = "translation", .dataset = "Multi30k",
      COST(50e6, 5.9e9, 50e6, 2500), HOST(0.05, 2), .gemm = 1 },
    { ALONE("A3C"), .task = "reinforcement-learning", .dataset = "Pong",
      COST(1.3e6, 2e9, 4e6, 3000), HOST(0, 100), .conv = 0.5, .rnn = 0.5 },
    { AT("LM", 20), .task = LANGUAGE, .dataset = "WikiText-2", COST(13.9e6, 1.53e9, 28e6, 150),
      HOST(0, 1), .gemm = 0.5, .rnn = 1 },
    { AT("Recommendation", 2048), .task = "recommendation", .dataset = "ML-20M",
      COST(8.0e6, 48e6, 0.5e6, 60), HOST(0.03, 1), .gemm = 0.5, .sparse = 1 },
    { ALONE("CycleGAN"), .task = "image-to-image", .dataset = "monet2photo",
      COST(28.3e6, 1.9e12, 5e9, 4000), HOST(20, 2), .conv = 1 },

    /* Pictures, trained at 224x224 unless said. He et al. 2015: 1.8, 3.7, 7.8 and 11.5
     * G multiply-adds; 2.5, 3.7, 16.2 and 22.6 M convolution outputs.
     */
    { AT("resnet18-imagenet", 128), .task = CLASSIFY, .dataset = "ImageNet",
      COST(11.7e6, 10.9e9, 67e6, 500), HOST(1.3, 5), .conv = 1 },
    { AT("resnet34", 64), .task = CLASSIFY, .dataset = "ImageNet", COST(21.8e6, 22.0e9, 101e6, 900),
      HOST(1.3, 9), .conv = 1 },
    { AT("resnet101", 32), .task = CLASSIFY, .dataset = "ImageNet",
      COST(44.5e6, 46.8e9, 437e6, 2500), HOST(1.3, 25), .conv = 1 },
    { AT("resnet152", 32), .task = CLASSIFY, .dataset = "ImageNet",
      COST(60.2e6, 69.0e9, 610e6, 3700), HOST(1.3, 37), .conv = 1 },
    /* Simonyan and Zisserman 2014: 15.5 G; 13.6 M outputs, no batch normalisation. */
    { AT("vgg16", 32), .task = CLASSIFY, .dataset = "ImageNet", COST(138.4e6, 93.0e9, 190e6, 260),
      HOST(1.3, 3), .conv = 1 },
    /* Szegedy et al. 2015: 5.7 G at 299x299; 9 M outputs. */
    { AT("inception-v3", 32), .task = CLASSIFY, .dataset = "ImageNet",
      COST(27.2e6, 34.3e9, 243e6, 2300), HOST(1.6, 23), .conv = 1 },
    /* Huang et al. 2016: 2.87 G; 6.9 M outputs, each copied by the concatenations. */
    { AT("densenet121", 32), .task = CLASSIFY, .dataset = "ImageNet",
      COST(8.0e6, 17.2e9, 320e6, 2900), HOST(1.3, 29), .conv = 1 },
    /* Sandler et al. 2018: 0.31 G; 6.7 M outputs. */
    { AT("mobilenet-v2", 64), .task = CLASSIFY, .dataset = "ImageNet",
      COST(3.5e6, 1.88e9, 200e6, 1300), HOST(1.3, 13), .conv = 1 },
    /* Tan and Le 2019: 0.39 G; 6.8 M outputs, swish keeps its input as well. */
    { AT("efficientnet-b0", 64), .task = CLASSIFY, .dataset = "ImageNet",
      COST(5.3e6, 2.34e9, 300e6, 2000), HOST(1.3, 20), .conv = 1 },
    /* Ma et al. 2018, widened for 32x32 as in Zeus (NSDI 2023): 46 M multiply-adds; kernels
     * with Adadelta, which takes about ten launches a tensor.
     */
    { AT("shufflenetv2", 1024), .task = CLASSIFY, .dataset = "CIFAR-100",
      COST(1.3e6, 0.28e9, 20e6, 3000), HOST(0.15, 30), .conv = 1 },
    /* Dosovitskiy et al. 2020: 17.6 and 61.6 G at 197 tokens. */
    { AT("vit-base", 32), .task = CLASSIFY, .dataset = "ImageNet", COST(86.6e6, 105e9, 500e6, 1800),
      HOST(1.3, 18), .gemm = 1 },
    { AT("vit-large", 16), .task = CLASSIFY, .dataset = "ImageNet",
      COST(304e6, 369e9, 1.33e9, 3600), HOST(1.3, 36), .gemm = 1 },
    /* Liu et al. 2021: 4.5 G; 17 M outputs, about 8 bytes of each kept. */
    { AT("swin-tiny", 64), .task = CLASSIFY, .dataset = "ImageNet", COST(28.3e6, 27e9, 420e6, 2400),
      HOST(1.3, 24), .conv = 0.1, .gemm = 1 },
    /* Ronneberger et al. 2015, padded, at 256x256: 55 G; 40 M outputs. */
    { AT("unet", 16), .task = "image-segmentation", .dataset = "Carvana",
      COST(31.0e6, 328e9, 1.1e9, 700), HOST(3, 7), .conv = 1 },
    /* Redmon and Farhadi 2018: 66 GFLOP at 416x416; 36 M outputs. */
    { AT("yolov3", 8), .task = "object-detection", .dataset = "PASCAL VOC",
      COST(61.9e6, 197e9, 1.0e9, 1800), HOST(5, 18), .conv = 1 },
    /* Ultralytics model card: 16.5 GFLOP at 640x640. */
    { AT("yolov5s", 16), .task = "object-detection", .dataset = "COCO",
      COST(7.2e6, 49.5e9, 1.0e9, 1500), HOST(6, 15), .conv = 1 },
    /* Rombach et al. 2022: U-Net of 860 M, 0.34 T multiply-adds at 64x64 latents, and one
     * pass of the frozen picture encoder (1.1 TFLOP).
     */
    { AT("stable-diffusion-train", 1), .task = "image-generation", .dataset = "LAION",
      COST(860e6, 3.1e12, 13.5e9, 8000), HOST(10, 80), .conv = 1, .gemm = 0.5 },

    /* Speech, trained. Amodei et al. 2015, 38 M as in the paper: 5 bidirectional layers
     * over 635 steps of a 12.7 s utterance, 6 FLOP a parameter and step, 41 GFLOP of
     * convolutions; a layer, direction and step takes about 6 launches.
     */
    { AT("deepspeech2", 32), .task = SPEECH, .dataset = "LibriSpeech",
      COST(38e6, 186e9, 450e6, 38000), HOST(2, 20), .conv = 0.3, .gemm = 0.5, .rnn = 1 },
    /* Baevski et al. 2020, fine-tuned: 780 frames of 15.6 s and 38 G of convolutions. */
    { AT("wav2vec2-base", 8), .task = SPEECH, .dataset = "LibriSpeech",
      COST(95e6, 690e9, 5.5e9, 2500), HOST(3, 25), .conv = 0.4, .gemm = 1 },

    /* Text, trained. Devlin et al. 2018: SQuAD at 384 tokens; sentiment: tweets of about
     * 50 tokens (Sentiment140, as in Zeus).
     */
    { AT("bert-base", 32), .task = "question-answering", .dataset = "SQuAD",
      COST(110e6, 212e9, 1.3e9, 2400), HOST(0.05, 24), .gemm = 1 },
    { AT("bert-base-sentiment", 64), .task = "text-classification", .dataset = "Sentiment140",
      COST(110e6, 26e9, 110e6, 2400), HOST(0.05, 24), .gemm = 1 },
    { AT("bert-large", 8), .task = "question-answering", .dataset = "SQuAD",
      COST(335e6, 739e9, 3.3e9, 4700), HOST(0.05, 47), .gemm = 1 },
    /* Liu et al. 2019 and Sanh et al. 2019, fine-tuned at 128 tokens. */
    { AT("roberta-base", 32), .task = "text-classification", .dataset = "GLUE",
      COST(125e6, 67e9, 290e6, 2400), HOST(0.05, 24), .gemm = 1 },
    { AT("distilbert", 32), .task = "text-classification", .dataset = "GLUE",
      COST(66e6, 33.5e9, 145e6, 1250), HOST(0.05, 12), .gemm = 1 },
    /* Radford et al. 2019 at 1,024 tokens, the tied output layer counted; the logits of
     * 50,257 words keep 0.6 GB.
     */
    { AT("gpt2", 4), .task = LANGUAGE, .dataset = "OpenWebText", COST(124e6, 878e9, 7.7e9, 1800),
      HOST(0.1, 18), .gemm = 1 },
    { AT("gpt2-medium", 2), .task = LANGUAGE, .dataset = "OpenWebText",
      COST(355e6, 2.49e12, 17.6e9, 3500), HOST(0.1, 35), .gemm = 1 },
    { AT("gpt2-large", 1), .task = LANGUAGE, .dataset = "OpenWebText",
      COST(774e6, 5.34e12, 31e9, 5200), HOST(0.1, 52), .gemm = 1 },
    { AT("gpt2-xl", 1), .task = LANGUAGE, .dataset = "OpenWebText",
      COST(1558e6, 10.5e12, 51e9, 7000), HOST(0.1, 70), .gemm = 1 },
    /* Raffel et al. 2019: 512 tokens in, 128 out. */
    { AT("t5-small", 16), .task = "summarization", .dataset = "CNN/DailyMail",
      COST(60.5e6, 100e9, 0.93e9, 1600), HOST(0.1, 16), .gemm = 1 },
    { AT("t5-base", 8), .task = "summarization", .dataset = "CNN/DailyMail",
      COST(223e6, 396e9, 2.5e9, 3100), HOST(0.1, 31), .gemm = 1 },
    /* Zaremba et al. 2014, large: 2 layers of 1,500 over 35 words, 10,000 words out. */
    { AT("lstm-lm", 20), .task = LANGUAGE, .dataset = "Penn Treebank",
      COST(66e6, 10.7e9, 20e6, 700), HOST(0, 7), .gemm = 0.5, .rnn = 1 },

    /* Recommenders, trained. Naumov et al. 2019 on Criteo Kaggle: 540 M in tables that are
     * stored once and updated by rows, which the formulas for dense training would count
     * four times; 'params' is a quarter of them, which makes the memory right.
     */
    { AT("dlrm", 2048), .task = "recommendation", .dataset = "Criteo Kaggle",
      COST(135e6, 2.9e6, 40e3, 350), HOST(0.002, 4), .gemm = 0.5, .sparse = 1 },
    /* He et al. 2017, a sample is one user and one film; host time between those
     * of the Zeus and Pollux traces.
     */
    { AT("ncf", 1024), .task = "recommendation", .dataset = "MovieLens-1M",
      COST(1.6e6, 0.26e6, 8e3, 120), HOST(0.001, 4), .gemm = 0.5, .sparse = 1 },

    /* Inference. ResNet-50 answers pictures, BERT texts of 128 tokens. */
    { AT("resnet50-infer", 16), .is_inference = true, .task = CLASSIFY, .dataset = "ImageNet",
      COST(25.6e6, 8.2e9, 70e6, 170), HOST(0.2, 2), .conv = 1 },
    { AT("bert-base-infer", 16), .is_inference = true, .task = "text-classification",
      .dataset = "GLUE", COST(110e6, 22.4e9, 70e6, 170), HOST(0.05, 2), .gemm = 1 },
    /* Touvron et al. 2023 (Llama 2), Llama 3 model card, Jiang et al. 2023 (Mistral): one
     * step is one token for every sequence; 2 FLOP a parameter; the KV cache of 1,024
     * tokens is read, 2 * layers * KV width * 2 bytes a token.
     */
    { AT("llama-7b", 8), .is_inference = true, .task = GENERATE, .dataset = "ShareGPT",
      COST(6.74e9, 13.5e9, 537e6, 390), HOST(0.02, 2), .gemm = 1 },
    { AT("llama-8b", 8), .is_inference = true, .task = GENERATE, .dataset = "ShareGPT",
      COST(8.03e9, 16.1e9, 134e6, 390), HOST(0.02, 2), .gemm = 1 },
    { AT("llama-13b", 8), .is_inference = true, .task = GENERATE, .dataset = "ShareGPT",
      COST(13.0e9, 26.0e9, 839e6, 480), HOST(0.02, 2), .gemm = 1 },
    { AT("llama-70b", 8), .is_inference = true, .task = GENERATE, .dataset = "ShareGPT",
      COST(69.0e9, 138e9, 336e6, 960), HOST(0.02, 2), .gemm = 1 },
    { AT("mistral-7b", 8), .is_inference = true, .task = GENERATE, .dataset = "ShareGPT",
      COST(7.24e9, 14.5e9, 134e6, 390), HOST(0.02, 2), .gemm = 1 },
    /* Radford et al. 2022: one step is one token of every 30 s window with a hundredth of
     * the window's encoding (0.35 and 2.3 TFLOP over 1,500 frames), as a window has about
     * a hundred tokens; bytes are the cached keys and values of those frames.
     */
    { AT("whisper-small", 8), .is_inference = true, .task = SPEECH, .dataset = "LibriSpeech",
      COST(244e6, 3.9e9, 62e6, 150), HOST(0.1, 2), .conv = 0.1, .gemm = 1 },
    { AT("whisper-large", 8), .is_inference = true, .task = SPEECH, .dataset = "LibriSpeech",
      COST(1.55e9, 24.8e9, 280e6, 400), HOST(0.1, 4), .conv = 0.1, .gemm = 1 },
    /* Rombach et al. 2022: one step is one guided evaluation of the U-Net (two passes) at
     * 512x512; an image takes 50 of them.
     */
    { AT("stable-diffusion", 1), .is_inference = true, .task = "image-generation",
      .dataset = "LAION", COST(860e6, 1.36e12, 2e9, 1500), HOST(0.5, 15), .conv = 1, .gemm = 0.5 },

    /* From here on: what published measurements are of; traces are not drawn from these. */
    TRAINED_HERE(TRAINS) TRAINED_ABOVE(ANSWERS) TRAINED_HERE(ANSWERS)
    /* torchvision's networks on pictures of 32x32: a 49th of the work at 224x224. */
    { AT("resnet50-cifar10", 128), .task = CLASSIFY, .dataset = "CIFAR-10",
      COST(23.5e6, 0.5e9, 6.1e6, 1300), HOST(0.15, 13), .conv = 1 },
    { AT("mobilenet-v2-cifar10", 128), .task = CLASSIFY, .dataset = "CIFAR-10",
      COST(2.2e6, 38e6, 4.1e6, 1300), HOST(0.15, 13), .conv = 1 },
    /* Devlin et al. 2018 and Radford et al. 2019, fine-tuned to classify 128 tokens. */
    { AT("bert-base-glue", 32), .task = "text-classification", .dataset = "GLUE",
      COST(110e6, 67e9, 290e6, 2400), HOST(0.05, 24), .gemm = 1 },
    { AT("gpt2-imdb", 32), .task = "text-classification", .dataset = "IMDB",
      COST(124e6, 67e9, 290e6, 1800), HOST(0.05, 18), .gemm = 1 },
    /* Devlin et al. 2018 at 512 tokens; 302 M outside of the embeddings. */
    { AT("bert-large-512", 8), .task = LANGUAGE, .dataset = "Wikipedia",
      COST(335e6, 1.0e12, 5.1e9, 4700), HOST(0.05, 47), .gemm = 1 },
    /* Brown et al. 2020 (24 layers of 2,048 with 24 heads; 32 of 2,560 with 32) and Zhang et al.
     * 2022 (24 of 2,048 with 32), all at 2,048 tokens; logits of 50,257 words keep 1.2 GB.
     */
    { AT("gpt3-xl", 1), .task = LANGUAGE, .dataset = "WebText", COST(1.31e9, 18.6e12, 88e9, 3500),
      HOST(0.1, 35), .gemm = 1 },
    { AT("gpt3-2.7b", 1), .task = LANGUAGE, .dataset = "WebText",
      COST(2.65e9, 36.6e12, 152e9, 4700), HOST(0.1, 47), .gemm = 1 },
    { AT("opt-1.3b", 1), .task = LANGUAGE, .dataset = "WebText", COST(1.32e9, 18.6e12, 110e9, 3500),
      HOST(0.1, 35), .gemm = 1 },
    /* One step is a pass over all tokens of the text, without a cache: a third of the FLOP and a
     * twelfth of the bytes that training moves (kept once, in FP16, and not met again).
     */
    { AT("bert-large-512-infer", 8), .is_inference = true, .task = LANGUAGE, .dataset = "Wikipedia",
      COST(335e6, 335e9, 430e6, 340), HOST(0.05, 3.4), .gemm = 1 },
    { AT("gpt2-large-prefill", 4), .is_inference = true, .task = LANGUAGE, .dataset = "OpenWebText",
      COST(774e6, 1.78e12, 2.6e9, 500), HOST(0.1, 5), .gemm = 1 },
    { AT("gpt3-xl-prefill", 4), .is_inference = true, .task = LANGUAGE, .dataset = "WebText",
      COST(1.31e9, 6.2e12, 7.3e9, 340), HOST(0.1, 3.4), .gemm = 1 },
    { AT("gpt3-2.7b-prefill", 4), .is_inference = true, .task = LANGUAGE, .dataset = "WebText",
      COST(2.65e9, 12.2e12, 12.7e9, 450), HOST(0.1, 4.5), .gemm = 1 },
    { AT("opt-1.3b-prefill", 4), .is_inference = true, .task = LANGUAGE, .dataset = "WebText",
      COST(1.32e9, 6.2e12, 9.2e9, 340), HOST(0.1, 3.4), .gemm = 1 },
    /* The benchmarks that ship, exactly as gogh-burn counts them. */
    BURNS(BENCHMARK)
};

/* Models with their other names, by text_alike; the spellings of Zeus and Pollux are among them. */
static const char *const aliases[][TEXT_ALIASES] = {
    { "ResNet-18", "resnet18-cifar10" },
    { "ResNet-50", "resnet50-imagenet" },
    { "LM", "gavel-lm" },
    { "vit-base", "vit", "vit-b-16" },
    { "vit-large", "vit-l-16" },
    { "swin-tiny", "swin-t" },
    { "inception-v3", "inception3" },
    { "shufflenetv2", "shufflenet-v2-cifar100" },
    { "deepspeech2", "deepspeech" },
    { "wav2vec2-base", "wav2vec2" },
    { "bert-base", "bert", "bert-base-uncased", "bert-base-cased" },
    { "bert-large", "bert-large-uncased" },
    { "bert-base-sentiment", "bert-base-uncased-sentiment140" },
    { "roberta-base", "roberta" },
    { "distilbert", "distilbert-base-uncased" },
    { "gpt2", "gpt2-small" },
    { "t5-base", "t5" },
    { "lstm-lm", "lstm" },
    { "ncf", "neumf" },
    { "llama-7b", "llama-2-7b" },
    { "llama-8b", "llama-3-8b" },
    { "llama-13b", "llama-2-13b" },
    { "llama-70b", "llama-2-70b" },
    { "whisper-small", "whisper" },
    { "whisper-large", "whisper-large-v2", "whisper-large-v3" },
    { "stable-diffusion", "stable-diffusion-v1.5", "sd15" },
};

enum {
    N_MODELS = sizeof models / sizeof models[0],
    N_USUAL = 50,    // those before what published measurements are of
    N_ALIASES = sizeof aliases / sizeof aliases[0],
};

const struct workload *workload_builtin_all(int *n)
{
    *n = N_MODELS;
    return models;
}

const struct workload *workload_builtin_usual(int *n)
{
    *n = N_USUAL;
    return models;
}

static const struct workload *model_named(const char *name)
{
    name = text_unalias(aliases, N_ALIASES, name);
    for (int i = 0; i < N_MODELS; i++) {
        if (text_alike(models[i].family, name))
            return &models[i];
    }
    return NULL;
}

int workload_builtin(struct arena *a, const char *model, double batch, struct workload *out,
                     struct err *e)
{
    const struct workload *w = model_named(model);

    if (!w)
        return err_set(e, ENOENT,
                       "no built-in model '%.60s': use one such as ResNet-50, bert-base, gpt2, "
                       "vit-base, llama-7b (gogh catalog lists all), or a 'workload' line",
                       model);
    if (!isnan(batch) && !(batch >= 1 && batch <= WORKLOAD_BATCH_MAX && floor(batch) == batch))
        return err_set(e, EINVAL, "%s: batch %g: want a whole number from 1 to %d", w->family,
                       batch, WORKLOAD_BATCH_MAX);
    *out = *w;
    if (!isnan(batch)) {
        out->batch = batch;
        out->name = workload_name(a, w->family, batch);
    }
    return 0;
}
