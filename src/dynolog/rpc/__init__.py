"""The request protocol that dyno speaks: framing, messages, server, client, authentication."""
