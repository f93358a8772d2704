"""OpenTelemetry: metrics and log records over OTLP."""
