// SPDX-License-Identifier: Apache-2.0
#include "communicator/regroup.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "base/error.h"
#include "communicator/fingerprint.h"

namespace coll {
namespace {

template <std::size_t n>
void copy_text(std::array<char, n>& to, std::string_view text) noexcept {
  to.fill('\0');
  std::memcpy(to.data(), text.data(), std::min(text.size(), n - 1));
}

// A peer wrote it: it may not end.
template <std::size_t n>
std::string text_of(const std::array<char, n>& text) {
  return {text.data(), ::strnlen(text.data(), n)};
}

std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

Regroup::Regroup(int rank, int ranks, const GroupWish& wish, std::string_view host)
    : own_(rank),
      purpose_(wish.purpose),
      wishes_(static_cast<std::size_t>(ranks)),
      reports_(static_cast<std::size_t>(ranks)) {
  wish_.color = wish.color;
  wish_.key = wish.key;
  wish_.hash = hash_of(wish.same);
  wish_.host = host.empty() ? 0 : hash_of(host);
  copy_text(wish_.same, wish.same);
}

template <class T>
Status Regroup::exchange(const T& mine, std::vector<T>& all) {
  return run({.kind = Kind::allgather,
              .dtype = Dtype::uint8,
              .input = &mine,
              .output = all.data(),
              .count = sizeof(T),
              .purpose = purpose_});
}

Status Regroup::start() { return advance(exchange(wish_, wishes_)); }

Status Regroup::resume() { return advance(go_on()); }

Status Regroup::advance(Status status) {
  while (status == Status::ok) {
    if (placed_) {
      check_reports();
    } else {
      check_wishes();
      attempt([this] { find_place(); });
      placed_ = true;
    }
    if (!next()) return Status::ok;
    report_.where.fill('\0');
    attempt([this] {
      if (member()) step();
    });
    status = exchange(report_, reports_);
  }
  return status;
}

// All ranks see the same wishes, so all of them fail alike.
void Regroup::check_wishes() {
  for (std::size_t r = 1; r < wishes_.size(); ++r) {
    if (wishes_[r].hash == wishes_[0].hash) continue;
    const int peer = static_cast<int>(r);
    fail({Status::mismatch, peer,
          std::string(name_of(purpose_)) + " #" + std::to_string(calls()) +
              ": the ranks do not ask for the same: rank 0 for " + text_of(wishes_[0].same) +
              ", rank " + std::to_string(peer) + " for " + text_of(wishes_[r].same)});
  }
}

void Regroup::find_place() {
  if (wish_.color < 0) return;
  for (std::size_t r = 0; r < wishes_.size(); ++r) {
    if (wishes_[r].color == wish_.color) members_.push_back(static_cast<int>(r));
  }
  std::ranges::stable_sort(
      members_, {}, [this](int member) { return wishes_[static_cast<std::size_t>(member)].key; });
  rank_ = static_cast<int>(std::ranges::find(members_, own_) - members_.begin());
}

bool Regroup::together(std::size_t a, std::size_t b) const noexcept {
  return wishes_[a].color == wishes_[b].color;
}

bool Regroup::on_one_host(std::size_t a, std::size_t b) const noexcept {
  return wishes_[a].host == wishes_[b].host && wishes_[a].host != 0;
}

std::string Regroup::name() const {
  return std::string(name_of(purpose_)) + " " + std::to_string(calls()) + "." +
         std::to_string(wish_.color);
}

void Regroup::tell(std::string_view where) {
  if (where.size() >= report_.where.size()) throw Error(Status::internal, "no room to tell where");
  copy_text(report_.where, where);
}

std::string Regroup::told_by(int member) const {
  return text_of(reports_[static_cast<std::size_t>(member)].where);
}

// What goes wrong on one rank is told to all in the next exchange.
template <class Step>
void Regroup::attempt(Step step) noexcept {
  try {
    step();
  } catch (const Error& error) {
    report(error.status, error.what());
  } catch (const std::bad_alloc&) {
    report(Status::out_of_memory, "out of memory");
  } catch (const std::exception& error) {
    report(Status::internal, error.what());
  }
}

void Regroup::report(Status status, std::string_view text) noexcept {
  if (report_.status != 0) return;  // the first cause counts
  report_.status = static_cast<std::int32_t>(status);
  copy_text(report_.text, text);
}

void Regroup::check_reports() const {
  for (std::size_t r = 0; r < reports_.size(); ++r) {
    const std::int32_t status = reports_[r].status;
    if (status == 0) continue;
    const bool known = status > 0 && status <= static_cast<std::int32_t>(Status::internal);
    throw Error(known ? static_cast<Status>(status) : Status::internal,
                std::string(name_of(purpose_)) + " #" + std::to_string(calls()) + ": rank " +
                    std::to_string(r) +
                    " could not enter its new group: " + text_of(reports_[r].text),
                static_cast<int>(r));
  }
}

}  // namespace coll
