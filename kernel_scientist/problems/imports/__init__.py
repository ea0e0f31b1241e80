"""Problems and kernels of others, brought in by DVC."""
