"""Traces of `etude record`: calls as arrays, the files behind descriptors, and their summary.

`reader.py` takes the arrays from the engine, `files.py` says which file each call was about, `profile.py` adds it all
up.
"""
