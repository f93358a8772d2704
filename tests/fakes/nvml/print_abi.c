/* Prints the layouts of nvml_abi.h: a line `structure size`, then `structure.member offset size` for each member. */
#include <stddef.h>
#include <stdio.h>

#include "nvml_abi.h"

#define STRUCTURE(s) printf(#s " %zu\n", sizeof(s))
#define MEMBER(s, m) printf(#s "." #m " %zu %zu\n", offsetof(s, m), sizeof(((s *)0)->m))

int main(void) {
    STRUCTURE(nvmlUtilization_t);
    MEMBER(nvmlUtilization_t, gpu);
    MEMBER(nvmlUtilization_t, memory);
    STRUCTURE(nvmlMemory_t);
    MEMBER(nvmlMemory_t, total);
    MEMBER(nvmlMemory_t, free);
    MEMBER(nvmlMemory_t, used);
    STRUCTURE(nvmlMemory_v2_t);
    MEMBER(nvmlMemory_v2_t, version);
    MEMBER(nvmlMemory_v2_t, total);
    MEMBER(nvmlMemory_v2_t, reserved);
    MEMBER(nvmlMemory_v2_t, free);
    MEMBER(nvmlMemory_v2_t, used);
    STRUCTURE(nvmlProcessInfo_v2_t);
    MEMBER(nvmlProcessInfo_v2_t, pid);
    MEMBER(nvmlProcessInfo_v2_t, usedGpuMemory);
    MEMBER(nvmlProcessInfo_v2_t, gpuInstanceId);
    MEMBER(nvmlProcessInfo_v2_t, computeInstanceId);
    STRUCTURE(nvmlPciInfo_t);
    MEMBER(nvmlPciInfo_t, busIdLegacy);
    MEMBER(nvmlPciInfo_t, domain);
    MEMBER(nvmlPciInfo_t, bus);
    MEMBER(nvmlPciInfo_t, device);
    MEMBER(nvmlPciInfo_t, pciDeviceId);
    MEMBER(nvmlPciInfo_t, pciSubSystemId);
    MEMBER(nvmlPciInfo_t, busId);
    STRUCTURE(nvmlViolationTime_t);
    MEMBER(nvmlViolationTime_t, referenceTime);
    MEMBER(nvmlViolationTime_t, violationTime);
    STRUCTURE(nvmlFieldValue_t);
    MEMBER(nvmlFieldValue_t, fieldId);
    MEMBER(nvmlFieldValue_t, scopeId);
    MEMBER(nvmlFieldValue_t, timestamp);
    MEMBER(nvmlFieldValue_t, latencyUsec);
    MEMBER(nvmlFieldValue_t, valueType);
    MEMBER(nvmlFieldValue_t, nvmlReturn);
    MEMBER(nvmlFieldValue_t, value);
    STRUCTURE(nvmlEventData_t);
    MEMBER(nvmlEventData_t, device);
    MEMBER(nvmlEventData_t, eventType);
    MEMBER(nvmlEventData_t, eventData);
    MEMBER(nvmlEventData_t, gpuInstanceId);
    MEMBER(nvmlEventData_t, computeInstanceId);
    STRUCTURE(nvmlGpmMetric_t);
    MEMBER(nvmlGpmMetric_t, metricId);
    MEMBER(nvmlGpmMetric_t, nvmlReturn);
    MEMBER(nvmlGpmMetric_t, value);
    MEMBER(nvmlGpmMetric_t, metricInfo);
    MEMBER(nvmlGpmMetricsGet_t, version);
    MEMBER(nvmlGpmMetricsGet_t, numMetrics);
    MEMBER(nvmlGpmMetricsGet_t, sample1);
    MEMBER(nvmlGpmMetricsGet_t, sample2);
    printf("nvmlGpmMetricsGet_t.metrics %zu -\n", offsetof(nvmlGpmMetricsGet_t, metrics));
    STRUCTURE(nvmlGpmSupport_t);
    MEMBER(nvmlGpmSupport_t, version);
    MEMBER(nvmlGpmSupport_t, isSupportedDevice);
    return 0;
}
