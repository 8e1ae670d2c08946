// SPDX-License-Identifier: Apache-2.0
// Ranks in rooms (a NUMA node, a package, a host), as they were found and measured.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "topology/network.h"

namespace coll {
namespace {

class Measured final : public Network {
 public:
  Measured(const std::vector<std::vector<int>>& groupings, const std::vector<std::string>& names,
           const std::vector<MeasuredLink>& links, const std::vector<MeasuredPair>& pairs)
      : Network(static_cast<int>(groupings.front().size())), groupings_(groupings), names_(names) {
    for (std::size_t level = 0; level < links.size(); ++level) {
      add_level(names[level], links[level], level);
    }
    for (const MeasuredPair& pair : pairs) add_pair(pair);
  }

  void route(int from, int to, Way& way) const override {
    if (const auto own = pairs_.find({from, to}); own != pairs_.end()) {
      way.push_back(own->second.link);
      return;
    }
    const std::size_t level = common(from, to);
    if (!known_[level]) refuse(level, from, to);
    way.push_back(out_[level] + room(level, from));
    if (level > 0) way.push_back(in_[level] + room(level, to));
  }

  Overhead overhead(int from, int to) const override {
    const auto own = pairs_.find({from, to});
    return own != pairs_.end() ? own->second.overhead : overhead_[common(from, to)];
  }

 private:
  struct Own {
    int link = 0;
    Overhead overhead;
  };

  // What is left of a message's time for the link.
  static LinkClass class_of_link(const std::string& name, const MeasuredLink& link) {
    return {.name = name,
            .latency = std::max(link.latency - 2 * link.overhead.message, 0.0),
            .seconds_per_byte = link.seconds_per_byte,
            .bucket = link.bucket};
  }

  // What leaves a room of the grouping below goes by one link, and what enters it.
  void add_level(const std::string& name, const MeasuredLink& link, std::size_t level) {
    known_.push_back(!std::isnan(link.latency));
    overhead_.push_back(link.overhead);
    int rooms = ranks();
    if (level > 0) {
      const auto& grouping = groupings_[level - 1];
      rooms = 1 + *std::max_element(grouping.begin(), grouping.end());
    }
    out_.push_back(add_links(add_class(class_of_link(name + " out", link)), rooms));
    LinkClass in = class_of_link(name + " in", link);
    in.latency = 0;
    in_.push_back(level == 0 ? 0 : add_links(add_class(std::move(in)), rooms));
  }

  void add_pair(const MeasuredPair& pair) {
    const int kind = add_class(class_of_link("pair", pair.link));
    const auto add = [&](int from, int to) {
      const int link = add_link({.kind = kind, .from = from, .to = to});
      pairs_[{from, to}] = {link, pair.link.overhead};
    };
    add(pair.low, pair.high);
    add(pair.high, pair.low);
  }

  std::size_t common(int a, int b) const {
    std::size_t level = 0;
    while (level < groupings_.size() && room(level + 1, a) != room(level + 1, b)) ++level;
    return level;
  }

  int room(std::size_t level, int rank) const {
    return level == 0 ? rank : groupings_[level - 1][static_cast<std::size_t>(rank)];
  }

  [[noreturn]] void refuse(std::size_t level, int from, int to) const {
    throw Error(Status::invalid_argument,
                "simulate: the topology does not say what links of level '" + names_[level] +
                    "' cost, nor that of ranks " + std::to_string(std::min(from, to)) + " and " +
                    std::to_string(std::max(from, to)) +
                    ": comm.topology() measures them, edited(links=...) or edited(pairs=...) "
                    "gives them");
  }

  std::vector<std::vector<int>> groupings_;
  std::vector<std::string> names_;
  std::vector<bool> known_;  // by level, whether its costs are
  std::vector<Overhead> overhead_;
  std::vector<int> out_, in_;
  std::map<std::pair<int, int>, Own> pairs_;
};

}  // namespace

std::unique_ptr<Network> measured_network(const std::vector<std::vector<int>>& groupings,
                                          const std::vector<std::string>& names,
                                          const std::vector<MeasuredLink>& links,
                                          const std::vector<MeasuredPair>& pairs) {
  return std::make_unique<Measured>(groupings, names, links, pairs);
}

}  // namespace coll
