# SPDX-License-Identifier: Apache-2.0
# Takes what calls UCX out of core_sources where there are no headers of UCX, or else what stands
# for it then, absent.cc. The library itself is opened at run time: nothing is linked.
find_path(COLL_UCX_INCLUDE ucp/api/ucp.h DOC "The folder that has ucp/api/ucp.h")
if(COLL_UCX STREQUAL "ON" AND NOT COLL_UCX_INCLUDE)
  message(FATAL_ERROR "COLL_UCX is ON, but ucp/api/ucp.h was not found: install Debian's libucx-dev, "
                      "or set COLL_UCX_INCLUDE, or pass COLL_UCX=AUTO.")
endif()
if(COLL_UCX STREQUAL "OFF" OR NOT COLL_UCX_INCLUDE)
  list(FILTER core_sources EXCLUDE REGEX "/native/ucx/(core|library|peer|stream|stream_ends)\\.cc$")
  message(STATUS "UCX (COLL_UCX=${COLL_UCX}): without")
else()
  list(FILTER core_sources EXCLUDE REGEX "/native/ucx/absent\\.cc$")
  set(COLL_UCX_FOUND TRUE)
  message(STATUS "UCX (COLL_UCX=${COLL_UCX}): headers in ${COLL_UCX_INCLUDE}")
endif()
