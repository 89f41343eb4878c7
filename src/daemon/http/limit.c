#include "daemon/http/inner.h"

uint64_t http_mix(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* FNV-1a. */
uint64_t http_hash(const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint64_t v = 14695981039346656037u;

    for (size_t i = 0; i < n; i++)
        v = (v ^ at[i]) * 1099511628211u;
    return v;
}

/* A bucket holds what may be asked at once: as much as in a second. Callers that meet in one
 * place of the table share it, unless the one that was there has been quiet for so long
 * that its bucket is full again.
 */
double http_limit(struct http *h, uint64_t key, double now_s)
{
    const double rate = h->config->rate_max;
    const double full = rate > 1 ? rate : 1;
    struct bucket *b = &h->buckets[http_mix(key) % LIMIT_BUCKETS];

    if (rate <= 0)
        return 0;
    b->left += (now_s - b->at_s) * rate;
    b->at_s = now_s;
    if (b->left >= full || b->key == 0) {
        b->key = key;
        b->left = full;
    }
    if (b->left < 1)
        return (1 - b->left) / rate;
    b->left -= 1;
    return 0;
}
