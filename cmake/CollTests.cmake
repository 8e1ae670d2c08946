# SPDX-License-Identifier: Apache-2.0
# tests/native/<x>_test.cc: one program each, over the static library (they see the inside).
# tests/native/<x>.c: one program each, over the shared library (they see what a C user sees).
# Other .cc files there are shared by all programs (check.cc is their main). <x>_speed_test.cc runs alone, and not under a
# sanitizer, where its numbers would mean nothing.
set(folder "${PROJECT_SOURCE_DIR}/tests/native")
file(GLOB cc_files CONFIGURE_DEPENDS "${folder}/*.cc")
file(GLOB c_files CONFIGURE_DEPENDS "${folder}/*.c")

# A kernel with wide address randomisation (vm.mmap_rnd_bits = 32) is too much for the thread
# sanitizer of g++ 12; switched off for the test where the system lets us.
set(thread_launcher "")
find_program(COLL_SETARCH setarch)
if(COLL_SETARCH)
  execute_process(
    COMMAND "${COLL_SETARCH}" -R true RESULT_VARIABLE refused OUTPUT_QUIET ERROR_QUIET
  )
  if(refused EQUAL 0)
    set(thread_launcher "${COLL_SETARCH}" -R)
  endif()
endif()
set(launcher "")
if("thread" IN_LIST COLL_SANITIZE)
  set(launcher ${thread_launcher})
endif()

# Only what hangs takes so long, on a slow and busy machine, too.
set(test_timeout 300)
if(COLL_SANITIZE OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(test_timeout 1500)
endif()

# Half of `make test` is compiling: tests are hardly optimised (what they test is; the thread
# sanitizer runs so long that a little pays), and read the standard headers once. Not where each
# file shall be seen on its own (the preset `tidy`). One precompiled header serves all, so all are
# made alike: without -fPIE and -fPIC.
function(coll_compile_quickly target)
  target_compile_options(${target} PRIVATE "$<IF:$<AND:$<CONFIG:Debug>,$<NOT:$<IN_LIST:thread,${COLL_SANITIZE}>>>,-O0,-Og>")
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  if(CMAKE_UNITY_BUILD)
    target_precompile_headers(${target} ${ARGN})
  endif()
endfunction()

# A hundred programs are linked: by the quickest linker there is, where no sanitizer has wishes.
set(test_linker DEFAULT)
if(NOT CMAKE_CROSSCOMPILING AND NOT COLL_SANITIZE)
  foreach(linker IN ITEMS GOLD LLD MOLD)
    string(TOLOWER "ld.${linker}" program)
    find_program(COLL_${linker} "${program}")
    if(COLL_${linker})
      set(test_linker ${linker})
    endif()
  endforeach()
endif()

function(coll_add_test source library)
  cmake_path(GET source STEM name)
  add_executable(${name} "${source}")
  target_link_libraries(${name} PRIVATE ${library} collectives_options Threads::Threads)
  target_include_directories(${name} PRIVATE "${folder}")
  if(source MATCHES "_test\\.cc$" AND NOT name MATCHES "_speed_test$")
    coll_compile_quickly(${name} REUSE_FROM test_support)
  endif()
  set_target_properties(
    ${name} PROPERTIES TEST_LAUNCHER "${launcher}" LINKER_TYPE ${test_linker}
  )
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_timeout})
  if(name MATCHES "_speed_test$")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON LABELS speed)
  endif()
endfunction()

set(shared_sources ${cc_files})
list(FILTER shared_sources EXCLUDE REGEX "_test\\.cc$")
set(inside collectives_core)
if(shared_sources)
  add_library(test_support STATIC ${shared_sources})
  target_link_libraries(test_support PUBLIC collectives_core PRIVATE collectives_options)
  target_include_directories(test_support PUBLIC "${folder}")
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    target_compile_definitions(test_support PUBLIC COLL_EMULATED)
  endif()
  coll_compile_quickly(
    test_support PRIVATE <algorithm> <array> <atomic> <chrono> <condition_variable> <fstream> <functional>
    <map> <memory> <mutex> <random> <set> <sstream> <stdexcept> <string> <thread> <vector>
  )
  set(inside test_support)
endif()

# Kernels of the GPU as threads, for a test of each and for the emulated GPU.
add_library(every_kernel OBJECT "${folder}/gpu/every_kernel.cc")
target_include_directories(every_kernel PRIVATE "${PROJECT_SOURCE_DIR}/native")
target_link_libraries(every_kernel PRIVATE collectives_options)
target_compile_options(every_kernel PRIVATE -O0) # compiled in a third of the time

list(FILTER cc_files INCLUDE REGEX "_test\\.cc$")
if(COLL_SANITIZE)
  list(FILTER cc_files EXCLUDE REGEX "_speed_test\\.cc$")
endif()
# Whether a test, or a header of the tests that it includes, has threads.
function(coll_has_threads source result)
  file(STRINGS "${source}" found REGEX "thread|run_ranks")
  file(STRINGS "${source}" includes REGEX "^#include \"[a-z_0-9]*_of_test\\.h\"")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE ".*\"(.*)\"" "\\1" header "${include}")
    file(STRINGS "${folder}/${header}" more REGEX "thread|run_ranks")
    list(APPEND found ${more})
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

foreach(source IN LISTS cc_files)
  coll_has_threads("${source}" threads)
  if("thread" IN_LIST COLL_SANITIZE AND NOT threads)
    continue() # nothing for the thread sanitizer to see, and minutes to look
  endif()
  if("address" IN_LIST COLL_SANITIZE AND source MATCHES "/(prove|mutation|kernels_values)_test\\.cc$")
    continue() # long, and the same code as in prover_fuzz_test and kernels_test
  endif()
  coll_add_test("${source}" ${inside})
