"""Lists of hosts: what a person types or writes, what SLURM and Kubernetes answer, the manifest of an earlier run."""

from dynolog.fleet.hostfile import parse_hostfile
from dynolog.fleet.hostlist import parse_hosts
from dynolog.fleet.kubernetes_pods import hosts_of, parse_pods
from dynolog.fleet.manifest import read_manifest
from dynolog.fleet.slurm import parse_job_id
from dynolog.fleet.slurm_jobs import parse_scontrol, parse_squeue, parse_tasks
from dynolog.fleet.targets import HostsError
from fuzz.settings_files import file_feed
from fuzz.target import Target, plain, text_of

TARGETS: tuple[Target, ...] = (
    plain("host_list", lambda data: parse_hosts(text_of(data), 1778), HostsError),
    plain("host_file", lambda data: parse_hostfile(text_of(data), "hosts", 1778), HostsError),
    plain("slurm_job_id", lambda data: parse_job_id(text_of(data)), HostsError),
    plain("squeue", parse_squeue, ValueError),
    plain("scontrol", lambda data: parse_scontrol(text_of(data)), ValueError),
    plain("slurm_tasks", lambda data: parse_tasks(text_of(data)), HostsError),
    plain("kubernetes_pods", lambda data: hosts_of(parse_pods(data).items, "pods", 1778), HostsError),
    Target("manifest", lambda directory, stack: file_feed(directory, stack, read_manifest), (HostsError,), share=0.2),
)
