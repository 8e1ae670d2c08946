// SPDX-License-Identifier: Apache-2.0
// PMI-1: one line a request, one line an answer; fields separated by blanks, and no way to escape.
#include <algorithm>

#include "base/error.h"
#include "base/quoted.h"
#include "bootstrap/pmi.h"

namespace coll {
namespace {

class Pmi1 final : public Pmi {
 public:
  Pmi1(PmiWire&& wire, const Deadline& deadline) : wire_(std::move(wire)) {
    const PmiAnswer hello =
        ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init", deadline);
    if (hello.number("pmi_version") != 1) {
      throw Error(Status::unsupported,
                  "the launcher's key-value store (PMI_FD) speaks PMI version " +
                      hello.need("pmi_version") + ", not 1");
    }
    // Of the three limits only that of values binds: keys are short by contract.
    const int longest = ask("cmd=get_maxes", "maxes", deadline).number("vallen_max");
    longest_value = static_cast<std::size_t>(std::max(longest, 0));
    space_ = ask("cmd=get_my_kvsname", "my_kvsname", deadline).need("kvsname");
  }

  void put(const std::string& key, const std::string& value, const Deadline& deadline) override {
    ask("cmd=put kvsname=" + space_ + " key=" + key + " value=" + value, "put_result", deadline);
  }

  std::string get(const std::string& key, const Deadline& deadline) override {
    return ask("cmd=get kvsname=" + space_ + " key=" + key, "get_result", deadline).need("value");
  }

  void fence(const Deadline& deadline) override { ask("cmd=barrier_in", "barrier_out", deadline); }

  void finalize(const Deadline& deadline) override {
    ask("cmd=finalize", "finalize_ack", deadline);
  }

 private:
  PmiAnswer ask(const std::string& request, const std::string& answered, const Deadline& deadline) {
    wire_.send(request + "\n", deadline);
    PmiAnswer answer = PmiAnswer::of_line(wire_.line(deadline));
    answer.check(answered, quoted_value(request));
    return answer;
  }

  PmiWire wire_;
  std::string space_;
};

}  // namespace

std::unique_ptr<Pmi> open_pmi1(PmiWire&& wire, const Deadline& deadline) {
  return std::make_unique<Pmi1>(std::move(wire), deadline);
}

}  // namespace coll
