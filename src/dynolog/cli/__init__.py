"""The dyno command line, one module a subcommand."""
