"""From records to a destination that may be slow, full or away: encoded, queued, spooled, sent."""
