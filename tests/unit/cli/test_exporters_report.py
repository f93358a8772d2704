"""What `dyno exporters` prints, character by character."""

from dynolog.cli.exporters_report import exporters_report
from dynolog.model.status import ExporterState, ExporterStatus

NOW = 1_700_000_000_000_000_000
S = 1_000_000_000


def test_a_line_an_exporter_then_what_is_wrong() -> None:
    text = exporters_report(
        [
            ExporterStatus(
                name="log", destination="stderr", sent=1234, state=ExporterState.OK, last_success_wall_ns=NOW - S
            ),
            ExporterStatus(
                name="otlp",
                destination="http://collector:4318",
                sent=20,
                dropped=7,
                dropped_by={"refused": 1, "spool_full": 6},
                queued=12,
                queued_bytes=34_000,
                spool="off: No space left on device",
                spool_bytes=3_400_000,
                state=ExporterState.RETRYING,
                error="HTTP 503: \x1b[2Jbusy",
                next_try_s=12.4,
            ),
        ],
        NOW,
        None,
    )
    assert text.splitlines() == [
        "EXPORTER  TO                     STATE     LAST SUCCESS        QUEUED   SPOOL   SENT  DROPPED",
        "log       stderr                 ok        1.0 s ago                0       -  1,234        0",
        "otlp      http://collector:4318  retrying  never         12 (34.0 kB)  3.4 MB     20        7",
        "",
        r"otlp: HTTP 503: \x1b[2Jbusy (tried again in 12 s)",
        "otlp: spool off: No space left on device",
        "otlp: 1 record lost because the destination refused them",
        "otlp: 6 records lost because the spool is full (--spool_max_mb)",
    ]


def test_when_all_is_well_there_are_no_remarks() -> None:
    text = exporters_report([ExporterStatus(name="log", destination="stderr")], NOW, None)
    assert len(text.splitlines()) == 2
