/* Any bytes are a bag of arrays, which would be written as the same bytes, or an error.
 *
 * Given twice: as they are, and with the checksum that would make them whole, because
 * nothing behind the checksum would ever be reached otherwise.
 */
#include <assert.h>
#include <sha2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text/buf.h"
#include "base/err.h"
#include "nn/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const uint8_t *data, size_t size)
{
    struct err e = { 0 };
    struct weights w;
    struct arena a;
    struct buf b;

    arena_init(&a);
    buf_init(&b, WEIGHTS_BYTES_MAX);
    if (weights_decode(&a, data, size, &w, &e) == 0) {
        assert(weights_encode(&w, &b, &e) == 0);
        assert(b.len == size && memcmp(b.data, data, size) == 0);
    } else {
        assert(e.code > 0 && strlen(e.text) > 0);
    }
    buf_release(&b);
    arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *whole = malloc(size + SHA256_DIGEST_LENGTH);
    SHA2_CTX ctx;

    decode(data, size);
    assert(whole);
    if (size > 0)
        memcpy(whole, data, size);
    SHA256Init(&ctx);
    SHA256Update(&ctx, data, size);
    SHA256Final(whole + size, &ctx);
    decode(whole, size + SHA256_DIGEST_LENGTH);
    free(whole);
    return 0;
}
