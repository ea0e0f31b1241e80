"""HIP submissions' own host code on a CPU: compiled for it, against a stand-in for HIP's runtime.

Kernels that it launches go to a simulated GPU.
"""
