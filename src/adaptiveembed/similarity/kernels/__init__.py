"""The compiled kernels under `similarity` and `retrieval`: LLVM IR, written by Python.

`calls.py` is the door: functions of arrays. `frame.py` is a pass over a gallery, `product.py` what
happens in it first, and `scoring.py`, `screening.py` and `counting.py` what is made of it.
"""
