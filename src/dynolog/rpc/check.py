"""What `dynolog --check` looks at of the RPC: the files that its flags name."""

from dynolog.model.flag import Settings
from dynolog.rpc.authz_file import read_policy
from dynolog.rpc.tls_files import tls_files_of
from dynolog.rpc.token import read_token


def check_rpc(settings: Settings) -> None:
    """Raises the DynologError that would end the start of the daemon; nothing is listened on."""
    if token_file := settings.text("rpc_token_file"):
        read_token(token_file)
    if rules := settings.text("rpc_authz"):
        read_policy(rules)
    if files := tls_files_of(settings):
        # It imports ssl, which a daemon without TLS does without.
        from dynolog.rpc.server_tls import make_context  # noqa: PLC0415

        make_context(files)
