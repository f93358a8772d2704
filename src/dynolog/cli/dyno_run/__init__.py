"""The `dyno-run` command."""
