"""The compiled kernels under `similarity` and `retrieval`; imports nothing of the package but `errors`."""
