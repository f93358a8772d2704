#include "devices.h"

#include <stdio.h>

#include "script.h"

int initialized;
static struct device gpus[GPUS], migs[GPUS][MIGS];

struct device *gpu_device(int gpu) {
    struct device *device = &gpus[gpu];
    if (!device->prefix[0]) {
        *device = (struct device){.gpu = gpu, .mig = -1};
        snprintf(device->prefix, sizeof device->prefix, "gpu.%d", gpu);
    }
    return device;
}

struct device *mig_device(int gpu, int mig) {
    struct device *device = &migs[gpu][mig];
    if (!device->prefix[0]) {
        *device = (struct device){.gpu = gpu, .mig = mig};
        snprintf(device->prefix, sizeof device->prefix, "gpu.%d.mig.%d", gpu, mig);
    }
    return device;
}

int check_handle(nvmlDevice_t device) {
    long double unused;
    if (!initialized) return UNINITIALIZED;
    int code = number("all", 0, &unused);
    if (code) return code;
    char key[64];
    snprintf(key, sizeof key, "gpu.%d.answers", device->gpu);
    return number(key, 0, &unused);
}

int check(nvmlDevice_t device) {
    long double unused;
    int code = check_handle(device);
    if (code) return code;
    char key[64];
    snprintf(key, sizeof key, "gpu.%d.values", device->gpu);
    return number(key, 0, &unused);
}

int is_mig_enabled(int gpu) {
    unsigned int enabled;
    return !device_uint(gpu_device(gpu), "mig", 0, &enabled) && enabled;
}

int device_number(nvmlDevice_t device, const char *name, long double otherwise, long double *value) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", device->prefix, name);
    return number(key, otherwise, value);
}

int device_uint(nvmlDevice_t device, const char *name, unsigned int otherwise, unsigned int *value) {
    long double found;
    int code = device_number(device, name, otherwise, &found);
    *value = (unsigned int)found;
    return code;
}

int device_ull(nvmlDevice_t device, const char *name, unsigned long long otherwise, unsigned long long *value) {
    long double found;
    int code = device_number(device, name, otherwise, &found);
    *value = (unsigned long long)found;
    return code;
}

const char *device_text(nvmlDevice_t device, const char *name) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", device->prefix, name);
    return text(key);
}
