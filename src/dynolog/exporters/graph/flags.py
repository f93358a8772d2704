"""Flags that ODS and Scuba share."""

from dynolog.exporters.delivery.delivery_flags import DELIVERY_FLAGS
from dynolog.exporters.graph.access_token import ACCESS_TOKEN, ACCESS_TOKEN_FILE
from dynolog.model.flag import Flag

GRAPH_FLAGS = (
    Flag(
        name="certificate_path",
        default="",
        help="CA bundle (PEM) for the https of ODS and Scuba; empty: the system's",
        section="exporters",
    ),
    ACCESS_TOKEN,
    ACCESS_TOKEN_FILE,
    *DELIVERY_FLAGS,
)
