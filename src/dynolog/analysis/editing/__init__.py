"""Trace files judged, and written anew: cut, shrunk, converted, with no more than viewers can hold."""
