/* The second half of library.c: field values, processes, events and GPM. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices.h"
#include "script.h"

/* `gpu.n.field.ID` (`...ID.SCOPE` where the scope is not 0) is a 64-bit number; with `gpu.n.uint.ID` a 32-bit one. Missing: not supported. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    ENTER();
    int code = check(device);
    if (code) return code;
    long double highest, found;
    device_number(device, "highest_field", 300, &highest);
    for (int i = 0; i < count; i++)
        if (values[i].fieldId > (unsigned int)highest) return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        nvmlFieldValue_t *value = &values[i];
        char name[48], kind[48];
        snprintf(name, sizeof name, value->scopeId ? "field.%u.%u" : "field.%u", value->fieldId, value->scopeId);
        snprintf(kind, sizeof kind, "uint.%u", value->fieldId);
        value->timestamp = 1;
        value->nvmlReturn = device_text(device, name) ? device_number(device, name, 0, &found) : NOT_SUPPORTED;
        if (value->nvmlReturn) continue;
        value->valueType = device_text(device, kind) ? VALUE_UINT : found != (unsigned long long)found ? VALUE_DOUBLE : VALUE_ULL;
        if (value->valueType == VALUE_DOUBLE)
            value->value.dVal = (double)found;
        else if (value->valueType == VALUE_UINT)
            /* Garbage above the 32 bits: a reader that takes all eight bytes sees it. */
            value->value.ullVal = (unsigned int)found | 0xdeadbeef00000000ULL;
        else
            value->value.ullVal = (unsigned long long)found;
    }
    return OK;
}

/* `gpu.n.compute` and `gpu.n.graphics`: `PID:BYTES:GI:CI,...`. */
static int processes(nvmlDevice_t device, const char *name, unsigned int *count, void *list, size_t size) {
    int code = check(device);
    if (code) return code;
    const char *rest = device_text(device, name);
    if (rest && *rest == '!') return atoi(rest + 1);
    unsigned int room = *count, found = 0;
    for (const char *at = rest; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : "") {
        process_info_of_535 info = {.gpuInstanceId = ~0u, .computeInstanceId = ~0u};
        char *end = NULL;
        info.pid = (unsigned int)strtoul(at, &end, 10);
        info.usedGpuMemory = strtoull(end + 1, &end, 10);
        if (*end == ':') info.gpuInstanceId = (unsigned int)strtoul(end + 1, &end, 10);
        if (*end == ':') info.computeInstanceId = (unsigned int)strtoul(end + 1, &end, 10);
        if (found < room && list) memcpy((char *)list + found * size, &info, size);
        found++;
    }
    *count = found;
    return found > room ? INSUFFICIENT_SIZE : OK;
}

#define LISTS(version, size)                                                                                         \
    nvmlReturn_t nvmlDeviceGetComputeRunningProcesses##version(nvmlDevice_t device, unsigned int *count, void *list) {  \
        ENTER();                                                                                                     \
        return processes(device, "compute", count, list, size);                                                      \
    }                                                                                                                \
    nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses##version(nvmlDevice_t device, unsigned int *count, void *list) { \
        ENTER();                                                                                                     \
        return processes(device, "graphics", count, list, size);                                                     \
    }

LISTS(, sizeof(nvmlProcessInfo_v1_t))
LISTS(_v2, sizeof(nvmlProcessInfo_v2_t))
LISTS(_v3, text("lists_of_535") ? sizeof(process_info_of_535) : sizeof(nvmlProcessInfo_v2_t))

/* `events`: `SERIAL:GPU:CODE,...`; an event set gives those with a higher serial than when it was made. */
struct event_set {
    long seen;
    unsigned char registered[GPUS];
};

static const char *event_after(long seen, long *serial, long *gpu, unsigned long long *code) {
    const char *at = text("events");
    while (at && *at) {
        if (sscanf(at, "%ld:%ld:%llu", serial, gpu, code) == 3 && *serial > seen) return at;
        at = strchr(at, ',');
        if (at) at++;
    }
    return NULL;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    ENTER();
    if (!initialized) return UNINITIALIZED;
    *set = calloc(1, sizeof **set);
    long gpu;
    unsigned long long code;
    while (event_after((*set)->seen, &(*set)->seen, &gpu, &code)) {}
    return OK;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    ENTER();
    unsigned int supported;
    int code = check(device);
    if (!code) code = device_uint(device, "events_supported", 1, &supported);
    if (code) return code;
    if (!supported || types != 8) return NOT_SUPPORTED;
    set->registered[device->gpu] = 1;
    return OK;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    ENTER();
    (void)timeout_ms;
    long serial, gpu;
    unsigned long long code;
    while (event_after(set->seen, &serial, &gpu, &code)) {
        set->seen = serial;
        if (gpu < 0 || gpu >= GPUS || !set->registered[gpu]) continue;
        *data = (nvmlEventData_t){gpu_device((int)gpu), 8, code, ~0u, ~0u};
        return OK;
    }
    return TIMED_OUT;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    ENTER();
    free(set);
    return OK;
}

/* GPM: `gpu.n.gpm` 1 where it is supported, `gpu.n.gpm.METRIC`, and for an instance `gpu.n.gi.GI.gpm.METRIC`. */
struct gpm_sample {
    int gpu, gi;
    unsigned long taken;
};
static unsigned long samples_taken;
static long samples_alive;

/* For tests: samples that were allocated and not freed. */
long fake_samples_alive(void) { return samples_alive; }

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    ENTER();
    if (support->version != 1) return VERSION_MISMATCH;
    int code = check(device);
    return code ? code : device_uint(device, "gpm", 1, &support->isSupportedDevice);
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    ENTER();
    samples_alive++;
    *sample = calloc(1, sizeof **sample);
    return OK;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    ENTER();
    samples_alive--;
    free(sample);
    return OK;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    ENTER();
    int code = check(device);
    if (!code) *sample = (struct gpm_sample){device->gpu, -1, ++samples_taken};
    return code;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gi, nvmlGpmSample_t sample) {
    ENTER();
    int code = check(device);
    if (!code) *sample = (struct gpm_sample){device->gpu, (int)gi, ++samples_taken};
    return code;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get) {
    ENTER();
    struct gpm_sample *one = get->sample1, *two = get->sample2;
    if (get->version != 1) return VERSION_MISMATCH;
    if (!one->taken || one->taken >= two->taken || one->gpu != two->gpu || one->gi != two->gi) return INVALID_ARGUMENT;
    for (unsigned int i = 0; i < get->numMetrics && i < GPM_METRIC_MAX; i++) {
        nvmlGpmMetric_t *metric = &get->metrics[i];
        char name[48];
        long double value;
        if (two->gi < 0)
            snprintf(name, sizeof name, "gpm.%u", metric->metricId);
        else
            snprintf(name, sizeof name, "gi.%d.gpm.%u", two->gi, metric->metricId);
        nvmlDevice_t device = gpu_device(two->gpu);
        metric->nvmlReturn = device_text(device, name) ? device_number(device, name, 0, &value) : NOT_SUPPORTED;
        metric->value = (double)value;
    }
    return OK;
}
