# SPDX-License-Identifier: Apache-2.0
# collectives_options: how our own C and C++ is compiled. Never applied to generated code.
add_library(collectives_options INTERFACE)
set(ours "$<COMPILE_LANGUAGE:C,CXX>")  # nvcc must not see these flags

target_compile_options(
  collectives_options
  INTERFACE
    "$<${ours}:-Wall;-Wextra>"
    # A constructor may name its parameters as the public members that they set: g++ tells those
    # from locals that hide locals, clang warns of the latter only.
    "$<${ours}:$<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>>"
    # A fused multiply-add rounds once where the proof of equal bits on all ranks counts two.
    "$<${ours}:-ffp-contract=off>"
)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms of g++ 12 about "text" + std::string (its bug 105651).
  target_compile_options(collectives_options INTERFACE "$<${ours}:-Wno-restrict>")
endif()
if(COLL_WERROR)
  target_compile_options(collectives_options INTERFACE "$<${ours}:-Werror>")
endif()

if(COLL_SANITIZE)
  list(JOIN COLL_SANITIZE "," sanitizers)
  set(sanitize "-fsanitize=${sanitizers}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # g++ warns of false maybe-uninitialized under sanitizers (its manual says so); dev keeps it.
  list(APPEND sanitize "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
  if("thread" IN_LIST COLL_SANITIZE)
    # g++ says that the thread sanitizer does not model fences; the sanitizer run itself tells.
    list(APPEND sanitize "$<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>")
  endif()
  target_compile_options(collectives_options INTERFACE "$<${ours}:${sanitize}>")
  target_link_options(collectives_options INTERFACE "-fsanitize=${sanitizers}")
endif()
