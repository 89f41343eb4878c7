#include "estimate/model/examples.h"

#include "catalog/catalog.h"

/* The site with its GPUs shared as in a campaign. */
static const struct site *site_of(const struct catalog *c, struct examples *x, int campaign)
{
    if (campaign == CATALOG_SITE)
        return &x->site;
    struct site *s = ARENA_NEW(&x->arena, struct site);
    *s = x->site;
    s->sharing = ARENA_ARRAY(&x->arena, enum sharing, (size_t)s->n_types);
    for (int t = 0; t < s->n_types; t++)
        s->sharing[t] = c->campaign_sharing[campaign];
    return s;
}

void examples_take(const struct catalog *c, struct examples *out)
{
    *out = (struct examples){ .n_campaigns = c->n_campaigns, .n_measurements = c->n_measurements };
    arena_init(&out->arena);
    site_init(&out->site, c->types, c->n_types);
    for (int w = 0; w < c->n_workloads; w++)
        site_add(&out->site, &c->workloads[w], c->types);
    for (int what = 0; what < LEARNED; what++) {
        out->read[what] =
            ARENA_ARRAY(&out->arena, struct campaign_readings, (size_t)c->n_campaigns);
        for (int i = 0; i < c->n_campaigns; i++) {
            struct reading *list;
            int n = what == LEARN_SPEEDS ? site_readings(&out->arena, c, &out->site, i, &list)
                                         : site_watts(&out->arena, c, &out->site, i, &list);
            out->read[what][i] = (struct campaign_readings){ site_of(c, out, i), list, n };
        }
    }
}

void examples_release(struct examples *x)
{
    site_release(&x->site);
    arena_release(&x->arena);
}
