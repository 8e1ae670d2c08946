// SPDX-License-Identifier: Apache-2.0
// The functions of UCX that we call, found in its library at run time. It is never closed: UCX
// keeps hooks in the process.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>

#include <string>

namespace coll {

struct UcxLibrary {
  decltype(&::ucp_get_version) get_version;
  decltype(&::ucp_get_version_string) get_version_string;
  decltype(&::ucp_config_read) config_read;
  decltype(&::ucp_config_modify) config_modify;
  decltype(&::ucp_config_release) config_release;
  decltype(&::ucp_init_version) init_version;
  decltype(&::ucp_cleanup) cleanup;
  decltype(&::ucp_worker_create) worker_create;
  decltype(&::ucp_worker_destroy) worker_destroy;
  decltype(&::ucp_worker_query) worker_query;
  decltype(&::ucp_worker_release_address) worker_release_address;
  decltype(&::ucp_worker_get_efd) worker_get_efd;
  decltype(&::ucp_worker_arm) worker_arm;
  decltype(&::ucp_worker_progress) worker_progress;
  decltype(&::ucp_worker_set_am_recv_handler) worker_set_am_recv_handler;
  decltype(&::ucp_ep_create) ep_create;
  decltype(&::ucp_ep_close_nbx) ep_close_nbx;
  decltype(&::ucp_ep_flush_nbx) ep_flush_nbx;
  decltype(&::ucp_am_send_nbx) am_send_nbx;
  decltype(&::ucp_am_recv_data_nbx) am_recv_data_nbx;
  decltype(&::ucp_am_data_release) am_data_release;
  decltype(&::ucp_request_check_status) request_check_status;
  decltype(&::ucp_request_free) request_free;
  decltype(&::ucs_status_string) status_string;
  decltype(&::ucs_global_opts_set_value) set_global_option;
};

// The library at this path, or where COLLECTIVES_UCX says, or where the loader finds it; the first
// one opened serves for ever. Throws Error(unsupported): there is none, or an older one.
const UcxLibrary& ucx_library(const std::string& path);

}  // namespace coll
