# SPDX-License-Identifier: Apache-2.0
# THE place for options of single source files of collectives_objects.

# Not for instruction sets: an inline function of a shared header, compiled for AVX here, could be
# the copy that the linker keeps for all. Kernels use the target attribute (instruction_set.h).

# The C interface is what a shared library shows; all else stays hidden. exports.map keeps the
# C++ symbols of these files (templates) out of it.
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/native/abi/*.cc")
set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -fvisibility=default)
