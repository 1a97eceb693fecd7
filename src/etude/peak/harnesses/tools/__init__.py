"""Readers of the native reports of tools: one module each."""
