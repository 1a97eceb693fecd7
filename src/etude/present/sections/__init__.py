"""A result of each verb as a section; and as the verb's JSON document."""
