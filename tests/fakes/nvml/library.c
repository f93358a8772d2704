/* A libnvidia-ml.so.1 without a driver: the session, the devices and their plain values (see script.h for what it says). */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "devices.h"
#include "script.h"

static int copy(char *buffer, unsigned int size, const char *value) {
    if (strlen(value) >= size) return INSUFFICIENT_SIZE;
    strcpy(buffer, value);
    return OK;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    ENTER();
    initialized++;
    return OK;
}

nvmlReturn_t nvmlShutdown(void) {
    ENTER();
    if (!initialized) return UNINITIALIZED;
    initialized--;
    return OK;
}

const char *nvmlErrorString(nvmlReturn_t code) {
    static char words[32];
    snprintf(words, sizeof words, "Error %d", code);
    return words;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    ENTER();
    const char *found = text("driver");
    return copy(version, length, found ? found : "550.90.07");
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    ENTER();
    return copy(version, length, "12.550.90.07");
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    ENTER();
    long double value;
    if (!initialized) return UNINITIALIZED;
    int code = number("all", 0, &value);
    if (!code) code = number("count", 8, &value);
    *count = (unsigned int)value;
    return code;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    ENTER();
    if (index >= GPUS) return INVALID_ARGUMENT;
    /* `index.2 3`: after a card has gone, what was GPU 3 has index 2. */
    char key[32];
    long double gpu;
    snprintf(key, sizeof key, "index.%u", index);
    int code = number(key, index, &gpu);
    *device = gpu_device((int)gpu);
    return code ? code : check_handle(*device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    ENTER();
    const char *found = device_text(device, "name");
    int code = check(device);
    return code ? code : copy(name, length, found ? found : "NVIDIA H100 80GB HBM3");
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    ENTER();
    char made[96];
    const char *found = device_text(device, "uuid");
    if (device->mig < 0)
        snprintf(made, sizeof made, "GPU-00000000-0000-0000-0000-%012d", device->gpu);
    else
        snprintf(made, sizeof made, "MIG-00000000-0000-0000-%04d-%012d", device->mig, device->gpu);
    int code = check_handle(device);
    return code ? code : copy(uuid, length, found ? found : made);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    ENTER();
    memset(pci, 0, sizeof *pci);
    pci->bus = 0x10u + (unsigned int)device->gpu;
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
    return check(device);
}

/* Functions that give one unsigned number of the device: name, key, default. */
#define UINT(function, key, otherwise)                              \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *value) { \
        ENTER();                                                    \
        int broken = check(device);                                 \
        return broken ? broken : device_uint(device, key, otherwise, value); \
    }

UINT(nvmlDeviceGetMinorNumber, "minor", (unsigned int)device->gpu)
UINT(nvmlDeviceGetPersistenceMode, "persistence", 1)
UINT(nvmlDeviceGetPowerUsage, "power_usage", 300000)
UINT(nvmlDeviceGetEnforcedPowerLimit, "power_limit", 700000)
UINT(nvmlDeviceGetFanSpeed, "fan", 40)
UINT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation", 5)
UINT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max", 5)
UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 16)
UINT(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", 16)
UINT(nvmlDeviceGetPcieReplayCounter, "field.94", 0)

/* The same with a selector between device and result. */
#define UINT_OF(function, key, otherwise)                                             \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int which, unsigned int *value) { \
        ENTER();                                                                      \
        char name[48];                                                                \
        snprintf(name, sizeof name, key ".%u", which);                                \
        int broken = check(device);                                                   \
        return broken ? broken : device_uint(device, name, otherwise, value);         \
    }

UINT_OF(nvmlDeviceGetClockInfo, "clock", 1000 + 100 * which)
UINT_OF(nvmlDeviceGetMaxClockInfo, "max_clock", 1980 + 100 * which)
UINT_OF(nvmlDeviceGetTemperature, "temperature", 45)
UINT_OF(nvmlDeviceGetTemperatureThreshold, "threshold", 90 + which)

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link, unsigned int *value) {
    ENTER();
    char name[32];
    unsigned int links = 0;
    snprintf(name, sizeof name, "link_state.%u", link);
    int code = check(device);
    if (!code) code = device_uint(device, "links", 18, &links);
    if (!code && link >= links) code = INVALID_ARGUMENT;
    return code ? code : device_uint(device, name, 1, value);
}

