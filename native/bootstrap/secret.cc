// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/secret.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/hmac.h"
#include "base/system_error.h"
#include "base/wipe.h"
#include "transport/descriptor.h"

namespace coll {
namespace {

constexpr std::size_t kHexDigits = 2 * Secret::kBytes;

// One more than such a file may have, to see that it ends: digits, a line end, something.
struct FileContent {
  ~FileContent() { wipe(text.data(), text.size()); }
  std::array<char, kHexDigits + 2> text{};
  std::size_t size = 0;
};

// Without a table: which line of one was read can be told from the cache.
int value_of_hex_digit(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

std::string how_to_make(const std::string& path) {
  return "; make it once, with `" + command_for_secret_file(path) +
         "`, and copy it to all hosts of the job";
}

Error bad_file(const std::string& path, const std::string& why, const std::string& first = "") {
  return Error(Status::invalid_argument,
               "COLLECTIVES_SECRET_FILE, '" + path + "', " + why + first + how_to_make(path));
}

Error failed_call(const std::string& path, const std::string& call, int error) {
  const Error plain = system_error(call + " COLLECTIVES_SECRET_FILE, '" + path + "',", error);
  return Error(plain.status, plain.what() + how_to_make(path));
}

void check_who_can_read(const std::string& path, const struct stat& status) {
  // The old content may be known by now, so a narrower mode alone would not help.
  const std::string remove = "; remove it, for its content may be known";
  if (!S_ISREG(status.st_mode)) throw bad_file(path, "is not a regular file");
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw bad_file(path,
                   "belongs to user " + std::to_string(status.st_uid) + ", not to this user (" +
                       std::to_string(::geteuid()) + ") or root",
                   remove);
  }
  constexpr unsigned kReadWrite = 0600;
  if ((status.st_mode & 07777 & ~kReadWrite) != 0) {
    char mode[16];
    std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777);
    throw bad_file(path, std::string("has mode ") + mode + " where at most 0600 is allowed",
                   remove);
  }
}

void read_all(const std::string& path, int fd, FileContent& content) {
  while (content.size < content.text.size()) {
    const ssize_t n =
        sys::read(fd, content.text.data() + content.size, content.text.size() - content.size);
    if (n < 0) throw failed_call(path, "reading", errno);
    if (n == 0) return;
    content.size += static_cast<std::size_t>(n);
  }
}

}  // namespace

std::array<std::uint8_t, 32> random_bytes() {
  std::array<std::uint8_t, 32> bytes;
  // Up to 256 bytes come at once or not at all.
  if (sys::getrandom(bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    throw system_error("getrandom", errno);
  }
  return bytes;
}

Secret::~Secret() { wipe(bytes_.data(), bytes_.size()); }

Secret Secret::make() { return Secret(random_bytes()); }

Secret Secret::derived(std::string_view purpose) const {
  std::array<std::uint8_t, kBytes> key{};
  hkdf_expand(bytes(), {reinterpret_cast<const std::uint8_t*>(purpose.data()), purpose.size()},
              key);
  const Secret made(key);
  wipe(key.data(), key.size());
  return made;
}

Secret Secret::from_hex(std::string_view text) {
  if (text.size() != kHexDigits) {
    throw Error(Status::invalid_argument, "a secret has " + std::to_string(kHexDigits) +
                                              " hex digits, this text has " +
                                              std::to_string(text.size()) + " characters");
  }
  Secret secret(std::array<std::uint8_t, kBytes>{});
  for (std::size_t i = 0; i < kBytes; ++i) {
    const int high = value_of_hex_digit(text[2 * i]), low = value_of_hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      throw Error(Status::invalid_argument, "a secret has hex digits only, and character " +
                                                std::to_string(2 * i + (high < 0 ? 1 : 2)) +
                                                " of this text is none");
    }
    secret.bytes_[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return secret;
}

Secret Secret::from_file(const std::string& path) {
  // Not to wait for ever where the name is that of a pipe.
  const Descriptor file(sys::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) throw failed_call(path, "opening", errno);
  struct stat status{};
  if (sys::fstat(file.get(), &status) != 0) throw failed_call(path, "asking about", errno);
  check_who_can_read(path, status);
  FileContent content;
  read_all(path, file.get(), content);
  if (content.size == kHexDigits + 1 && content.text[kHexDigits] == '\n') --content.size;
  if (content.size > kHexDigits) {
    throw bad_file(path, "has more than 64 hex digits and a line end");
  }
  try {
    return from_hex({content.text.data(), content.size});
  } catch (const Error& error) {
    throw bad_file(path, std::string("holds no secret: ") + error.what());
  }
}

std::string Secret::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(kHexDigits);  // not to leave copies behind where it grows
  for (const std::uint8_t byte : bytes_) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string command_for_secret_file(const std::string& path) {
  std::string quoted;
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  const bool plain = std::all_of(path.begin(), path.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._+-").find(c) != std::string_view::npos;
  });
  if (!plain || path.empty()) quoted = "'" + quoted + "'";
  return "(umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n' > " + quoted + ")";
}

}  // namespace coll
