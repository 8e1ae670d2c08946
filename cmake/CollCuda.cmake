# SPDX-License-Identifier: Apache-2.0
# collectives_cuda: the kernels, a library of its own that is opened where there is a GPU. Included
# before the first target: CMake copies CUDA_ARCHITECTURES when a target is created.
file(GLOB cuda_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/native/cuda/*.cu")
set(COLL_CUDA_FOUND OFF)

if(NOT COLL_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100-real 120-real 80-virtual)
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(COLL_CUDA_FOUND ON)
  elseif(COLL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "COLL_CUDA is ON, but no CUDA compiler works here: install the CUDA toolkit "
                        "or set CUDACXX to its nvcc, or pass COLL_CUDA=AUTO.")
  endif()
endif()
message(STATUS "CUDA (COLL_CUDA=${COLL_CUDA}): ${COLL_CUDA_FOUND}")

if(COLL_CUDA_FOUND)
  add_library(collectives_cuda MODULE ${cuda_sources})
  target_include_directories(collectives_cuda PRIVATE "${PROJECT_SOURCE_DIR}/native")
  target_compile_options(
    collectives_cuda
    PRIVATE
      # signals.h says why functions for the GPU are constexpr.
      --expt-relaxed-constexpr
      # A fused multiply-add rounds once where the proof of equal bits on all ranks counts two.
      --fmad=false
      # Registers, spills and barriers of each kernel, for tests/cuda.
      "SHELL:-Xptxas -v"
      # As the host's compiler reads what nvcc writes.
      "SHELL:-Xcompiler -Wno-attributes"
  )
  set_target_properties(
    collectives_cuda
    PROPERTIES CUDA_RUNTIME_LIBRARY Static CUDA_VISIBILITY_PRESET hidden UNITY_BUILD OFF
  )
endif()
