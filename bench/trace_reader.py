"""Reading a large trace into columns, beside json.load of the same file; each in a process of its own. Prints JSON.

trace_reader.py MEGABYTES [load|window|json PATH]
"""

import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

TRACES = Path(__file__).resolve().parent.parent / "tests" / "data" / "traces" / "public"


def write_large(source: Path, size_bytes: int, target: Path) -> None:
    """The events of a recorded trace again and again, as libkineto laid them out; its names of tracks once, as there."""
    text = gzip.decompress(source.read_bytes())
    begin = text.index(b"[", text.index(b'"traceEvents"')) + 1
    end = text.rindex(b"\n]")
    events = msgspec.json.decode(b"[" + text[begin:end] + b"]", type=list[msgspec.Raw])
    repeated = b",\n  ".join(bytes(event) for event in events if msgspec.json.decode(event)["ph"] != "M")
    with target.open("wb") as file:
        file.write(text[:end])
        for _ in range(max(size_bytes // len(repeated) - 1, 0)):
            file.write(b",\n  " + repeated)
        file.write(text[end:])


def measured(what: str, path: str) -> dict[str, float]:
    begun_s = time.process_time()
    if what == "json":
        with open(path, "rb") as file:
            events = len(json.load(file)["traceEvents"])
    else:
        # json.load shall not be charged for numpy's memory, nor reading for the import's time.
        from dynolog.analysis.reading.base_time import find_base_ns  # noqa: PLC0415
        from dynolog.analysis.reading.load import LoadOptions, load  # noqa: PLC0415

        begun_s = time.process_time()
        options = LoadOptions()
        if what == "window":
            base_ns = find_base_ns(path)
            options = LoadOptions(from_ns=base_ns, to_ns=base_ns + 1)
        events = load(path, options).report.events
    cpu_s = time.process_time() - begun_s
    return {
        "events": events,
        "cpu_s": cpu_s,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "size_bytes": Path(path).stat().st_size,
    }


def main() -> None:
    if len(sys.argv) > 2:
        print(json.dumps(measured(sys.argv[2], sys.argv[3])))
        return
    size_bytes = int(sys.argv[1]) * 1_000_000
    answer = {}
    with tempfile.TemporaryDirectory(prefix="dynolog-bench-") as directory:
        for source in sorted(TRACES.glob("*_slice.json.gz")):
            target = Path(directory) / "large.json"
            write_large(source, size_bytes, target)
            answer[source.name.partition("_")[0]] = {
                what: json.loads(
                    subprocess.run(
                        [sys.executable, __file__, "0", what, str(target)], capture_output=True, text=True, check=True
                    ).stdout
                )
                for what in ("load", "window", "json")
            }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
