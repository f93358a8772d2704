"""Flags of attribution."""

from dynolog.model.flag import Flag

FLAGS = (
    Flag(
        name="env_attribution_mappings_file",
        default="",
        help="CSV file of lines ENV,label: the environment variables of a GPU's processes that become labels of its records, instead of "
        "SLURM_JOB_ID,job_id USER,username SLURM_JOB_ACCOUNT,slurm_account SLURM_JOB_PARTITION,slurm_partition",
        section="gpu",
    ),
    Flag(
        name="enable_pod_resources_attribution",
        default=False,
        help="ask the kubelet which pod has which GPU: labels pod_namespace, pod_name, container_name (extra: pods)",
        section="gpu",
    ),
    Flag(
        name="pod_resources_socket",
        default="/var/lib/kubelet/pod-resources/kubelet.sock",
        help="the kubelet's pod-resources socket",
        section="gpu",
    ),
    Flag(
        name="pod_resources_gpu_resource",
        default="nvidia.com/gpu",
        help="comma list of the resources that are GPUs (a * at the end matches the rest); nvidia.com/mig-*, nvidia.com/gpu.shared and "
        "amd.com/gpu are looked at in any case",
        section="gpu",
    ),
    Flag(
        name="pod_resources_tpu_resource",
        default="google.com/tpu",
        help="comma list of the resources that are TPUs",
        section="gpu",
    ),
)
