"""Trainers, trace requests and captures, from request to checked file."""
