// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/pmi_directory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>

#include "base/error.h"
#include "base/quoted.h"

namespace coll {
namespace {

constexpr std::size_t kLongestKey = 32;     // PMI takes 63, of which a piece's number takes some
constexpr std::size_t kLongestPiece = 512;  // some servers have lines of 1024 bytes at most
constexpr std::size_t kLeastPiece = 64;
constexpr std::size_t kLongestDirectoryValue = 1 << 16;
constexpr double kFarewell = 1;  // seconds

// Values may hold no blank, line break or '=': PMI-1 has no way to escape them.
std::string hex_of(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += digits[static_cast<unsigned char>(c) >> 4];
    text += digits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

Error damaged(std::string_view key, std::string_view text) {
  return Error(Status::bootstrap,
               "the value of '" + std::string(key) +
                   "' in the launcher's key-value store is damaged: " + quoted_value(text));
}

std::string bytes_of(std::string_view hex, std::string_view key) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned value = 256;
    const char* end = hex.data() + std::min(i + 2, hex.size());
    const auto [stop, error] = std::from_chars(hex.data() + i, end, value, 16);
    if (error != std::errc{} || stop != hex.data() + i + 2) {
      throw damaged(key, hex);
    }
    bytes += static_cast<char>(value);
  }
  return bytes;
}

std::string piece_name(std::string_view key, std::size_t piece) {
  return "coll." + std::string(key) + "." + std::to_string(piece);
}

void check_key(std::string_view key) {
  constexpr std::string_view fine =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  if (!key.empty() && key.size() <= kLongestKey &&
      key.find_first_not_of(fine) == std::string_view::npos) {
    return;
  }
  throw Error(Status::invalid_argument,
              "a key of the launcher's key-value store has 1 to 32 "
              "letters, digits, '.', '_' and '-'; this is " +
                  quoted_value(key));
}

int number_from_environment(const char* name, int least) {
  const char* text = std::getenv(name);
  const std::string value = text == nullptr ? "" : text;
  int number = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (text != nullptr && error == std::errc{} && stop == value.data() + value.size() &&
      number >= least) {
    return number;
  }
  throw Error(Status::invalid_argument,
              std::string(name) + (text == nullptr ? " is not set" : " is " + quoted_value(value)) +
                  ": mpiexec and srun set it to a whole number of at least " +
                  std::to_string(least) +
                  " for each rank, together with PMI_FD, PMI_RANK and "
                  "PMI_SIZE");
}

}  // namespace

PmiPlace pmi_place() {
  const PmiPlace place{.fd = number_from_environment("PMI_FD", 0),
                       .rank = number_from_environment("PMI_RANK", 0),
                       .ranks = number_from_environment("PMI_SIZE", 1)};
  if (place.rank >= place.ranks) {
    throw Error(Status::invalid_argument, "PMI_RANK is " + std::to_string(place.rank) +
                                              ", but PMI_SIZE is " + std::to_string(place.ranks) +
                                              ": ranks count from 0");
  }
  return place;
}

PmiDirectory::PmiDirectory(const PmiPlace& place, int version, const Deadline& deadline,
                           const Stop& stop)
    : owner_(::getpid()) {
  PmiWire wire(place.fd, stop);
  pmi_ = version == 1 ? open_pmi1(std::move(wire), deadline)
                      : open_pmi2(std::move(wire), place.rank, place.ranks, deadline);
  if (pmi_->longest_value < kLeastPiece) {
    throw Error(Status::bootstrap, "the launcher's key-value store (PMI_FD) takes values of " +
                                       std::to_string(pmi_->longest_value) +
                                       " bytes; 64 are needed");
  }
}

// After a failure the next answer could be that to an earlier request, so there is none.
template <class F>
auto PmiDirectory::asked(F&& f) {
  if (pmi_ == nullptr) throw Error(Status::closed, "the launcher's key-value store was closed");
  if (owner_ != ::getpid()) {
    throw Error(Status::closed,
                "the launcher's key-value store belongs to the process that forked this one");
  }
  if (!failure_.empty()) throw Error(Status::bootstrap, failure_);
  try {
    return f(*pmi_);
  } catch (const Error& error) {
    failure_ = error.what();
    throw;
  }
}

void PmiDirectory::put(std::string_view key, std::string_view value, const Deadline& deadline) {
  check_key(key);
  if (value.size() > kLongestDirectoryValue) {
    throw Error(Status::invalid_argument,
                "a value of " + std::to_string(value.size()) +
                    " bytes is too long for the launcher's key-value store");
  }
  asked([&](Pmi& pmi) {
    // The first piece says how long the whole is: "<bytes>:".
    const std::string text = std::to_string(value.size()) + ":" + hex_of(value);
    const std::size_t room = std::min(kLongestPiece, pmi.longest_value - 1);
    for (std::size_t at = 0, piece = 0; at < text.size(); at += room, ++piece) {
      pmi.put(piece_name(key, piece), text.substr(at, room), deadline);
    }
  });
}

std::string PmiDirectory::get(std::string_view key, const Deadline& deadline) {
  check_key(key);
  return asked([&](Pmi& pmi) {
    std::string text = pmi.get(piece_name(key, 0), deadline);
    const std::size_t colon = text.find(':');
    std::size_t bytes = 0;
    const auto [stop, error] =
        std::from_chars(text.data(), text.data() + std::min(colon, text.size()), bytes);
    if (colon == std::string::npos || error != std::errc{} || stop != text.data() + colon ||
        bytes > kLongestDirectoryValue) {
      throw damaged(key, text);
    }
    const std::size_t whole = colon + 1 + 2 * bytes;
    for (std::size_t piece = 1; text.size() < whole; ++piece) {
      const std::string next = pmi.get(piece_name(key, piece), deadline);
      if (next.empty()) throw damaged(key, text);
      text += next;
    }
    if (text.size() != whole) throw damaged(key, text);
    return bytes_of(std::string_view(text).substr(colon + 1), key);
  });
}

void PmiDirectory::fence(const Deadline& deadline) {
  asked([&](Pmi& pmi) { pmi.fence(deadline); });
}

void PmiDirectory::close() noexcept {
  if (pmi_ == nullptr) return;
  if (owner_ == ::getpid()) {
    try {
      // Without it mpiexec takes the end of this process for a crash, and ends the job. So it is
      // said also after a failure, whatever the answer.
      pmi_->finalize(Deadline(kFarewell));
    } catch (const std::exception&) {
      pmi_.reset();  // the launcher is gone, or MPI has taken its leave already: nothing is lost
    }
  }
  pmi_.reset();
}

}  // namespace coll
