"""Resuming after a restart of the machine: the resume record, its checks at boot, boot entries, and limits."""