#define ULL(function, key, otherwise)                                       \
    nvmlReturn_t function(nvmlDevice_t device, unsigned long long *value) { \
        ENTER();                                                            \
        int broken = check(device);                                         \
        return broken ? broken : device_ull(device, key, otherwise, value); \
    }

ULL(nvmlDeviceGetCurrentClocksEventReasons, "reasons", 0)
ULL(nvmlDeviceGetCurrentClocksThrottleReasons, "reasons", 0)
ULL(nvmlDeviceGetTotalEnergyConsumption, "energy", 0)

/* No function takes longer on real hardware: it watches the link for 20 ms. */
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter, unsigned int *value) {
    ENTER();
    (void)counter;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return device_uint(device, "pcie_throughput", 0, value);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    ENTER();
    int code = check(device);
    if (!code && (device->mig >= 0 || is_mig_enabled(device->gpu))) code = NOT_SUPPORTED;
    if (!code) code = device_uint(device, "utilization", 0, &rates->gpu);
    return code ? code : device_uint(device, "memory_utilization", 0, &rates->memory);
}

static int codec(nvmlDevice_t device, const char *name, unsigned int *value, unsigned int *period_us) {
    *period_us = 167000;
    int code = check(device);
    return code ? code : device->mig >= 0 ? NOT_SUPPORTED : device_uint(device, name, 0, value);
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *value, unsigned int *period_us) {
    ENTER();
    return codec(device, "encoder", value, period_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *value, unsigned int *period_us) {
    ENTER();
    return codec(device, "decoder", value, period_us);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *least, unsigned int *most) {
    ENTER();
    *least = 200000;
    int code = check(device);
    return code ? code : device_uint(device, "power_limit_max", 700000, most);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy, nvmlViolationTime_t *time) {
    ENTER();
    char name[32];
    snprintf(name, sizeof name, "violation.%u", policy);
    time->referenceTime = 1;
    int code = check(device);
    return code ? code : device_ull(device, name, 0, &time->violationTime);
}

#define GIB (1024ULL * 1024 * 1024)

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    ENTER();
    if (memory->version != (sizeof *memory | 2u << 24)) return VERSION_MISMATCH;
    int code = check(device);
    if (!code) code = device_ull(device, "memory_total", 80 * GIB, &memory->total);
    if (!code) code = device_ull(device, "memory_reserved", GIB / 2, &memory->reserved);
    if (!code) code = device_ull(device, "memory_used", 10 * GIB, &memory->used);
    return code ? code : device_ull(device, "memory_free", memory->total - memory->reserved - memory->used, &memory->free);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    ENTER();
    unsigned long long reserved;
    int code = check(device);
    if (!code) code = device_ull(device, "memory_total", 80 * GIB, &memory->total);
    if (!code) code = device_ull(device, "memory_reserved", GIB / 2, &reserved);
    if (!code) code = device_ull(device, "memory_used", 10 * GIB, &memory->used);
    memory->used += reserved;
    memory->free = memory->total - memory->used;
    return code;
}

/* Mode and instances of MIG. */
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending) {
    ENTER();
    int code = check(device);
    if (!code) code = device_uint(device, "mig", 0, current);
    *pending = *current;
    return code;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count) {
    ENTER();
    *count = MIGS;
    return check(device);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *instance) {
    ENTER();
    int code = check(device);
    if (code) return code;
    if (index >= MIGS) return INVALID_ARGUMENT;
    *instance = mig_device(device->gpu, (int)index);
    return is_mig_enabled(device->gpu) && device_text(*instance, "gi") ? OK : NOT_FOUND;
}

UINT(nvmlDeviceGetGpuInstanceId, "gi", 0)
UINT(nvmlDeviceGetComputeInstanceId, "ci", 0)
