"""dyno gputrace: ask for traces, follow them, bring them here."""
