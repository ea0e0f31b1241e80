"""Evidence: everything that a kernel's published figures rest on, in one archive that anybody can check offline."""
