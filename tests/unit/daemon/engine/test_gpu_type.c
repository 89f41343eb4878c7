/* What a box knows of how its GPUs are shared: the driver's setting, and whether MPS is up. */
#include "act/gpu/devices.h"
#include "daemon/engine/engine.h"
#include "unit/suite.h"

static const struct {
    const char *name;
    enum device_maker maker;
    enum sharing driver;
    enum mps_state mps;
    enum sharing want;
} boxes[] = {
    { "a driver gives turns", DEVICE_NVIDIA, SHARING_TIMESLICE, MPS_OFF, SHARING_TIMESLICE },
    { "unless MPS is up", DEVICE_NVIDIA, SHARING_TIMESLICE, MPS_UP, SHARING_MPS },
    { "while it starts nobody knows", DEVICE_NVIDIA, SHARING_TIMESLICE, MPS_AWAITED,
      SHARING_UNKNOWN },
    { "one process is MPS's own", DEVICE_NVIDIA, SHARING_EXCLUSIVE, MPS_UP, SHARING_MPS },
    { "or a job's", DEVICE_NVIDIA, SHARING_EXCLUSIVE, MPS_OFF, SHARING_EXCLUSIVE },
    { "slices are nobody's to share", DEVICE_NVIDIA, SHARING_MIG, MPS_UP, SHARING_EXCLUSIVE },
    { "MPS is NVIDIA's", DEVICE_AMD, SHARING_UNKNOWN, MPS_UP, SHARING_UNKNOWN },
};

EACH(how_a_box_shares, boxes)
{
    const struct device d = { .maker = boxes[_i].maker, .sharing = boxes[_i].driver };

    ck_assert_msg(engine_sharing(&d, boxes[_i].mps) == boxes[_i].want, "%s", boxes[_i].name);
}
