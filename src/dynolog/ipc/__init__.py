"""The datagram protocol that PyTorch trainers speak: wire, endpoints, senders."""
