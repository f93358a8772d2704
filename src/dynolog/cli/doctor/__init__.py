"""`dyno doctor`: what is missing on this machine, why, and what gives it. A check a file, listed in checks.py."""
