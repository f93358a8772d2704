"""From collectors to exporters: schedule, deadlines, queues."""
