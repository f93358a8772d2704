/* The devices of the script: `count` GPUs (8), and on GPU n, when `gpu.n.mig` is 1, those MIG devices k that have `gpu.n.mig.k.gi`. */
#pragma once

#include "nvml_abi.h"

#define GPUS 80
#define MIGS 7

struct device {
    int gpu, mig; /* mig -1: the whole GPU */
    char prefix[32];
};

extern int initialized; /* how often nvmlInit was called and not undone */

/* Whether the device answers: 0, or the code with which every call on it fails (`gpu.n.answers`). */
int check_handle(nvmlDevice_t device);
/* The same for calls that read something, which may fail while it can still be told which device it is (`gpu.n.values`). */
int check(nvmlDevice_t device);
struct device *gpu_device(int gpu);
struct device *mig_device(int gpu, int mig);
int is_mig_enabled(int gpu);

/* A number of the device, `prefix.name`. */
int device_number(nvmlDevice_t device, const char *name, long double otherwise, long double *value);
int device_uint(nvmlDevice_t device, const char *name, unsigned int otherwise, unsigned int *value);
int device_ull(nvmlDevice_t device, const char *name, unsigned long long otherwise, unsigned long long *value);
const char *device_text(nvmlDevice_t device, const char *name);
