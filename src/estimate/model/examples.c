#include "estimate/model/examples.h"

#include "catalog/catalog.h"

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
            out->read[what][i] = (struct campaign_readings){ &out->site, list, n };
        }
    }
}

void examples_release(struct examples *x)
{
    site_release(&x->site);
    arena_release(&x->arena);
}
