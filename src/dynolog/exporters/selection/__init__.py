"""Which records an exporter gets, by the rules of `--exporters_config`."""
