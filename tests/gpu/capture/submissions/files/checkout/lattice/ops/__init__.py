import an_extension_that_nobody_has

from .norm import normed
