// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/secret.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

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

constexpr char kGiveAnother[] =
    "; give the path of a regular file with the secret, which nobody but this user can read";
// A narrower mode alone would not help. What is there is not ours to overwrite.
constexpr char kRemove[] =
    "; others may know its content, so if it is a secret, remove it on all hosts, and this error "
    "says how to make a new one; else give another path";
constexpr char kCopyAgain[] =
    "; copy the file again from the host where it was made, or give the path of the right one";

Error bad_file(const std::string& path, const std::string& why, const std::string& advice) {
  return Error(Status::invalid_argument,
               "COLLECTIVES_SECRET_FILE, '" + path + "', " + why + advice);
}

// Only where nothing is there the line that makes the file is safe, and only in a folder it works.
std::string advice_for(const std::string& path, int error) {
  constexpr std::array kOfPath = {EACCES, EPERM, ENOTDIR, ELOOP, ENAMETOOLONG, ENXIO, ENODEV};
  if (error != ENOENT) {
    return std::ranges::find(kOfPath, error) != kOfPath.end() ? kGiveAnother : "";
  }
  std::error_code unknown;
  const bool link = std::filesystem::is_symlink(path, unknown);  // that leads nowhere
  if (path.empty() || link) return kGiveAnother;
  const auto folder = std::filesystem::absolute(path, unknown).parent_path();
  if (std::filesystem::is_directory(folder, unknown)) return how_to_make(path);
  return "; there is no folder '" + folder.string() + "': make it first, or give another path";
}

Error failed_call(const std::string& path, const std::string& call, int error) {
  const std::string what = call + " COLLECTIVES_SECRET_FILE, '" + path + "',";
  const std::string advice = advice_for(path, error);
  if (advice.empty()) return system_error(what, error);
  // Of a path: no sandbox is to blame.
  const std::string why = std::generic_category().message(error) + " (" + errno_name(error) + ")";
  return Error(Status::system, what + " failed: " + why + advice);
}

void check_who_can_read(const std::string& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) throw bad_file(path, "is a folder", kGiveAnother);
  if (!S_ISREG(status.st_mode)) throw bad_file(path, "is not a regular file", kGiveAnother);
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw bad_file(path,
                   "belongs to user " + std::to_string(status.st_uid) + ", not to this user (" +
                       std::to_string(::geteuid()) + ") or root",
                   kRemove);
  }
  constexpr unsigned kReadWrite = 0600;
  if ((status.st_mode & 07777 & ~kReadWrite) != 0) {
    char mode[16];
    std::snprintf(mode, sizeof mode, "%04o", status.st_mode & 07777);
    throw bad_file(path, std::string("has mode ") + mode + " where at most 0600 is allowed",
                   kRemove);
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
  hkdf_expand(bytes(), bytes_in(purpose), key);
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
    throw bad_file(path, "has more than 64 hex digits and a line end", kCopyAgain);
  }
  try {
    return from_hex({content.text.data(), content.size});
  } catch (const Error& error) {
    throw bad_file(path, std::string("holds no secret: ") + error.what(), kCopyAgain);
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
