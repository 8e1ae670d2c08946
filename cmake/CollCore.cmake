# SPDX-License-Identifier: Apache-2.0
# collectives_core: the whole library, compiled here.
# One folder is one idea, but they are one library: adding an algorithm must not touch this file.
file(GLOB core_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/native/*/*.cc")
if(NOT core_sources)
  message(FATAL_ERROR "No sources in ${PROJECT_SOURCE_DIR}/native: is the checkout complete?")
endif()
include(CollUcx)
set(abi_sources ${core_sources})
list(FILTER abi_sources INCLUDE REGEX "/native/abi/")
list(FILTER core_sources EXCLUDE REGEX "/native/(abi|nccl)/")
set(hot "/native/(kernels|engine|prove|sparse)/")
set(hot_sources ${core_sources})
list(FILTER hot_sources INCLUDE REGEX "${hot}")
list(FILTER core_sources EXCLUDE REGEX "${hot}")

# No options for single files: not for instruction sets, as an inline function of a shared header,
# compiled for AVX here, could be the copy that the linker keeps for all (kernels use the target
# attribute, instruction_set.h); and a file with options of its own is compiled alone.
add_library(collectives_hot OBJECT ${hot_sources})
add_library(collectives_objects OBJECT ${core_sources})
# The C interface is what a shared library shows; all else stays hidden. exports.map keeps the
# C++ symbols of these files (templates) out of it.
add_library(collectives_abi OBJECT ${abi_sources})
set_target_properties(collectives_abi PROPERTIES CXX_VISIBILITY_PRESET default)
foreach(part IN ITEMS collectives_hot collectives_objects collectives_abi)
  target_include_directories(
    ${part} PUBLIC "${PROJECT_SOURCE_DIR}/native" "${PROJECT_SOURCE_DIR}/native/include"
  )
  target_link_libraries(
    ${part} PUBLIC Threads::Threads ${CMAKE_DL_LIBS} PRIVATE collectives_options
  )
endforeach()
# What loops over elements, waits or proves keeps -O3. The rest compiles in nine tenths of the time without, and no call
# takes longer for it (bench.limits).
foreach(part IN ITEMS collectives_objects collectives_abi)
  target_compile_options(${part} PRIVATE "$<$<NOT:$<CONFIG:Debug>>:-O2>")
endforeach()
if(COLL_UCX_FOUND)
  target_include_directories(collectives_objects SYSTEM PRIVATE "${COLL_UCX_INCLUDE}")
endif()

# Under the address sanitizer the library is 70 MB in each of a hundred tests: there they share one, which shows all.
set(core_kind STATIC)
if("address" IN_LIST COLL_SANITIZE)
  set(core_kind SHARED)
  set_target_properties(
    collectives_hot collectives_objects
    PROPERTIES CXX_VISIBILITY_PRESET default VISIBILITY_INLINES_HIDDEN OFF
  )
endif()
add_library(collectives_core ${core_kind})
set_target_properties(collectives_core PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(
  collectives_core PUBLIC collectives_hot collectives_objects collectives_abi
  PRIVATE collectives_options
)