endforeach()
if(TARGET cuda_dtypes_test)
  target_link_libraries(cuda_dtypes_test PRIVATE every_kernel)
endif()
if(TARGET cuda_capture_test) # the library's own source, over a stand-in for CUDA
  target_include_directories(cuda_capture_test PRIVATE "${folder}/gpu/runtime")
endif()
set(outside collectives)
if("address" IN_LIST COLL_SANITIZE)
  set(outside collectives_core) # which is shared there, and has all that the other one would show
endif()
foreach(source IN LISTS c_files)
  coll_add_test("${source}" ${outside})
endforeach()

# tests/native/nccl/*_test.cc: one program over libnccl.so.2, as programs for NCCL see it.
file(GLOB nccl_files CONFIGURE_DEPENDS "${folder}/nccl/*_test.cc")
add_executable(nccl_test ${nccl_files} "${folder}/check.cc")
target_link_libraries(
  nccl_test PRIVATE collectives_nccl collectives_options Threads::Threads
)
target_include_directories(nccl_test PRIVATE "${folder}")
if(CMAKE_CROSSCOMPILING_EMULATOR)
  target_compile_definitions(nccl_test PRIVATE COLL_EMULATED)
endif()
target_compile_options(nccl_test PRIVATE -Og) # what they test is optimised
set_target_properties(nccl_test PROPERTIES TEST_LAUNCHER "${launcher}")
add_test(NAME nccl_test COMMAND nccl_test)
set_tests_properties(nccl_test PROPERTIES TIMEOUT ${test_timeout})

# A GPU that is made of threads, for tests of what calls the library of kernels, and of the command
# that measures on a GPU.
add_library(
  emulated_gpu MODULE
  "${folder}/gpu/emulated_library.cc" "${folder}/gpu/emulated_sparse.cc"
  "${folder}/gpu/emulated_yardsticks.cc"
)
target_link_libraries(emulated_gpu PRIVATE every_kernel collectives_options Threads::Threads)
target_include_directories(
  emulated_gpu PRIVATE "${PROJECT_SOURCE_DIR}/native" "${PROJECT_SOURCE_DIR}/bench"
)
target_compile_options(emulated_gpu PRIVATE -Og) # compiled in half the time
# libnccl.so.2 with arrays of a GPU.
add_executable(nccl_gpu_test "${folder}/nccl/on_gpu.cc" "${folder}/check.cc")
target_link_libraries(
  nccl_gpu_test PRIVATE collectives_nccl collectives_options Threads::Threads ${CMAKE_DL_LIBS}
)
target_include_directories(nccl_gpu_test PRIVATE "${folder}" "${folder}/nccl")
target_compile_options(nccl_gpu_test PRIVATE -Og)
set_target_properties(nccl_gpu_test PROPERTIES TEST_LAUNCHER "${launcher}")
add_test(NAME nccl_gpu_test COMMAND nccl_gpu_test)
set_tests_properties(nccl_gpu_test PROPERTIES TIMEOUT ${test_timeout})
add_dependencies(nccl_gpu_test emulated_gpu)

set_tests_properties(
  gpu_call_test gpu_graph_test gpu_joint_test gpu_staged_test nccl_gpu_test
  PROPERTIES ENVIRONMENT "COLLECTIVES_CUDA_LIBRARY=$<TARGET_FILE:emulated_gpu>"
)

# The GPU's kernels as threads, under the thread sanitizer in every build without one: as they are
# nothing is reported, with their orders weakened races are.
function(coll_add_races name)
  add_executable(${name} "${folder}/races/${name}.cc")
  target_link_libraries(${name} PRIVATE ${inside} collectives_options Threads::Threads)
  target_include_directories(${name} PRIVATE "${folder}")
  target_compile_options(${name} PRIVATE -fsanitize=thread -O1 -g1 -Wno-tsan)
  target_link_options(${name} PRIVATE -fsanitize=thread)
  set_target_properties(${name} PROPERTIES TEST_LAUNCHER "${thread_launcher}")
  add_test(NAME ${name} COMMAND ${name} as_it_is)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_timeout})
  foreach(mutant IN LISTS ARGN)
    add_test(NAME ${name}_${mutant} COMMAND ${name} ${mutant})
    set_tests_properties(
      ${name}_${mutant}
      PROPERTIES TIMEOUT ${test_timeout} ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1" PASS_REGULAR_EXPRESSION
                 "ThreadSanitizer: data race"
    )
  endforeach()
endfunction()
if(NOT COLL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  coll_add_races(cuda_races relaxed_release relaxed_acquire no_barrier no_entry)
  coll_add_races(
    sparse_races selection_relaxed_arrival selection_no_barrier sum_relaxed_arrival sum_no_barrier
  )
endif()

# These take all their cases where ALL_CASES is set, else a part by turns (instrumented.h).
foreach(name IN ITEMS prove_test engine_test looks_test cuda_algorithms_test cuda_races sparse_races)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES LABELS long)
  endif()
endforeach()

# Begun first: what waits more than it computes waits beside the others, and what takes longest does
# not end alone.
set(first shrink_test bootstrap_faults_test mesh_directory_test wire_messages_test claim_test)
list(APPEND first cuda_algorithms_test cuda_dtypes_test kernels_test mutation_test)
foreach(name IN LISTS first)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST 100)
  endif()
endforeach()
