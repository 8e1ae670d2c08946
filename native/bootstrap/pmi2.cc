// SPDX-License-Identifier: Apache-2.0
// PMI-2: hello is a line as in PMI-1, then a message is its length in six places and its body,
// whose fields end with ';'.
#include <charconv>
#include <cstdio>

#include "base/error.h"
#include "base/quoted.h"
#include "bootstrap/pmi.h"

namespace coll {
namespace {

constexpr std::size_t kLengthPlaces = 6;
constexpr std::size_t kLongestValue = 1024;  // PMI2_MAX_VALLEN

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) text += c == ';' ? ";;" : std::string(1, c);
  return text;
}

std::string field(const char* name, std::string_view value) {
  return std::string(name) + "=" + escaped(value) + ";";
}

class Pmi2 final : public Pmi {
 public:
  Pmi2(PmiWire&& wire, int rank, int ranks, const Deadline& deadline) : wire_(std::move(wire)) {
    longest_value = kLongestValue;
    wire_.send("cmd=init pmi_version=2 pmi_subversion=0\n", deadline);
    const PmiAnswer hello = PmiAnswer::of_line(wire_.line(deadline));
    hello.check("response_to_init", "'cmd=init pmi_version=2'");
    if (hello.number("pmi_version") != 2) {
      throw Error(Status::unsupported,
                  "the launcher's key-value store (PMI_FD) speaks PMI version " +
                      hello.need("pmi_version") + ", not 2");
    }
    const PmiAnswer full = ask(
        "fullinit", field("pmirank", std::to_string(rank)) + field("threaded", "FALSE"), deadline);
    if (full.number("rank") != rank || full.number("size") != ranks) {
      throw Error(Status::bootstrap,
                  "PMI_RANK and PMI_SIZE say rank " + std::to_string(rank) + " of " +
                      std::to_string(ranks) + ", but the launcher says rank " + full.need("rank") +
                      " of " + full.need("size") + ": they are left over from another job");
    }
    job_ = ask("job-getid", "", deadline).need("jobid");
  }

  void put(const std::string& key, const std::string& value, const Deadline& deadline) override {
    ask("kvs-put", field("key", key) + field("value", value), deadline);
  }

  std::string get(const std::string& key, const Deadline& deadline) override {
    const PmiAnswer answer =
        ask("kvs-get", field("jobid", job_) + field("srcid", "-1") + field("key", key), deadline);
    const std::string found = answer.text("found");
    if (found != "TRUE") {
      throw Error(Status::bootstrap,
                  "the launcher's key-value store (PMI_FD) has no value of '" + key + "'");
    }
    return answer.need("value");
  }

  void fence(const Deadline& deadline) override { ask("kvs-fence", "", deadline); }

  void finalize(const Deadline& deadline) override { ask("finalize", "", deadline); }

 private:
  PmiAnswer ask(const std::string& command, const std::string& fields, const Deadline& deadline) {
    const std::string body = field("cmd", command) + fields;
    char length[kLengthPlaces + 1];
    std::snprintf(length, sizeof length, "%6d", static_cast<int>(body.size()));
    wire_.send(length + body, deadline);
    const std::string announced = wire_.exactly(kLengthPlaces, deadline);
    PmiAnswer answer = PmiAnswer::of_body(wire_.exactly(length_of(announced), deadline));
    answer.check(command + "-response", "'" + command + "'");
    return answer;
  }

  static std::size_t length_of(const std::string& announced) {
    const std::size_t first = announced.find_first_not_of(' ');
    std::size_t length = 0;
    const char* end = announced.data() + announced.size();
    const auto [stop, error] =
        std::from_chars(announced.data() + std::min(first, announced.size()), end, length);
    if (error != std::errc{} ||
        announced.find_first_not_of(' ', stop - announced.data()) != std::string::npos) {
      throw Error(Status::bootstrap,
                  "the launcher's key-value store (PMI_FD) sent what is no length: " +
                      quoted_value(announced));
    }
    return length;
  }

  PmiWire wire_;
  std::string job_;
};

}  // namespace

std::unique_ptr<Pmi> open_pmi2(PmiWire&& wire, int rank, int ranks, const Deadline& deadline) {
  return std::make_unique<Pmi2>(std::move(wire), rank, ranks, deadline);
}

}  // namespace coll
