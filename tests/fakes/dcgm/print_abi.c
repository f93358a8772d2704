/* Prints what a C compiler makes of dcgm_abi.h: `NAME size`, `NAME.member offset`, `NAME! version`. */
#include <stddef.h>
#include <stdio.h>

#include "dcgm_abi.h"

#define SIZE(type) printf(#type " %zu\n", sizeof(type))
#define AT(type, member) printf(#type "." #member " %zu\n", offsetof(type, member))
#define VERSION(type, number) printf(#type "! %u\n", DCGM_STRUCT_VERSION(type, number))

int main(void) {
    SIZE(dcgmVersionInfo_v2);
    AT(dcgmVersionInfo_v2, rawBuildInfoString);
    VERSION(dcgmVersionInfo_v2, 2);
    SIZE(dcgmConnectV2Params_v2);
    AT(dcgmConnectV2Params_v2, persistAfterDisconnect);
    AT(dcgmConnectV2Params_v2, timeoutMs);
    AT(dcgmConnectV2Params_v2, addressIsUnixSocket);
    VERSION(dcgmConnectV2Params_v2, 2);
    SIZE(dcgmGroupEntityPair_t);
    AT(dcgmGroupEntityPair_t, entityId);
    SIZE(dcgmFieldValue_v1);
    AT(dcgmFieldValue_v1, fieldId);
    AT(dcgmFieldValue_v1, fieldType);
    AT(dcgmFieldValue_v1, status);
    AT(dcgmFieldValue_v1, ts);
    AT(dcgmFieldValue_v1, value);
    SIZE(dcgmFieldValue_v2);
    AT(dcgmFieldValue_v2, entityGroupId);
    AT(dcgmFieldValue_v2, entityId);
    AT(dcgmFieldValue_v2, fieldId);
    AT(dcgmFieldValue_v2, fieldType);
    AT(dcgmFieldValue_v2, status);
    AT(dcgmFieldValue_v2, unused);
    AT(dcgmFieldValue_v2, ts);
    AT(dcgmFieldValue_v2, value);
    SIZE(dcgm_field_output_format_t);
    AT(dcgm_field_output_format_t, unit);
    AT(dcgm_field_output_format_t, width);
    SIZE(dcgm_field_meta_t);
    AT(dcgm_field_meta_t, fieldType);
    AT(dcgm_field_meta_t, size);
    AT(dcgm_field_meta_t, tag);
    AT(dcgm_field_meta_t, scope);
    AT(dcgm_field_meta_t, nvmlFieldId);
    AT(dcgm_field_meta_t, valueFormat);
    SIZE(dcgmMigEntityInfo_t);
    AT(dcgmMigEntityInfo_t, nvmlGpuIndex);
    AT(dcgmMigEntityInfo_t, nvmlInstanceId);
    AT(dcgmMigEntityInfo_t, nvmlComputeInstanceId);
    AT(dcgmMigEntityInfo_t, nvmlMigProfileId);
    AT(dcgmMigEntityInfo_t, nvmlProfileSlices);
    SIZE(dcgmMigHierarchyInfo_v2);
    AT(dcgmMigHierarchyInfo_v2, parent);
    AT(dcgmMigHierarchyInfo_v2, info);
    SIZE(dcgmMigHierarchy_v2);
    AT(dcgmMigHierarchy_v2, count);
    AT(dcgmMigHierarchy_v2, entityList);
    VERSION(dcgmMigHierarchy_v2, 2);
    SIZE(dcgmProfMetricGroupInfo_t);
    AT(dcgmProfMetricGroupInfo_t, minorId);
    AT(dcgmProfMetricGroupInfo_t, numFieldIds);
    AT(dcgmProfMetricGroupInfo_t, fieldIds);
    SIZE(dcgmProfGetMetricGroups_t);
    AT(dcgmProfGetMetricGroups_t, numMetricGroups);
    AT(dcgmProfGetMetricGroups_t, metricGroups);
    VERSION(dcgmProfGetMetricGroups_t, DCGM_PROF_GROUPS_NUMBER);
#if DCGM_MAJOR == 2
    AT(dcgmProfGetMetricGroups_t, groupId);
    SIZE(dcgmProfWatchFields_v1);
    AT(dcgmProfWatchFields_v1, groupId);
    AT(dcgmProfWatchFields_v1, numFieldIds);
    AT(dcgmProfWatchFields_v1, fieldIds);
    AT(dcgmProfWatchFields_v1, updateFreq);
    AT(dcgmProfWatchFields_v1, maxKeepAge);
    AT(dcgmProfWatchFields_v1, maxKeepSamples);
    AT(dcgmProfWatchFields_v1, flags);
    VERSION(dcgmProfWatchFields_v1, 1);
    SIZE(dcgmProfUnwatchFields_v1);
    AT(dcgmProfUnwatchFields_v1, groupId);
    AT(dcgmProfUnwatchFields_v1, flags);
    VERSION(dcgmProfUnwatchFields_v1, 1);
#else
    AT(dcgmProfGetMetricGroups_t, gpuId);
    AT(dcgm_field_meta_t, entityLevel);
#endif
    return 0;
}
