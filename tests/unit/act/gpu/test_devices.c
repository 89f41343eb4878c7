/* GPUs by a library that speaks NVML and reads its answers from a file; limits and MPS with it. */
#include <math.h>

#include "unit/act/local/stage.h"

#define TWO                                                           \
    "gpu 0 Tesla_V100-SXM2-16GB GPU-aaaa 17e9 150 1000 100 300 300\n" \
    "gpu 1 Tesla_K80 GPU-bbbb 12e9 60.5 -1 0 0 0\n"

struct box {
    struct stage stage;
    char *dir;
    char file[300];
    struct devices *devices;
};

static void say(const struct box *b, const char *text)
{
    FILE *f = fopen(b->file, "we");

    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void box_make(struct box *b, const char *text)
{
    ck_assert_msg(getenv("NVML_STUB_LIB"), "set NVML_STUB_LIB to the library of the tests");
    log_set_level(LOG_ERROR);
    b->dir = scratch_make();
    b->devices = NULL;
    snprintf(b->file, sizeof b->file, "%s/nvml", b->dir);
    say(b, text);
    setenv("GOGH_NVML_LIB", getenv("NVML_STUB_LIB"), 1);
    setenv("GOGH_ROCM_LIB", "/nonesuch", 1);
    setenv("NVML_STUB", b->file, 1);
}

static void box_open(struct box *b, const char *text)
{
    struct err e = { 0 };

    box_make(b, text);
    ck_assert_msg(devices_open(true, true, false, &b->devices, &e) == 0, "%s", e.text);
}

static void box_close(struct box *b)
{
    devices_close(b->devices);
    scratch_remove(b->dir);
}

TEST(gpus_are_what_the_driver_says)
{
    struct box b;

    box_open(&b, TWO);
    ck_assert_int_eq(devices_n(b.devices), 2);
    const struct device *d = devices_get(b.devices, 0);
    ck_assert_int_eq(d->maker, DEVICE_NVIDIA);
    ck_assert_str_eq(d->title, "Tesla V100-SXM2-16GB");
    ck_assert_str_eq(d->uuid, "GPU-aaaa");
    ck_assert_double_eq(d->mem_bytes, 17e9);
    ck_assert_double_eq(d->limit_low_w, 100);
    ck_assert_double_eq(d->limit_high_w, 300);
    ck_assert(isnan(devices_get(b.devices, 1)->limit_low_w));
    box_close(&b);
}

static const struct {
    const char *name, *text;
    enum sharing want;
} modes[] = {
    { "drivers give turns", TWO, SHARING_TIMESLICE },
    { "slices are on", TWO "mode 0 1 0\n", SHARING_MIG },
    { "a device that takes one process", TWO "mode 0 0 3\n", SHARING_EXCLUSIVE },
    { "one that takes none shares with nobody", TWO "mode 0 0 2\n", SHARING_UNKNOWN },
    { "slices before processes", TWO "mode 0 1 3\n", SHARING_MIG },
    { "of the other GPU it says nothing", TWO "mode 1 1 3\n", SHARING_TIMESLICE },
    { "a device without slices", TWO "fail nvmlDeviceGetMigMode 3\nmode 0 1 3\n",
      SHARING_EXCLUSIVE },
    { "a slice by its name", "gpu 0 A100_MIG_1g.5gb MIG-a 5e9 50 -1 0 0 0\n", SHARING_MIG },
};

EACH(how_a_gpu_is_shared_is_what_its_driver_is_set_to, modes)
{
    struct box b;

    box_open(&b, modes[_i].text);
    ck_assert_msg(devices_get(b.devices, 0)->sharing == modes[_i].want, "%s", modes[_i].name);
    box_close(&b);
}

TEST(power_is_read_each_time_and_joules_where_they_are_counted)
{
    struct box b;
    struct device_power p;
    struct err e = { 0 };

    box_open(&b, TWO);
    ck_assert_int_eq(devices_power(b.devices, 0, &p, &e), 0);
    ck_assert_double_eq(p.watts, 150);
    ck_assert_double_eq(p.joules, 1000);
    ck_assert_int_eq(devices_power(b.devices, 1, &p, &e), 0);
    ck_assert_double_eq(p.watts, 60.5);
    ck_assert(isnan(p.joules));
    say(&b, TWO "gpu 1 Tesla_K80 GPU-bbbb 12e9 80 -1 0 0 0\n");
    ck_assert_int_eq(devices_power(b.devices, 1, &p, &e), 0);
    ck_assert_double_eq(p.watts, 80);
    say(&b, TWO "fail nvmlDeviceGetPowerUsage 15\n");
    ck_assert_int_eq(devices_power(b.devices, 0, &p, &e), -ENODEV);
    ck_assert_str_eq(e.text, "NVML: GPU 0: cannot read its power: GPU is lost");
    say(&b, TWO "fail nvmlDeviceGetPowerUsage 999\n");
    ck_assert_int_eq(devices_power(b.devices, 0, &p, &e), -EIO);
    box_close(&b);
}

TEST(how_busy_a_gpu_is_is_read_with_its_power)
{
    struct box b;
    struct device_power p;
    struct err e = { 0 };

    box_open(&b, TWO "use 0 97 41 8e9\n");
    ck_assert_int_eq(devices_power(b.devices, 0, &p, &e), 0);
    ck_assert(p.use.gpu == 0.97 && p.use.mem == 0.41 && p.use.mem_bytes == 8e9);
    say(&b, TWO "fail nvmlDeviceGetUtilizationRates 3\n");
    ck_assert_int_eq(devices_power(b.devices, 0, &p, &e), 0);
    ck_assert(isnan(p.use.gpu) && isnan(p.use.mem) && p.watts == 150);
    box_close(&b);
}

TEST(a_limit_is_set_within_its_bounds_and_taken_back)
{
    struct box b;
    struct err e = { 0 };

    box_open(&b, TWO);
    ck_assert_int_eq(devices_limit(b.devices, 0, 200, &e), 0);
    ck_assert_int_eq(devices_limit(b.devices, 0, 99, &e), -EINVAL);
    ck_assert_ptr_nonnull(strstr(e.text, "100 to 300 W"));
    ck_assert_int_eq(devices_limit(b.devices, 0, 301, &e), -EINVAL);
    ck_assert_int_eq(devices_limit(b.devices, 1, 50, &e), -ENOTSUP);
    ck_assert_int_eq(devices_limit(b.devices, 0, 0, &e), 0);
    b.stage.dir = b.dir;
    ck_assert_str_eq(content(&b.stage, "nvml"), TWO "set 0 200\nset 0 300\n");
    say(&b, TWO "fail nvmlDeviceSetPowerManagementLimit 4\n");
    ck_assert_int_eq(devices_limit(b.devices, 0, 200, &e), -EPERM);
    box_close(&b);
}

static const struct {
    const char *name, *text, *lib;
    bool is_asked;
    int rc, n;
} opens[] = {
    { "no library, nobody asked: no GPUs", "", "/nonesuch", false, 0, 0 },
    { "no library, asked for by name", "", "/nonesuch", true, -ENOENT, 0 },
    { "a library that fails, nobody asked", "fail nvmlInit_v2 999\n", NULL, false, 0, 0 },
    { "a library that fails, asked for by name", "fail nvmlInit_v2 999\n", NULL, true, -EIO, 0 },
    { "a driver that is not loaded", "fail nvmlInit_v2 9\n", NULL, false, 0, 0 },
    { "a GPU that cannot be described", TWO "fail nvmlDeviceGetName 15\n", NULL, false, 0, 0 },
    { "the same, asked for by name", TWO "fail nvmlDeviceGetName 15\n", NULL, true, -ENODEV, 0 },
    { "no GPU in the box", "", NULL, false, 0, 0 },
    { "no GPU where one was asked for", "", NULL, true, -ENODEV, 0 },
    { "a library of something else", "", "libm.so.6", true, -EIO, 0 },
};

EACH(what_is_missing_is_an_error_only_where_it_was_asked_for, opens)
{
    struct box b;
    struct err e = { 0 };

    box_make(&b, opens[_i].text);
    if (opens[_i].lib)
        setenv("GOGH_NVML_LIB", opens[_i].lib, 1);
    int rc = devices_open(true, false, opens[_i].is_asked, &b.devices, &e);
    ck_assert_msg(rc == opens[_i].rc, "%s: %d %s", opens[_i].name, rc, e.text);
    if (rc == 0)
        ck_assert_int_eq(devices_n(b.devices), opens[_i].n);
    else
        ck_assert_uint_gt(strlen(e.text), 10);
    box_close(&b);
}

#define AMD                                                   \
    "gpu 0 Instinct_MI210 c0ffee 64e9 200 3200 100 300 300\n" \
    "gpu 1 Radeon_VII 0 16e9 90.5 -1 0 0 0\n"

TEST(amd_speaks_through_its_own_library)
{
    struct box b;
    struct device_power p;
    struct err e = { 0 };

    box_make(&b, "");
    ck_assert_int_eq(devices_open(false, true, true, &b.devices, &e), -ENOENT);
    ck_assert_ptr_nonnull(strstr(e.text, "GOGH_ROCM_LIB"));
    setenv("GOGH_ROCM_LIB", getenv("ROCM_STUB_LIB"), 1);
    setenv("ROCM_STUB", b.file, 1);
    say(&b, AMD);
    ck_assert_msg(devices_open(false, true, true, &b.devices, &e) == 0, "%s", e.text);
    ck_assert_int_eq(devices_n(b.devices), 2);
    const struct device *d = devices_get(b.devices, 0);
    ck_assert_int_eq(d->maker, DEVICE_AMD);
    ck_assert_str_eq(d->title, "Instinct MI210");
    ck_assert_str_eq(d->uuid, "GPU-0000000000c0ffee");
    ck_assert_double_eq(d->mem_bytes, 64e9);
    ck_assert_double_eq(d->limit_low_w, 100);
    ck_assert_ptr_null(devices_get(b.devices, 1)->uuid);
    ck_assert_int_eq(devices_power(b.devices, 0, &p, &e), 0);
    ck_assert_double_eq(p.watts, 200);
    ck_assert_double_eq(p.joules, 3200);
    ck_assert_int_eq(devices_power(b.devices, 1, &p, &e), 0);
    ck_assert_double_eq(p.watts, 90.5);
    ck_assert(isnan(p.joules));
    ck_assert_int_eq(devices_limit(b.devices, 0, 150, &e), 0);
    ck_assert_int_eq(devices_limit(b.devices, 0, 0, &e), 0);
    ck_assert_int_eq(devices_limit(b.devices, 1, 150, &e), -ENOTSUP);
    b.stage.dir = b.dir;
    ck_assert_str_eq(content(&b.stage, "nvml"), AMD "set 0 150\nset 0 300\n");
    say(&b, AMD "fail rsmi_dev_power_cap_set 4\nfail rsmi_dev_power_ave_get 2\n");
    ck_assert_int_eq(devices_limit(b.devices, 0, 150, &e), -EPERM);
    ck_assert_int_eq(devices_power(b.devices, 0, &p, &e), 0);    // by the newer function
    ck_assert_double_eq(p.watts, 201);
    box_close(&b);
}

/* ---- with jobs on them ---- */

#define WAITS                                                                                    \
    "trap 'exit 0' TERM; echo $CUDA_VISIBLE_DEVICES $CUDA_MPS_PIPE_DIRECTORY > up; while :; do " \
    "sleep 0.01; done"

TEST(a_new_limit_is_set_without_a_restart_and_undone_at_the_end)
{
    struct box b;

    box_open(&b, TWO);
    stage_open_with(&b.stage, b.devices);
    set_script(&b.stage, 0, WAITS, "");
    start(&b.stage, 0, 0);
    until_heard(&b.stage, "started 0.0 on 0\n");
    until_written(&b.stage, "up GPU-aaaa\n");
    ck_assert_int_eq(move_to(&b.stage, 0, 0, 150), 0);
    ck_assert_int_eq(local_n_under_way(b.stage.local), 1);
    until_heard(&b.stage, "started 0.0 on 0 at 150 W\n");
    ck_assert_int_eq(move_to(&b.stage, 0, 0, 150), 0);    // so already
    ck_assert_int_eq(local_n_under_way(b.stage.local), 0);
    ck_assert_int_eq(b.stage.x.stop(b.stage.x.self, 0, NULL), 0);
    until_heard(&b.stage, "stopped 0.0");
    char line[400];
    snprintf(line, sizeof line, "%s set 0 150\nset 0 300\n", b.file);
    until_written(&b.stage, line);
    stage_close(&b.stage);
    box_close(&b);
}

TEST(a_limit_that_cannot_be_set_is_not_believed)
{
    struct box b;
    struct err e = { 0 };

    box_open(&b, TWO "fail nvmlDeviceSetPowerManagementLimit 4\n");
    stage_open_with(&b.stage, b.devices);
    set_script(&b.stage, 0, WAITS, "");
    ck_assert_int_eq(start_at(&b.stage, 0, 0, 150, &e), 0);
    until_heard(&b.stage, "started 0.0 on 0\n");
    const int gpu = 0;
    ck_assert_int_eq(b.stage.x.move(b.stage.x.self, &(struct placement){ 0, 1, &gpu, 150 }, &e),
                     -ENOTSUP);
    ck_assert_int_eq(local_n_under_way(b.stage.local), 0);
    stage_close(&b.stage);
    box_close(&b);
}

TEST(where_limits_cannot_be_set_a_job_starts_without_and_says_so)
{
    struct box b;
    struct err e = { 0 };

    box_open(&b, TWO "fail nvmlDeviceSetPowerManagementLimit 4\n");
    stage_open_with(&b.stage, b.devices);
    set_script(&b.stage, 0, WAITS, "");
    set_script(&b.stage, 1, WAITS, "");
    ck_assert_int_eq(start_at(&b.stage, 0, 0, 150, &e), 0);
    until_heard(&b.stage, "started 0.0 on 0\n");
    ck_assert_int_eq(start_at(&b.stage, 1, 0, 150, &e), 0);
    until_heard(&b.stage, "started 1.0 on 0");
    ck_assert_ptr_nonnull(strstr(b.stage.heard, "started 1.0 on 0\n"));
    stage_close(&b.stage);
    box_close(&b);
}

TEST(a_driver_that_fails_once_is_asked_again)
{
    struct box b;

    box_open(&b, TWO "fail nvmlDeviceSetPowerManagementLimit 999\n");
    stage_open_with(&b.stage, b.devices);
    set_script(&b.stage, 0, WAITS, "");
    ck_assert_int_eq(start_at(&b.stage, 0, 0, 150, NULL), 0);
    until_heard(&b.stage, "started 0.0 on 0\n");
    say(&b, TWO);
    ck_assert_int_eq(move_to(&b.stage, 0, 0, 150), 0);
    ck_assert(b.stage.x.job_is_busy(b.stage.x.self, 0));
    until_heard(&b.stage, "started 0.0 on 0 at 150 W\n");
    ck_assert(!b.stage.x.job_is_busy(b.stage.x.self, 0));
    stage_close(&b.stage);
    box_close(&b);
}

TEST(a_limit_that_another_daemon_left_is_undone_before_a_job_without_one)
{
    struct box b;
    char line[400];

    box_open(&b, TWO);
    stage_open_with(&b.stage, b.devices);
    set_script(&b.stage, 0, WAITS, "");
    start(&b.stage, 0, 0);
    snprintf(line, sizeof line, "%s set 0 300\n", b.file);
    until_written(&b.stage, line);
    stage_close(&b.stage);
    box_close(&b);
}

TEST(a_slot_without_a_device_takes_any_limit)
{
    struct stage s;

    stage_open(&s);
    set_script(&s, 0, WAITS, "");
    start(&s, 0, 0);
    until_heard(&s, "started");
    ck_assert_int_eq(move_to(&s, 0, 0, 150), 0);
    until_heard(&s, "started 0.0 on 0 at 150 W\n");
    stage_close(&s);
}

static const struct {
    const char *name, *script;
    bool has_pipe, is_of_another;
} mps[] = {
    { "jobs are told of MPS where it starts", "#!/bin/sh\n[ \"$1\" = -d ]\n", true, false },
    { "and do without where it does not", "#!/bin/sh\nexit 1\n", false, false },
    { "or is not there", NULL, false, false },
    { "or serves another user", "#!/bin/sh\n[ \"$1\" = -d ]\n", false, true },
};

EACH(mps_is_used_where_it_is, mps)
{
    struct box b;
    char path[600], want[400];

    if (mps[_i].is_of_another && geteuid() != 0) {
        fprintf(stderr, "skipped: only root may start processes of others\n");
        return;
    }
    box_open(&b, TWO);
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", b.dir);
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control", b.dir);
    if (mps[_i].script) {
        FILE *f = fopen(path, "we");
        fputs(mps[_i].script, f);
        fclose(f);
        ck_assert_int_eq(chmod(path, 0755), 0);
    }
    stage_open_with(&b.stage, b.devices);
    stage_sleep(&b.stage);
    b.stage.uses_mps = true;
    stage_wake(&b.stage);
    stage_until(&b.stage, has_no_children, "the control daemon's start");
    if (mps[_i].is_of_another)
        b.stage.uid = 65534;
    ck_assert_int_eq(chmod(b.stage.dir, 0777), 0);
    set_script(&b.stage, 0, WAITS, "");
    start(&b.stage, 0, 0);
    snprintf(want, sizeof want, "up GPU-aaaa%s%s%s\n", mps[_i].has_pipe ? " " : "",
             mps[_i].has_pipe ? b.stage.runs : "", mps[_i].has_pipe ? "/mps/pipe" : "");
    until_written(&b.stage, want);
    bool is_up = mps[_i].has_pipe || mps[_i].is_of_another;
    ck_assert_msg(b.stage.n_mps_up == is_up && b.stage.n_mps_down == !is_up, "%s: told %d, %d",
                  mps[_i].name, b.stage.n_mps_up, b.stage.n_mps_down);
    stage_close(&b.stage);
    box_close(&b);
}
