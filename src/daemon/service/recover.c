#include "daemon/service/recover.h"

int recover_open(struct recovered *r, const char *path, enum store_mode mode, struct err *e)
{
    int rc = store_open(path, mode, &r->store, e);

    if (rc < 0)
        return rc;
    catalog_init(&r->catalog);
    rc = store_hold(r->store, e);    // the events belong to the catalog of the same moment
    if (rc == 0) {
        rc = catalog_load(&r->catalog, r->store, e);
        if (rc == 0)
            rc = ledger_open(&r->ledger, &r->catalog, r->store, e);
        store_let_go(r->store);
    }
    if (rc == 0)
        return 0;
    store_blame(r->store, e);
    catalog_release(&r->catalog);
    store_close(r->store);
    return rc;
}

void recover_close(struct recovered *r)
{
    ledger_close(&r->ledger);
    catalog_release(&r->catalog);
    store_close(r->store);
}
