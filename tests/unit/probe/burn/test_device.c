/* Which of the devices that OpenCL shows is the job's. */
#include "probe/burn/device.h"
#include "unit/suite.h"

enum { NVIDIA = 0x10de, AMD = 0x1002, INTEL = 0x8086 };

#define GPU(its_vendor, its_uuid)                                \
    {                                                            \
        .vendor = (its_vendor), .is_gpu = true, .uuid = its_uuid \
    }
#define CPU                             \
    {                                   \
        .vendor = INTEL, .is_cpu = true \
    }
#define FIRST "GPU-01234567-89ab-cdef-0123-456789abcdef"
#define SECOND "GPU-fedcba98-7654-3210-fedc-ba9876543210"

static const struct {
    const char *name;
    struct opencl_device list[3];
    int n;
    const char *cuda, *rocr;
    bool may_any;
    int want;
} cases[] = {
    { "nothing is nothing", { CPU }, 0, NULL, NULL, true, -1 },
    { "the first GPU", { CPU, GPU(AMD, ""), GPU(AMD, "") }, 3, NULL, NULL, false, 1 },
    { "a CPU only when it may be", { CPU }, 1, NULL, NULL, false, -1 },
    { "and then", { CPU }, 1, NULL, NULL, true, 0 },
    { "a GPU before a CPU", { CPU, GPU(INTEL, "") }, 2, NULL, NULL, true, 1 },
    { "CUDA's variable means NVIDIA's",
      { GPU(INTEL, ""), GPU(NVIDIA, "") },
      2,
      "0",
      NULL,
      false,
      1 },
    { "ROCm's variable means AMD's", { GPU(NVIDIA, ""), GPU(AMD, "") }, 2, NULL, "0", false, 1 },
    { "another vendor's GPU is not the job's", { GPU(INTEL, "") }, 1, "0", NULL, false, -1 },
    { "nor with a CPU beside it", { GPU(INTEL, ""), CPU }, 2, "0", NULL, true, 1 },
    { "an empty variable means nobody", { GPU(INTEL, "") }, 1, "", NULL, false, 0 },
    { "both variables: a declared GPU, of any vendor", { GPU(AMD, "") }, 1, "0", "0", false, 0 },
    { "a UUID is looked for",
      { GPU(NVIDIA, FIRST), GPU(NVIDIA, SECOND) },
      2,
      SECOND,
      NULL,
      false,
      1 },
    { "the beginning of one suffices, in any case",
      { GPU(NVIDIA, FIRST), GPU(NVIDIA, SECOND) },
      2,
      "gpu-FEDCBA98,GPU-01234567",
      NULL,
      false,
      1 },
    { "a UUID that is not there", { GPU(NVIDIA, FIRST) }, 1, SECOND, NULL, false, -1 },
    { "a driver that tells none is believed", { GPU(NVIDIA, "") }, 1, SECOND, NULL, false, 0 },
    { "numbers are the driver's to follow", { GPU(NVIDIA, FIRST) }, 1, "3", NULL, false, 0 },
    { "a runtime that heeds ROCm's variable shows no more than it names",
      { GPU(AMD, ""), GPU(AMD, "") },
      2,
      NULL,
      "0",
      false,
      DEVICE_UNCERTAIN },
    { "and a CPU is no way out",
      { GPU(AMD, ""), GPU(AMD, ""), CPU },
      3,
      NULL,
      "1",
      true,
      DEVICE_UNCERTAIN },
    { "two may be the job's", { GPU(AMD, ""), GPU(AMD, "") }, 2, NULL, "2,3", false, 0 },
    { "one platform heeds it",
      { GPU(AMD, ""), GPU(AMD, ""), { .vendor = AMD, .is_gpu = true, .platform = "other" } },
      3,
      NULL,
      "1",
      false,
      2 },
    { "AMD's UUIDs are of another form", { GPU(AMD, FIRST) }, 1, NULL, "GPU-1234", false, 0 },
};

EACH(the_device_is_the_one_that_is_left_visible, cases)
{
    const int got = device_choose(cases[_i].list, cases[_i].n, cases[_i].cuda, cases[_i].rocr,
                                  cases[_i].may_any);

    ck_assert_msg(got == cases[_i].want, "%s: %d, wanted %d", cases[_i].name, got, cases[_i].want);
}
