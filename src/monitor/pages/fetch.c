#include "monitor/pages/fetch.h"

#include <curl/curl.h>
#include <errno.h>

enum { PAGE_MAX = 16 << 20, AT_ONCE = 32 };
#define TIMEOUT_MS 2000L

int fetch_begin(void)
{
    return curl_global_init(CURL_GLOBAL_DEFAULT) == 0 ? 0 : -ENOMEM;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *self)
{
    return buf_append(self, bytes, size * n) == 0 ? size * n : 0;
}

static CURL *page_ask(struct fetch *p)
{
    CURL *c = curl_easy_init();

    if (!c)
        return NULL;
    curl_easy_setopt(c, CURLOPT_URL, p->url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);    // other threads have theirs
    curl_easy_setopt(c, CURLOPT_NOPROXY, "*");    // nodes of the cluster are near
    curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, &p->text);
    curl_easy_setopt(c, CURLOPT_PRIVATE, p);
    return c;
}

static void page_done(const CURLMsg *told)
{
    struct fetch *p = NULL;

    curl_easy_getinfo(told->easy_handle, CURLINFO_PRIVATE, &p);
    if (told->data.result == CURLE_OK)
        p->rc = 0;
    else if (p->text.len > 0 && told->data.result == CURLE_WRITE_ERROR)
        p->rc = err_set(&p->why, EFBIG, "%s: more than %d MiB", p->url, PAGE_MAX >> 20);
    else
        p->rc = err_set(&p->why, EIO, "%s: %s", p->url, curl_easy_strerror(told->data.result));
}

static void take_done(CURLM *all)
{
    int n_left;

    for (CURLMsg *m; (m = curl_multi_info_read(all, &n_left)) != NULL;) {
        CURL *c = m->easy_handle;

        if (m->msg != CURLMSG_DONE)
            continue;
        page_done(m);
        curl_multi_remove_handle(all, c);
        curl_easy_cleanup(c);
    }
}

void fetch_all(struct fetch *pages, int n)
{
    CURLM *all = curl_multi_init();
    int n_left = 0;

    curl_multi_setopt(all, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)AT_ONCE);
    for (int i = 0; i < n; i++) {
        buf_init(&pages[i].text, PAGE_MAX);
        pages[i].rc = err_set(&pages[i].why, EIO, "%s: nobody was asked", pages[i].url);
        CURL *c = page_ask(&pages[i]);
        if (c)
            curl_multi_add_handle(all, c);
    }
    do {
        if (curl_multi_perform(all, &n_left) == CURLM_OK && n_left > 0)
            curl_multi_poll(all, NULL, 0, 100, NULL);
        take_done(all);
    } while (n_left > 0);
    curl_multi_cleanup(all);
}
