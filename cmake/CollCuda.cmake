# SPDX-License-Identifier: Apache-2.0
# COLL_CUDA_SOURCES: the CUDA files to compile, empty where there are none, no compiler, or no wish.
# Included before the first target: CMake copies CUDA_ARCHITECTURES when a target is created.
set(COLL_CUDA_SOURCES "")
file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/native/cuda/*.cu")

if(NOT COLL_CUDA STREQUAL "OFF" AND (cuda_sources OR COLL_CUDA STREQUAL "ON"))
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80 90)
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(COLL_CUDA_SOURCES ${cuda_sources})
  elseif(COLL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "COLL_CUDA is ON, but no CUDA compiler works here: install the CUDA toolkit "
                        "or set CUDACXX to its nvcc, or pass COLL_CUDA=AUTO.")
  endif()
endif()
list(LENGTH COLL_CUDA_SOURCES cuda_count)
message(STATUS "CUDA (COLL_CUDA=${COLL_CUDA}): ${cuda_count} files")
