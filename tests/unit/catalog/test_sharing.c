/* How jobs share a GPU: one table of names, read as people and drivers write them. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "catalog/gpu_type.h"
#include "unit/suite.h"

TEST(every_way_to_share_is_read_as_it_is_written)
{
    for (int s = 1; s < SHARINGS; s++) {
        enum sharing again = SHARING_UNKNOWN;
        ck_assert_int_eq(sharing_read(slice_of(sharing_name((enum sharing)s)), &again, NULL), 0);
        ck_assert_int_eq(again, s);
        ck_assert_int_eq(sharing_of_number(s), s);
    }
    ck_assert_ptr_null(sharing_name(SHARING_UNKNOWN));
    ck_assert_str_eq(sharing_name(SHARING_TAKEN_BACK), "unknown");
    ck_assert_int_eq(sharing_of_number(SHARINGS), SHARING_UNKNOWN);
    ck_assert_int_eq(sharing_of_number(-1), SHARING_UNKNOWN);
}

enum { REFUSED = -2 };

static const struct {
    const char *name, *text;
    int want;    // REFUSED, or an enum sharing
} texts[] = {
    { "nothing is said", "", SHARING_UNKNOWN },
    { "that nothing is known", "unknown", SHARING_TAKEN_BACK },
    { "capitals", "MPS", SHARING_MPS },
    { "two words", "time-slices", SHARING_TIMESLICE },
    { "nobody shares", "none", SHARING_EXCLUSIVE },
    { "as drivers call it", "EXCLUSIVE_PROCESS", SHARING_EXCLUSIVE },
    { "a slip", "mpss", REFUSED },
    { "a word that is too long", "time slices time slices time slices", REFUSED },
    { "a byte too many", "mps\0x", REFUSED },
};

EACH(what_people_write_is_understood_or_refused_with_the_names, texts)
{
    enum sharing got;
    struct err e = { 0 };
    size_t len = strcmp(texts[_i].name, "a byte too many") == 0 ? 5 : strlen(texts[_i].text);
    int rc = sharing_read((struct slice){ texts[_i].text, len }, &got, &e);

    ck_assert_msg(rc == (texts[_i].want == REFUSED ? -EINVAL : 0), "%s", texts[_i].name);
    if (rc == 0)
        ck_assert_msg((int)got == texts[_i].want, "%s: %d", texts[_i].name, (int)got);
    else
        ck_assert_ptr_nonnull(strstr(e.text, "exclusive, timeslice, mps or mig"));
}

static const struct {
    const char *name;
    bool want;
} devices[] = {
    { "a100_1g.5gb", true },       { "NVIDIA A100-SXM4-40GB MIG 3g.20gb", true },
    { "h100-7g.80gb", true },      { "1g.10gb+me", true },
    { "Tesla V100-SXM2", false },  { "g.5gb", false },
    { "a100_1g.", false },         { "", false },
    { "rig.1g.x then g.", false },
};

EACH(slices_are_known_by_their_names, devices)
{
    ck_assert_msg(sharing_is_slice(devices[_i].name) == devices[_i].want, "%s", devices[_i].name);
}

TEST(a_type_that_nobody_shares_has_room_for_one)
{
    struct gpu_type t = *gpu_type_builtin("v100");
    struct err e = { 0 };

    ck_assert_int_eq(gpu_type_theta(&t, 3), 3);
    ck_assert_int_eq(gpu_type_set(&t, slice_of("sharing"), slice_of("mps"), &e), 0);
    ck_assert_int_eq(gpu_type_theta(&t, 3), 3);
    ck_assert_int_eq(gpu_type_set(&t, slice_of("sharing"), slice_of("exclusive"), &e), 0);
    ck_assert_int_eq(gpu_type_theta(&t, 3), 1);
    ck_assert_int_eq(gpu_type_set(&t, slice_of("sharing"), slice_of("mpx"), &e), -EINVAL);
}

TEST(the_last_word_on_how_a_type_is_shared_counts)
{
    struct gpu_type t = *gpu_type_builtin("v100"), more = t;

    more.sharing = SHARING_TIMESLICE;
    ck_assert(gpu_type_fill(&t, &more) && t.sharing == SHARING_TIMESLICE);
    ck_assert(!gpu_type_fill(&t, &more));
    more.sharing = SHARING_MPS;
    ck_assert(gpu_type_fill(&t, &more) && t.sharing == SHARING_MPS);
    more.sharing = SHARING_UNKNOWN;
    ck_assert(!gpu_type_fill(&t, &more) && t.sharing == SHARING_MPS);
    ck_assert_int_eq(gpu_type_set(&more, slice_of("sharing"), slice_of("unknown"), NULL), 0);
    ck_assert(gpu_type_fill(&t, &more) && t.sharing == SHARING_UNKNOWN);
    ck_assert(!gpu_type_fill(&t, &more) && t.sharing == SHARING_UNKNOWN);
}
