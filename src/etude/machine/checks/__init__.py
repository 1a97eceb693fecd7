"""The doctor's checks: each is one function from a machine to one finding. `doctor.CHECKS` lists them."""
