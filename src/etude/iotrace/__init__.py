"""What stands in a trace of `etude record`: calls as arrays, the files behind descriptors, and what it all amounts to.

`reader.py` takes the arrays from the engine, `files.py` says which file each call was about, `profile.py` adds it all
up.
"""
