/* fuzz_dcgm.c - pages of a dcgm-exporter survive any bytes. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "monitor/dcgm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dcgm_gpu gpus[4];
    int n = dcgm_parse((const char *)data, size, gpus, 4);

    assert(n >= 0 && n <= 4);
    for (int i = 0; i < n; i++) {
        assert(gpus[i].index >= 0 || gpus[i].uuid[0] != '\0');
        assert(memchr(gpus[i].uuid, '\0', sizeof gpus[i].uuid));
        assert(gpus[i].watts >= 0 || gpus[i].joules >= 0 || gpus[i].use.gpu >= 0 ||
               gpus[i].use.mem >= 0 || gpus[i].use.mem_bytes >= 0);
    }
    return 0;
}
