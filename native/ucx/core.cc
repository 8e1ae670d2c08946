// SPDX-License-Identifier: Apache-2.0
#include "ucx/core.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/system_error.h"
#include "transport/system_calls.h"

namespace coll {
namespace {

constexpr double kParting = 10;  // seconds
constexpr int kMostTurns = 64;   // of UCX in one of ours

// Receivers read: nobody writes into arrays of a rank that has given up its call.
void prefer_reads(const UcxLibrary& library, ucp_config_t* config) {
  if (std::getenv("UCX_RNDV_SCHEME") == nullptr) {
    library.config_modify(config, "RNDV_SCHEME", "get_zcopy");
  }
}

// UCX listens at each device that it uses.
void keep_to(const std::string& devices, const UcxLibrary& library, ucp_config_t* config) {
  if (!devices.empty() && std::getenv("UCX_NET_DEVICES") == nullptr) {
    library.config_modify(config, "NET_DEVICES", devices.c_str());
  }
}

// UCX writes to standard output, which is the program's; what goes wrong our errors say.
void keep_quiet(const UcxLibrary& library) {
  if (std::getenv("UCX_LOG_LEVEL") == nullptr) library.set_global_option("LOG_LEVEL", "fatal");
}

void keep_for_ever(std::vector<std::unique_ptr<UcxPeer>>&& peers) {
  static std::mutex mutex;
  static std::vector<std::vector<std::unique_ptr<UcxPeer>>> kept;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(peers));
}

}  // namespace

UcxCore::UcxCore(const UcxSettings& settings, int rank, int ranks)
    : library_(ucx_library(settings.library)),
      rank_(rank),
      owner_(::getpid()),
      peers_(static_cast<std::size_t>(ranks)) {
  try {
    open_context(settings.devices, ranks);
    open_worker();
  } catch (...) {
    close();
    throw;
  }
}

// What UCX may still touch stays, with the worker: it could not be made to let go.
UcxCore::~UcxCore() {
  bool touched = forked();
  for (const auto& peer : peers_)
    touched = touched || (peer != nullptr && (peer->pending > 0 || peer->kept));
  if (!touched) {
    close();
    return;
  }
  keep_for_ever(std::move(peers_));
}

void UcxCore::close() noexcept {
  if (worker_ != nullptr) library_.worker_destroy(worker_);
  if (context_ != nullptr) library_.cleanup(context_);
}

bool UcxCore::forked() const noexcept { return ::getpid() != owner_; }

void UcxCore::check(ucs_status_t status, const char* what) const {
  if (status == UCS_OK) return;
  throw Error(Status::bootstrap,
              std::string("UCX ") + library_.get_version_string() + " cannot " + what + ": " +
                  library_.status_string(status) +
                  ". Where UCX_TLS, UCX_NET_DEVICES or other variables of UCX are set, they may "
                  "leave it no way: `ucx_info -d` lists what there is");
}

void UcxCore::open_context(const std::string& devices, int ranks) {
  keep_quiet(library_);
  ucp_config_t* config = nullptr;
  check(library_.config_read(nullptr, nullptr, &config), "read its settings");
  prefer_reads(library_, config);
  keep_to(devices, library_, config);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<std::size_t>(ranks);
  const ucs_status_t status = library_.init_version(UCP_API_MAJOR, 0, &params, config, &context_);
  library_.config_release(config);
  check(status, "begin");
}

void UcxCore::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(library_.worker_create(context_, &params, &worker_), "make a worker");
  check(library_.worker_get_efd(worker_, &fd_), "say how to wait for it");
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  check(library_.worker_query(worker_, &attributes), "say where it is");
  const auto* bytes = reinterpret_cast<const std::byte*>(attributes.address);
  address_.assign(bytes, bytes + attributes.address_length);
  library_.worker_release_address(worker_, attributes.address);
  if (attributes.max_am_header < sizeof(UcxHeader)) {
    throw Error(Status::unsupported, "this UCX carries no headers of " +
                                         std::to_string(sizeof(UcxHeader)) +
                                         " bytes: let UCX_TLS name other transports");
  }
  handle(kFrame, &UcxCore::frame);
  handle(kCredit, &UcxCore::credit);
}

void UcxCore::handle(Kind kind, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = kind;
  params.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
  params.cb = callback;
  params.arg = this;
  check(library_.worker_set_am_recv_handler(worker_, &params), "receive messages");
}

UcxPeer& UcxCore::expect(int peer) {
  auto& place = peers_.at(static_cast<std::size_t>(peer));
  if (place != nullptr) throw Error(Status::internal, "this peer has a stream already");
  auto made = std::make_unique<UcxPeer>();
  if (sys::getrandom(&made->token, sizeof made->token) != sizeof made->token) {
    throw system_error("getrandom", errno);
  }
  made->request_free = library_.request_free;
  for (auto& sending : made->sends) sending.peer = made.get();
  place = std::move(made);
  return *place;
}

// Who does not know the token is not listened to: UCX lets everybody connect.
UcxPeer* UcxCore::sender_of(const void* header, std::size_t length, UcxHeader& read) noexcept {
  if (length != sizeof read) return nullptr;
  std::memcpy(&read, header, sizeof read);
  if (read.from >= peers_.size()) return nullptr;
  UcxPeer* peer = peers_[read.from].get();
  return peer != nullptr && peer->token == read.token ? peer : nullptr;
}

ucs_status_t UcxCore::frame(void* core, const void* header, std::size_t header_length, void* data,
                            std::size_t length, const ucp_am_recv_param_t* param) noexcept {
  UcxHeader read;
  UcxPeer* peer = static_cast<UcxCore*>(core)->sender_of(header, header_length, read);
  return peer == nullptr ? UCS_OK : peer->keep(read, data, length, param->recv_attr);
}

ucs_status_t UcxCore::credit(void* core, const void* header, std::size_t header_length, void*,
                             std::size_t, const ucp_am_recv_param_t*) noexcept {
  UcxHeader read;
  UcxPeer* peer = static_cast<UcxCore*>(core)->sender_of(header, header_length, read);
  if (peer != nullptr) peer->heed_taken(read.taken);
  return UCS_OK;
}

bool UcxCore::progress() noexcept {
  int turns = 0;
  while (turns < kMostTurns && library_.worker_progress(worker_) != 0) ++turns;
  return turns > 0;
}

const Deadline& UcxCore::parting() {
  if (parting_ == nullptr) parting_ = std::make_unique<Deadline>(kParting);
  return *parting_;
}

}  // namespace coll
