"""Runs that compare methods, and what is written about them."""
