"""Faults under load and churn, on this machine, in a network and mount namespace of their own (docs/soak.md)."""
