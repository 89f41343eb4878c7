/* drafts.h - the draft that each test of an import reads into. */
#ifndef TESTS_CATALOG_IMPORT_DRAFTS_H
#define TESTS_CATALOG_IMPORT_DRAFTS_H

#include "catalog/import/draft.h"

static struct draft d;

static inline void set_up(void)
{
    draft_init(&d);
}

static inline void tear_down(void)
{
    draft_release(&d);
}

#endif
