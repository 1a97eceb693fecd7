"""The Python interface: what each verb measures, as functions whose results are data (docs/howto/python.md)."""
